package once_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

// A town is many nodes that run one name, and what they did.
type town struct {
	mu   sync.Mutex
	runs map[time.Time][]int64 // guarded by mu: of each period the fences of its runs
}

func (o *town) did(run *once.Run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.runs == nil {
		o.runs = map[time.Time][]int64{}
	}
	o.runs[run.Period().Start] = append(o.runs[run.Period().Start], run.Fence())
}

// Fifty nodes ask by their own clocks, which are up to four minutes apart from the server's either
// way, at each half minute of their own. What period that is, the server decides.
func TestFiftyNodesWhoseClocksAreMinutesApartDoEachPeriodOnce(t *testing.T) {
	const nodes, every = 50, time.Minute
	periods := time.Duration(40 * amount.Times())
	inWorld(t, func(t *testing.T, w *world) {
		var o town
		var asking sync.WaitGroup
		random := rand.New(rand.NewPCG(1, 2))
		redis := w.Process().Redis // one for all: fifty times as many goroutines would show nothing more
		for range nodes {
			n, err := node.New(redis, node.Config{Lease: lease})
			require.NoError(t, err)
			defer func() { require.NoError(t, n.Close(context.Background())) }()
			job := once.New(n, digest, once.Config{Every: every})
			ahead := time.Duration(random.Int64N(int64(8*time.Minute))) - 4*time.Minute
			asking.Go(func() {
				for {
					own := time.Now().Add(ahead) // what the node's clock shows
					time.Sleep(own.Truncate(every).Add(every/2).Sub(own) + every)
					if w.Now() >= periods*every {
						return
					}
					_, err := job.Do(context.Background(), func(_ context.Context, run *once.Run) error {
						o.did(run)
						time.Sleep(ms)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		asking.Wait()
		require.GreaterOrEqual(t, len(o.runs), int(periods)-2, "all but the first ones")
		for period, fences := range o.runs {
			require.Len(t, fences, 1, period)
		}
	})
}

// All stand in line as soon as a period begins, and each third run fails.
func TestTheLoopsOfFiftyNodesDoEachPeriodOnce(t *testing.T) {
	const nodes, periods = 50, 3
	inWorld(t, func(t *testing.T, w *world) {
		var o town
		var running sync.WaitGroup
		ctx, stop := context.WithCancel(context.Background())
		cfg := once.Config{Every: time.Minute}
		tries, all := 0, make([]*process, nodes)
		for i := range all {
			all[i] = w.node()
			running.Go(func() {
				err := all[i].job(cfg).Run(ctx, func(_ context.Context, run *once.Run) error {
					time.Sleep(ms)
					if tries++; tries%3 == 0 { // nobody else runs
						return errMine
					}
					o.did(run)
					return nil
				})
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		w.Until(periods*time.Minute - ms)
		stop()
		running.Wait()
		require.Len(t, o.runs, periods)
		missed := 0
		for period, fences := range o.runs {
			require.Len(t, fences, 1, period)
		}
		for _, n := range all {
			missed += len(n.Told(observe.Missed))
		}
		require.Zero(t, missed)
	})
}
