package once_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

// loop runs in the background until the test ends, and records when each run began.
func (n *process) loop(cfg once.Config, f once.Func) (began *[]time.Duration, stop func() error) {
	n.w.T.Helper()
	began = new([]time.Duration)
	call := testkit.Queue(context.Background(), n.w.World, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, n.job(cfg).Run(ctx, func(ctx context.Context, run *once.Run) error {
			*began = append(*began, n.w.Now())
			return f(ctx, run)
		})
	})
	stop = func() error {
		call.Cancel(errMine)
		<-call.Done
		return call.Err
	}
	n.w.T.Cleanup(func() { _ = stop() })
	return began, stop
}

// A failure in a period of other settings, which starts later, is told once: nothing can begin before the
// period is over.
func TestALoopLeavesAPeriodInWhichOthersGoByAnotherLength(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, m := w.node(), w.node()
		w.Until(20 * time.Minute)
		n.ran(once.Config{Every: 20 * time.Minute}, errMine)
		m.loop(hourly, never(t))
		w.Until(59 * time.Minute)
		late := m.Told(observe.NotBegun)
		require.Len(t, late, 1)
		require.ErrorIs(t, late[0].Err, once.ErrLate)
	})
}

func TestEachMissedPeriodIsToldOnce(t *testing.T) {
	const period = 10 * time.Minute
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		single := once.Config{Every: period, Attempts: 2}
		missed := func() (count int) {
			for _, e := range n.Told(observe.Missed) {
				count += e.Count
			}
			return count
		}
		n.ran(single, nil)
		w.Until(period)
		n.ran(single, errMine)
		n.ran(single, errMine)
		require.Zero(t, missed())
		w.Until(2 * period)
		n.ran(single, errMine)
		n.ran(single, errMine)
		require.Equal(t, 1, missed(), "the second one")
		w.Until(4 * period)
		require.Equal(t, 2, n.ran(single, nil).Missed)
		require.Equal(t, 3, missed(), "the third and the fourth")
		w.Until(5 * period)
		n.ran(single, nil)
		require.Equal(t, 3, missed())
		ran := n.Told(observe.Ran)
		require.Len(t, ran, 3)
		require.Equal(t, "once", ran[0].Primitive)
		require.Equal(t, digest, ran[0].Name)
		require.Equal(t, ms, ran[0].Held)

		w.Until(7 * period)
		n.OnCommand(on("once_begin", link.LoseReply, func() {}))
		_, _ = n.fails(single, berth.ErrUnavailable)
		n.OnCommand(nil)
		require.Equal(t, 1, n.ran(single, nil).Missed, "though the first begin was not answered")
		require.Equal(t, 4, missed())
	})
}

// However short the loop is to rest after a failure of f, it asks what refuses it once a minute.
func TestALoopThatIsRefusedAsksOnceAMinute(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.Do("SET", record, "x")
		n.Fresh()
		n.loop(once.Config{Every: hour, RetryAfter: ms}, never(t))
		w.Until(10 * time.Minute)
		require.Equal(t, 11, n.Count("HMGET"))
	})
}

func TestAPeriodThatNobodyCouldBeginIsTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		lock, err := w.locks().Lock(t.Context(), digest, nil)
		require.NoError(t, err)
		began, _ := n.loop(once.Config{Every: time.Minute}, takes(0, nil))
		w.Until(2*time.Minute + time.Second)
		require.NoError(t, lock.Release(t.Context()))
		w.Until(2*time.Minute + 2*time.Second)
		require.Len(t, *began, 1)
		late := n.Told(observe.NotBegun)
		require.Len(t, late, 2)
		require.ErrorIs(t, late[0].Err, once.ErrLate)
	})
}

func TestADrainingProcessLeavesThePeriodToOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old, other := w.node(node.Config{Label: "old"}), w.node()
		began, _ := old.loop(hourly, takes(time.Minute, nil))
		w.Advance(time.Second)
		w.Notice("l:old", 0, "drain")
		w.Until(hour)
		require.Len(t, *began, 1)
		require.Len(t, old.Told(observe.Ran), 1, "it finishes what it runs")
		other.ran(hourly, nil)
		w.Until(2*hour + time.Minute)
		require.Len(t, *began, 1)
		require.Len(t, old.Told(observe.NotBegun), 2, "once in a period")
		w.Notice("l:old", 0, "stop")
		w.Until(3*hour - ms)
		require.Len(t, *began, 2, "it drains no longer, and runs the period after all")
		require.InDelta(t, (2*hour + time.Minute).Seconds(), (*began)[1].Seconds(), 7)
	})
}

// Fifty nodes ask by their own clocks, which are up to four minutes apart from the server's either
// way, at each half minute of their own. What period that is, the server decides.
func TestFiftyNodesWhoseClocksAreMinutesApartDoEachPeriodOnce(t *testing.T) {
	const nodes, every = 50, time.Minute
	periods := time.Duration(40 * amount.Times())
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var asking sync.WaitGroup
		runs := map[time.Time][]int64{} // guarded by mu: of each period the fences of its runs
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
						mu.Lock()
						runs[run.Period().Start] = append(runs[run.Period().Start], run.Fence())
						mu.Unlock()
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
		require.GreaterOrEqual(t, len(runs), int(periods)-2, "all but the first ones")
		for period, fences := range runs {
			require.Len(t, fences, 1, period)
		}
	})
}

