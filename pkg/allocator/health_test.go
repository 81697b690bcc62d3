package allocator_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// requireProgress fails unless a check was told of step by step, up to so many, and ended with this error.
func (n *proc) requireProgress(checked int, end error) {
	n.w.T.Helper()
	told := n.Told(observe.HealthProgress)
	require.Len(n.w.T, told, checked)
	for i, e := range told {
		require.Equal(n.w.T, i+1, e.Count, "one after the other")
	}
	ended := n.Told(observe.HealthChecked)
	require.Len(n.w.T, ended, 1)
	require.Equal(n.w.T, checked, ended[0].Count)
	require.ErrorIs(n.w.T, ended[0].Err, end)
}

func TestWhatIsNotHealthyRestsAndItsValueIsClosed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("good", "bad", "shut", "panics", "long", "fine", "leased", "rests")
		var closed []string
		n := w.nodeOf(allocator.Config[string]{
			Cooldown: time.Hour, FailureRest: 90 * time.Second,
			Open: func(_ context.Context, key string) (string, error) {
				if key == "shut" {
					return "", errors.New("no answer")
				}
				return key, nil
			},
			Close: func(key string) error { closed = append(closed, key); return nil },
			Healthy: func(_ context.Context, key string) error {
				switch key {
				case "bad":
					return errMine
				case "long":
					return errors.New(strings.Repeat("я", 300))
				case "panics":
					panic("mine")
				}
				return nil
			},
		})
		n.take(names("leased"))
		require.NoError(t, n.Rest(t.Context(), "rests", time.Hour, "mine", nil))
		report := must(n.CheckHealth(t.Context(), 1))(t)
		require.Equal(t, allocator.HealthReport{Checked: 6, Healthy: 2, Unhealthy: 4, Skipped: 2}, report)
		require.Equal(t, allocator.Free, w.status("good").State, "a check is no use, so it has no cooldown")
		unwell := make(map[string]error)
		for _, e := range n.Told(observe.Unhealthy) {
			unwell[e.Resource] = e.Err
		}
		require.Len(t, unwell, 4)
		for key, reason := range map[string]string{
			"bad": errMine.Error(), "shut": "no answer", "long": strings.Repeat("я", 256), "panics": "berth: Healthy panicked: mine",
		} {
			info := w.status(key)
			require.Equal(t, 90*time.Second, info.Left, key)
			require.Contains(t, info.Reason, reason)
			require.LessOrEqual(t, len(info.Reason), 512)
			require.ErrorContains(t, unwell[key], reason)
		}
		synctest.Wait()
		require.ElementsMatch(t, []string{"bad", "panics", "long"}, closed)
		n.requireProgress(6, nil)
		require.Equal(t, 1, w.inspect().Holders, "the one that was taken")
	})
}

// What has left, or is held, since it was listed is no fault.
func TestWhatIsNotThereAnyMoreIsLeftAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.nodeOf(allocator.Config[string]{})
		n.connect()
		var listed sync.Once
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "pool_acquire" {
				listed.Do(func() {
					require.NoError(t, change(w.pool.Remove(t.Context(), []string{"a"})))
					w.occupy("x")
				})
			}
			return link.Pass
		})
		report, err := n.CheckHealth(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, allocator.HealthReport{Skipped: 2}, report)
	})
}

func TestAsManyAsThereAreWorkersAreCheckedAtOnce(t *testing.T) {
	inEach(t, map[string]int{"one": 1, "some": 4, "too many": 1 << 40}, func(t *testing.T, w *world, workers int) {
		w.add(many("x", 10)...)
		var now, most atomic.Int64
		n := w.nodeOf(allocator.Config[string]{Healthy: func(context.Context, string) error {
			most.Store(max(most.Load(), now.Add(1)))
			<-time.After(time.Second)
			now.Add(-1)
			return nil
		}})
		report, err := n.CheckHealth(t.Context(), workers)
		require.NoError(t, err)
		require.Equal(t, allocator.HealthReport{Checked: 10, Healthy: 10}, report)
		atOnce := min(workers, 10)
		require.EqualValues(t, atOnce, most.Load())
		require.Equal(t, time.Duration((10+atOnce-1)/atOnce)*time.Second, w.Now())
		n.requireProgress(10, nil)
	})
}

