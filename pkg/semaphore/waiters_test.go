package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// The end of every process in these tests looks at that too: see testkit.Process.Shut.
func TestTheEventsSayHowManyWaitForAPermit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		p := w.node().take(1, nil)
		granted, leaves, late := n.queue(1, nil), n.queue(1, nil), n.queue(1, &semaphore.AcquireOptions{MaxWait: 10 * lease})
		require.Equal(t, 3, n.Waiting())
		_, err := n.gpu(1).TryAcquire(ctx, nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		require.Equal(t, 3, n.Waiting())

		w.Do("FLUSHALL")
		w.Advance(2 * lease)
		require.NotEmpty(t, n.Told(observe.Restored))
		_ = p.Release(ctx)
		<-granted.Done
		require.Equal(t, 2, n.Waiting())
		leaves.Cancel(nil)
		<-leaves.Done
		require.Equal(t, 1, n.Waiting())
		<-late.Done
		require.Zero(t, n.Waiting())

		n.queue(1, nil)
		require.Equal(t, 1, n.Waiting())
		require.NoError(t, n.Close(ctx))
		require.Zero(t, n.Waiting())
	})
}

// traced is where a context has its trace in these tests.
type traced struct{}

func TestAnEventHasTheValuesOfTheCallThatCausedIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		call := func(trace string) context.Context { return context.WithValue(context.Background(), traced{}, trace) }
		traces := func(kind observe.Kind) (all []any) {
			for _, e := range n.Told(kind) {
				all = append(all, e.Context.Value(traced{}))
				require.Nil(t, e.Context.Done())
			}
			return all
		}
		ctx, leave := context.WithCancel(call("acquire"))
		p, err := n.gpu(1).Acquire(ctx, nil)
		require.NoError(t, err)
		leave()
		q := n.queueOn(call("wait"), n.gpu(1), nil)
		require.NoError(t, p.Release(call("release")))
		<-q.Done
		synctest.Wait()
		require.Equal(t, []any{"acquire", "wait"}, traces(observe.Granted))
		require.Equal(t, []any{"wait"}, traces(observe.Queued))
		require.Equal(t, []any{"release"}, traces(observe.Released))

		left := n.queueOn(call("left"), n.gpu(1), nil)
		left.Cancel(nil)
		<-left.Done
		require.Equal(t, []any{"left"}, traces(observe.Cancelled), "a context that has ended")

		w.Do("FLUSHALL")
		<-q.Got.Done()
		synctest.Wait()
		require.Equal(t, []any{"wait"}, traces(observe.Lost), "of the call that acquired it")

		last, err := n.gpu(1).Acquire(call("last"), nil)
		require.NoError(t, err)
		require.NoError(t, n.Close(call("close")))
		require.Error(t, last.Err())
		require.Equal(t, []any{"release", "close"}, traces(observe.Released))
	})
}