// course is what happens while a loop runs: at some moments, in order.
type course []struct {
	at   time.Duration
	what func(w *world, n *process)
}

func cut(_ *world, n *process) { n.Cut() }

func mend(_ *world, n *process) { n.Mend() }

func flush(w *world, _ *process) { w.Do("FLUSHALL") }

func nothing(*world, *process) {}

func TestWhenALoopRuns(t *testing.T) {
	for row, c := range map[string]struct {
		cfg   once.Config
		f     once.Func
		late  bool // the second run, by up to two minutes: its server was away
		while course
		began []time.Duration
	}{
		"as soon as a period starts": {
			hourly, takes(time.Minute, nil), false,
			course{{3 * hour, nothing}},
			[]time.Duration{0, hour, 2 * hour, 3 * hour},
		},
		"again after a failure": {
			once.Config{Every: hour, Attempts: 2},
			takes(0, errMine), false,
			course{{hour + 30*time.Minute, func(_ *world, n *process) {
				failed := n.Told(observe.RunFailed)
				require.Len(n.w.T, failed, 4, "each attempt")
				require.Equal(n.w.T, []any{"2026-01-01T00:00:00Z", 1}, []any{failed[0].Detail, failed[0].Count})
				used := n.Told(observe.NotBegun)
				require.Len(n.w.T, used, 2, "and that they are used up")
				require.Equal(n.w.T, "2026-01-01T00:00:00Z", used[0].Detail)
				require.ErrorIs(n.w.T, used[0].Err, once.ErrUsedUp)
				missed := n.Told(observe.Missed)
				require.Len(n.w.T, missed, 1)
				require.Equal(n.w.T, 1, missed[0].Count)
			}}},
			[]time.Duration{0, time.Minute, hour, hour + time.Minute},
		},
		"after a rest as long as it says": {
			once.Config{Every: hour, RetryAfter: time.Second},
			takes(0, errMine), false,
			course{{30 * time.Minute, nothing}},
			[]time.Duration{0, time.Second, 2 * time.Second},
		},
		// Each turn is told, none as a run that failed.
		"on, though its server was away for two hours": {
			hourly, takes(0, nil), true,
			course{{30 * time.Minute, cut}, {150 * time.Minute, mend}, {200 * time.Minute, func(_ *world, n *process) {
				require.NotEmpty(n.w.T, n.Told(observe.NotBegun))
				for _, e := range n.Told(observe.NotBegun) {
					require.ErrorIs(n.w.T, e.Err, berth.ErrUnavailable)
				}
				require.Empty(n.w.T, n.Told(observe.RunFailed))
			}}},
			[]time.Duration{0, 2*hour + 30*time.Minute, 3 * hour},
		},
		// However long it is to rest after a failure of f, it asks a server that did not answer within a minute.
		"in the period in which its server comes back": {
			once.Config{Every: hour, RetryAfter: 2 * hour},
			takes(0, nil), true,
			course{{hour - time.Second, cut}, {hour + 20*time.Second, mend}, {3*hour + time.Second, func(_ *world, n *process) {
				require.Empty(n.w.T, n.Told(observe.Missed))
			}}},
			[]time.Duration{0, hour + 20*time.Second, 2 * hour, 3 * hour},
		},
		// Nobody hears of a success for longer than the lease. The process that knows of it tells it later.
		"not again what the server has not heard of": {
			hourly, takes(time.Second, nil), false,
			course{{time.Second - ms, cut}, {10 * time.Minute, mend}, {20 * time.Minute, func(w *world, _ *process) {
				w.node().finds(hourly, once.Done)
			}}},
			[]time.Duration{0},
		},
		// The server loses all of the run meanwhile. The process goes on, and tells of its success.
		"on after a run that took longer than its period": {
			once.Config{Every: time.Minute},
			takes(90*time.Second, nil), false,
			course{{30 * time.Second, flush}, {91 * time.Second, func(_ *world, n *process) {
				require.Equal(n.w.T, "2026-01-01T00:00:00Z", n.last().Success.Period.String())
			}}},
			[]time.Duration{0, 90 * time.Second},
		},
	} {
		inWorldOf(t, row, func(t *testing.T, w *world) {
			n := w.node()
			began, stop := n.loop(c.cfg, c.f)
			for _, step := range c.while {
				w.Until(step.at)
				step.what(w, n)
			}
			require.ErrorIs(t, stop(), errMine)
			require.Len(t, *began, len(c.began), "%v", *began)
			for i, at := range c.began {
				slack := ms
				if i == 1 && c.late {
					slack = 2 * time.Minute
				}
				require.GreaterOrEqual(t, (*began)[i], at)
				require.Less(t, (*began)[i], at+slack)
			}
		})
	}
}

func TestALoopLooksOnceEachPeriod(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.Advance(10 * time.Minute)
		_, stop := n.loop(hourly, takes(time.Minute, nil))
		w.Until(4 * hour)
		require.ErrorIs(t, stop(), errMine)
		require.Equal(t, 4, n.Count("HMGET")-n.Count("HLEN")-1, "beside the notice one look for each period, and the one that stop ended")
	})
}
