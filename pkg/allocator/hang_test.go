package allocator_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// hang is what a proxy is like whose packets go nowhere: it hangs until its
// context ends.
func hang(ctx context.Context, key string) (string, error) {
	<-ctx.Done()
	return "", fmt.Errorf("dial %s: %w", key, ctx.Err())
}

// brief is a context that ends soon.
func brief(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*ms)
	t.Cleanup(cancel)
	return ctx
}

func TestAResourceThatHangsIsFoundOutHoweverShortItsCallersPatience(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("dead")
		var opens atomic.Int32
		n := w.nodeOf(allocator.Config[string]{Open: func(ctx context.Context, key string) (string, error) {
			opens.Add(1)
			return hang(ctx, key)
		}, OpenTimeout: 10 * time.Second, FailureRest: time.Minute})
		_, err := n.Allocate(brief(t), nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.NotErrorIs(t, err, berth.ErrBusy, "it was granted")
		require.EqualError(t, err, `berth: "proxies" not acquired: failed: context deadline exceeded while Open ran`)
		require.Equal(t, 300*ms, w.Now(), "its caller does not wait for it")
		require.Equal(t, allocator.Leased, w.status("dead").State, "nobody else is to hang by it")

		w.Until(10*time.Second - ms)
		require.Equal(t, allocator.Leased, w.status("dead").State)
		w.Advance(ms)
		info := w.status("dead")
		require.Equal(t, allocator.Resting, info.State)
		require.Equal(t, time.Minute, info.Left)
		require.Equal(t, "dial dead: context deadline exceeded", info.Reason)
		require.Len(t, n.Told(observe.OpenFailed), 1)
		require.EqualValues(t, 1, opens.Load())
		w.inspect()

		w.Advance(time.Minute) // and one who waits for it is told so
		_, err = n.Allocate(t.Context(), nil)
		require.EqualError(t, err, `berth: "proxies" not acquired: failed: dial dead: context deadline exceeded`)
		require.NotErrorIs(t, err, berth.ErrBusy)
		require.Equal(t, 80*time.Second, w.Now())
		require.Equal(t, allocator.Resting, w.status("dead").State)
	})
}

func TestWhatIsOpenedForACallerWhoHasLeftIsKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("slow")
		var opens, closed atomic.Int32
		n := w.nodeOf(allocator.Config[string]{Open: func(_ context.Context, key string) (string, error) {
			opens.Add(1)
			time.Sleep(time.Second) // of virtual time
			return key + " opened", nil
		}, Close: func(string) error {
			closed.Add(1)
			return nil
		}})
		require.ErrorIs(t, second(n.Allocate(brief(t), nil)), context.DeadlineExceeded)
		w.Until(time.Second)
		require.Equal(t, allocator.Free, w.status("slow").State, "it is given back")
		a, err := n.TryAllocate(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "slow opened", a.Value())
		require.EqualValues(t, 1, opens.Load())
		require.Empty(t, n.Told(observe.OpenFailed))
		w.release(a)
		require.NoError(t, change(n.Remove(t.Context(), []string{"slow"})))
		require.EqualValues(t, 1, closed.Load(), "nobody uses it any more")
	})
}

func TestAPanicOfAnOpenThatNobodyWaitsForIsAFailure(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.nodeOf(allocator.Config[string]{Open: func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			panic("mine")
		}, OpenTimeout: time.Second})
		require.ErrorIs(t, second(n.Allocate(brief(t), nil)), context.DeadlineExceeded)
		w.Until(time.Second)
		require.Equal(t, "berth: Open panicked: mine", w.status("a").Reason)
		require.Len(t, n.Told(observe.OpenFailed), 1)
	})
}

func TestCloseEndsAnOpenThatNobodyWaitsFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("dead")
		n := w.nodeOf(allocator.Config[string]{Open: hang})
		require.ErrorIs(t, second(n.Allocate(brief(t), nil)), context.DeadlineExceeded)
		require.NoError(t, n.node.Close(t.Context()))
		require.Equal(t, 300*ms, w.Now())
		require.Equal(t, allocator.Free, w.status("dead").State, "that it was told to end says nothing of it")
		w.requireIdle()
	})
}

func TestAHealthyThatHangsIsAnErrorOfTheResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("dead", "good")
		n := w.nodeOf(allocator.Config[string]{
			OpenTimeout: time.Second,
			Healthy: func(ctx context.Context, key string) error {
				if key == "good" {
					return nil
				}
				<-ctx.Done()
				return context.Cause(ctx)
			},
		})
		var ran []string
		require.NoError(t, n.DoHealthy(t.Context(), nil, func(_ context.Context, a *allocator.Allocation[string]) error {
			ran = append(ran, a.Value())
			return nil
		}))
		require.Equal(t, []string{"good"}, ran)
		require.Equal(t, "berth: OpenTimeout has passed: context deadline exceeded", w.status("dead").Reason)
		require.NoError(t, w.pool.Rest(t.Context(), "dead", 0, "", nil))
		report, err := n.CheckHealth(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, allocator.HealthReport{Checked: 2, Healthy: 1, Unhealthy: 1}, report)
		require.Equal(t, 2*time.Second, w.Now())
	})
}

func TestWhoFindsThePoolEmptyIsToldWhyTheSourceHasNotFilledIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var open atomic.Bool
		n := w.nodeOf(allocator.Config[string]{Source: func(context.Context) ([]string, error) {
			if open.Load() {
				return []string{"a"}, nil
			}
			return nil, errMine
		}})
		w.Advance(0)
		_, err := n.TryAllocate(t.Context(), nil)
		require.EqualError(t, err, `berth: "proxies" not acquired: empty (held 0, waiting 0): `+
			`the pool could not be refreshed: my own reason`)
		require.ErrorIs(t, err, errMine)
		require.ErrorIs(t, err, berth.ErrBusy)
		_, err = n.Allocate(brief(t), nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errMine)

		w.add("by hand")
		held := n.takes("by hand", nil)
		_, err = n.TryAllocate(t.Context(), nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		require.NotErrorIs(t, err, errMine, "it is not empty")
		w.release(held)

		open.Store(true)
		w.Advance(time.Minute)
		w.release(n.takes("a", nil))
		require.NoError(t, change(w.pool.Clear(t.Context())))
		a, err := n.TryAllocate(t.Context(), nil)
		require.NoError(t, err)
		w.release(a)
		require.NoError(t, change(w.pool.Clear(t.Context())))
		_, err = n.TryAllocate(t.Context(), nil)
		require.ErrorIs(t, err, berth.ErrBusy, "Source was asked a moment ago")
		require.NotErrorIs(t, err, errMine, "the last refresh went well")
	})
}
