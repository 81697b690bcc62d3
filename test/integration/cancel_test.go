package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/test/harness"
)

// storm is many goroutines whose acquires are cancelled at random moments:
// before the acquire is sent, on its way, while it waits, while it is granted.
// It seeks the moment at which one in three gets through.
//
// A cancel returns at once, and what it has begun goes on. So each fourth waits until a
// call that it makes on the same connection is answered: cancels come no faster than the
// machine answers, however slow it is.
type storm struct {
	*world
	ways    []way
	spread  atomic.Int64 // acquires are cancelled within so many ns
	cancels atomic.Int64
	grants  atomic.Int64
	failed  atomic.Int64 // cancelled claims that could not be removed
	inside  *live
}

// way is how a storm asks, on one connection.
type way struct {
	*user
	redis rueidis.Client
}

// answered waits until a call for the name is answered, and with it all that went before
// on its pipeline, which rueidis draws.
func (y way) answered(w *world) {
	exists := y.redis.B().Exists().Key(w.stateKey(w.name())).Build()
	if err := y.redis.Do(w.Within(patience), exists).Error(); err != nil {
		w.Errorf("what a cancel has begun is not answered: %v", err)
	}
}

func (w *world) storm() *storm {
	s := &storm{world: w, inside: newLive(w.capacity)}
	s.spread.Store(int64(time.Millisecond))
	return s
}

// heard are the limits under which every call is answered, however slow the machine: by
// default one fails after 10 s, and a ghost of a storm would live for the whole lease. heardOn are those of a connection
// with 2^pipelines pipelines.
var heard = berth.Retry{Attempts: 1000, Within: patience}

func heardOn(pipelines int) func(o *rueidis.ClientOption) {
	return func(o *rueidis.ClientOption) { o.PipelineMultiplex, o.ConnWriteTimeout = pipelines, patience }
}

// failures counts the claims that could not be removed.
func (s *storm) failures() observe.Observer {
	return observe.Func(func(e observe.Event) {
		if e.Kind == observe.CleanupFailed {
			s.failed.Add(1)
			s.Logf("a cancelled claim was not removed: %v", e.Err)
		}
	})
}

// rage goes on until so many acquires were cancelled, and some got through.
func (s *storm) rage(workers int, cancels int64) {
	s.Helper()
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for (s.cancels.Load() < cancels || s.grants.Load() < cancels/20) && !s.Failed() {
				s.once(s.ways[i%len(s.ways)])
			}
		})
	}
	all.Wait()
}

// least is the shortest spread, in ns.
const least = 100_000

func (s *storm) once(y way) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	spread := s.spread.Load()
	defer time.AfterFunc(rand.N(time.Duration(spread)), cancel).Stop()
	began := time.Now()
	p, err := y.claim(ctx)
	switch {
	case err == nil:
		s.grants.Add(1)
		if s.spread.Add(-2*spread/100) < least {
			s.spread.Store(least)
		}
		s.inside.enter(p)
		if err := p.Renew(ctx); err != nil && !errors.Is(err, context.Canceled) {
			s.Errorf("renew: %v", err)
		}
		// Many release with a context that ends, or has ended.
		if err := p.Release(ctx); err != nil {
			s.Errorf("release: %v", err)
		}
		s.inside.leave(p)
	case errors.Is(err, context.Canceled) && errors.Is(err, berth.ErrNotAcquired):
		if s.cancels.Add(1)%4 == 0 {
			y.answered(s.world)
		}
		if s.spread.Add(spread/100) > int64(patience) {
			s.Errorf("nobody gets through any more, in up to %v", patience)
		}
	default:
		s.Errorf("acquire, after %v: %v", time.Since(began), err)
	}
}

// settled checks that nothing is left of all that, long before any lease ends.
func (s *storm) settled() {
	s.Helper()
	began := time.Now()
	gone := func() bool { v := s.look(s.name()); return len(v.holds)+len(v.alive) == 0 }
	s.Await("the cancelled claims are gone, by themselves", gone)
	took := time.Since(began)
	for _, y := range s.ways { // an acquire that was cancelled may be on its way yet
		require.NoError(s, y.Close(s.Within(patience)))
	}
	s.Await("and stay gone", gone)
	s.Logf("%d cancels, %d grants, clean %v after the last; at most %d inside; %d clean-ups failed",
		s.cancels.Load(), s.grants.Load(), took.Round(time.Millisecond), s.inside.most, s.failed.Load())
	s.inside.check(s.world)
	s.whole(s.name())
}

func TestManyCancelsLeaveNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind     keyspace.Kind
		latency  time.Duration // of one connection in two
		capacity int
		cancels  int64
	}{
		"semaphores":                    {keyspace.Sem, 0, 3, 1000},
		"semaphores, with late replies": {keyspace.Sem, 10 * time.Millisecond, 20, 1000},
		"locks":                         {keyspace.Lock, time.Millisecond, 1, 500},
		"pools":                         {keyspace.Pool, time.Millisecond, 1, 500},
	} {
		t.Run(name, func(t *testing.T) {
			w := shared(t)
			w.kind, w.capacity = test.kind, test.capacity
			s := w.storm()
			// A ghost would live for the whole lease, and no call is so slow
			// that it counts as unanswered.
			cfg := node.Config{Lease: time.Hour, CallTimeout: patience, CleanupTimeout: patience, Retry: heard, Observer: s.failures()}
			proxy := harness.Proxy(t, w.server)
			proxy.AddLatency(test.latency)
			for _, pipelines := range []int{1, 3, 5} {
				edit := heardOn(pipelines)
				for _, redis := range []rueidis.Client{w.server.Client(t, edit), proxy.Client(t, edit)} {
					s.ways = append(s.ways, way{w.useOn(redis, cfg), redis})
				}
			}
			s.rage(30, test.cancels)
			s.settled()
			require.Zero(t, s.failed.Load())
			w.idle(w.name())                                               // without a tombstone: every call was answered
			w.nothingLeft(w.useFrom(w.admin, node.Config{}, poolConfig{})) // which adds nothing
		})
	}
}

// tombstones counts those of a name, and checks that nothing is left when they
// have had their time.
func (w *world) tombstones(name string) {
	w.Helper()
	v := w.whole(name)
	w.Logf("%d tombstones", len(v.stones))
	for claim, until := range v.tombs {
		require.LessOrEqual(w, until, v.now+time.Minute.Milliseconds(), "the tombstone of %s stays too long", claim)
	}
	w.age(name, v)
	w.swept(name)
	w.idle(name)
}

// swept has the server drop what has expired of a name.
func (w *world) swept(name string) {
	w.Helper()
	_, err := w.sweeper().SweepAll(w.Within(patience), name)
	require.NoError(w, err)
}

// sweeper sweeps as a node that claims nothing.
func (w *world) sweeper() *line.Face {
	w.Helper()
	redis := w.server.Client(w.T)
	return line.NewProcess(line.Config{
		Redis: redis, Runner: scriptkit.NewRunner(redis, scriptkit.Options{}), Space: w.space, Settings: settings.Common{Linger: time.Minute},
	}).Face(w.kind)
}

// age makes all tombstones of a name as old as they get.
func (w *world) age(name string, v view) {
	w.Helper()
	const script = `return redis.call("ZADD", KEYS[1], 260 * 1e13 + ARGV[1], "t:" .. ARGV[2])`
	for claim := range v.tombs {
		w.do("EVAL", script, "1", w.lineKey(name), fmt.Sprint(v.now), claim)
	}
}