func TestTheEndOfTheContextEndsTheCheckSoonAndCondemnsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c", "d")
		ctx, cancel := context.WithCancelCause(context.Background())
		var first atomic.Bool
		n := w.nodeOf(allocator.Config[string]{Healthy: func(ctx context.Context, _ string) error {
			if first.CompareAndSwap(false, true) {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}})
		time.AfterFunc(time.Second, func() { cancel(errMine) })
		report, err := n.CheckHealth(ctx, 2)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errMine)
		require.Equal(t, allocator.HealthReport{Checked: 1, Healthy: 1}, report)
		require.Equal(t, time.Second, w.Now())
		require.Len(t, w.list(), 4)
		n.requireProgress(1, errMine)
		w.requireIdle()

		n.Fresh()
		for range 20 { // where a select tosses a coin
			require.ErrorIs(t, second(n.CheckHealth(ctx, 2)), errMine)
		}
		require.Zero(t, n.Count("pool_acquire"), "nothing is begun")
	})
}

// The lease of a claim whose ctx's deadline has passed matches ErrBusy, but nobody was in its way.
func TestADeadlineIsNotMistakenForAResourceInUse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.node()
		n.connect()
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "pool_acquire" {
				return link.LoseRequest
			}
			return link.Pass
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		report, err := n.CheckHealth(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, report)
		n.OnCommand(nil)
	})
}

func TestALostHoldSaysNothingOfItsResource(t *testing.T) {
	inEach(t, map[string]string{"of Open": "Open", "of Healthy": "Healthy"}, func(t *testing.T, w *world, when string) {
		w.add("a", "b")
		var closed []string
		lost := func(ctx context.Context, at, resource string) error {
			if at != when || resource != "a" {
				return nil
			}
			if at == "Open" {
				require.NoError(t, w.force(w.holder("a")))
			} else {
				w.Do("FLUSHALL")
				w.add("a", "b")
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		n := w.nodeOf(allocator.Config[string]{
			Open:    func(ctx context.Context, key string) (string, error) { return key, lost(ctx, "Open", key) },
			Close:   func(key string) error { closed = append(closed, key); return nil },
			Healthy: func(ctx context.Context, key string) error { return lost(ctx, "Healthy", key) },
		})
		report, err := n.CheckHealth(t.Context(), 1)
		require.NoError(t, err)
		require.Equal(t, allocator.HealthReport{Checked: 1, Healthy: 1, Skipped: 1}, report)
		require.ElementsMatch(t, []string{"a", "b"}, w.list())
		require.Empty(t, closed)
	})
}

func TestAnErrorOfTheServerEndsTheCheckAndWhatWasFoundIsReturned(t *testing.T) {
	type row struct {
		call    string
		checked int
	}
	inEach(t, map[string]row{
		"an allocation": {"pool_acquire", 2}, "a release": {"pool_release", 3}, "the listing": {"HSCAN", 0},
	}, func(t *testing.T, w *world, c row) {
		w.add(many("x", 7)...)
		n := w.node()
		n.connect()
		var calls atomic.Int64
		n.OnCommand(func(command link.Command) link.Fate {
			if command.Name == c.call && (c.checked == 0 || calls.Add(1) > 2) {
				return link.Refuse("ERR my own reason")
			}
			return link.Pass
		})
		report, err := n.CheckHealth(t.Context(), 1)
		require.ErrorContains(t, err, "my own reason")
		require.GreaterOrEqual(t, report.Checked, c.checked)
		require.LessOrEqual(t, report.Checked, c.checked+1, "one may have begun before the error was known")
		require.Equal(t, report.Checked, report.Healthy)
		n.requireProgress(report.Checked, err)
		n.OnCommand(nil)
	})
}

func TestAClosedPoolCondemnsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		var n *proc
		closed := make(chan error, 1)
		n = w.nodeOf(allocator.Config[string]{Healthy: func(context.Context, string) error {
			go func() { closed <- n.Pool.Close(context.Background()) }()
			<-time.After(time.Second)
			return errMine
		}})
		report, err := n.CheckHealth(t.Context(), 1)
		require.ErrorIs(t, err, berth.ErrClosed)
		require.Zero(t, report)
		require.NoError(t, <-closed)
		require.ElementsMatch(t, []string{"a", "b"}, w.list())
	})
}
