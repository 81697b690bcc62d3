package semaphore_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// hold takes n permits, each of a name of its own.
func (n *node) hold(count int, opts *semaphore.AcquireOptions) {
	n.w.T.Helper()
	for i := range count {
		s, err := n.Semaphore(fmt.Sprint("held ", i), 1)
		require.NoError(n.w.T, err)
		_, err = s.Acquire(context.Background(), opts)
		require.NoError(n.w.T, err)
	}
}

// Close looks at its holds while others are being granted: each is given back once, by
// Close or by the acquire that may not have it any more.
func TestCloseGivesBackOnceWhatIsGrantedMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const held, asked = 260, 20 // more than Close gives back at a time
		n := w.node()
		n.connect()
		n.hold(held, nil)
		n.Reset()
		n.OnCommand(func(c link.Command) link.Fate {
			if asks(c, "acquire") || asks(c, "release") {
				return link.Slow(100 * ms)
			}
			return link.Pass
		})
		refused := make(chan error, asked)
		for i := range asked {
			go func() {
				s, err := n.Semaphore(fmt.Sprint("asked ", i), 1)
				if err == nil {
					_, err = s.Acquire(context.Background(), nil)
				}
				refused <- err
			}()
		}
		w.Advance(50 * ms)
		require.NoError(t, n.Client.Close(context.Background()))
		for range asked {
			require.ErrorIs(t, <-refused, berth.ErrClosed)
		}
		require.Equal(t, held+asked, n.asked("release"))
	})
}

// The same, where the hold is being taken up.
func TestCloseGivesBackWhatIsResumedMeanwhile(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		token := detach(t, w.node().take(1, &semaphore.AcquireOptions{Lease: berth.Forever}))
		n.Once("semaphore_resume", link.Slow(100*ms))
		resumed := make(chan error, 1)
		go func() {
			_, err := n.Resume(context.Background(), token)
			resumed <- err
		}()
		w.Advance(50 * ms)
		require.NoError(t, n.Client.Close(context.Background()))
		require.ErrorIs(t, <-resumed, berth.ErrClosed)
		w.RequireIdle()
	})
}

// A server that stands still for a while keeps nothing of what Close gives back, least
// of all what has no end.
func TestCloseOutlastsAServerThatStandsStill(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, &semaphore.AcquireOptions{Lease: berth.Forever})
		n.Stall()
		time.AfterFunc(4*time.Second, n.Flow)
		require.NoError(t, n.Client.Close(context.Background()))
		require.ErrorIs(t, p.Err(), berth.ErrReleased)
		w.RequireIdle()
	})
}

// What is given back for a caller who has left is not given up sooner than what a
// caller waits for.
func TestCloseIsBoundedByItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(1, &semaphore.AcquireOptions{Lease: berth.Forever})
		n.Stall()
		time.AfterFunc(7*time.Second, n.Flow)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		began := w.Now()
		require.ErrorIs(t, n.Client.Close(ctx), context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, w.Now()-began, "CleanupTimeout after ctx")
		require.NoError(t, n.Client.Close(context.Background()))
		w.RequireIdle()
	})
}

// Retry bounds Close once, and not once for each of its holds; what it could not give
// back is told.
func TestCloseOfManyHoldsIsBoundedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const held = 260 // more than are released at once
		n := w.node()
		n.hold(held, nil)
		n.Stall()
		began := w.Now()
		err := n.Client.Close(context.Background())
		require.Error(t, err)
		require.ErrorIs(t, err, berth.ErrUnavailable)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "nobody's context has ended")
		require.NotErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "250 more holds")
		require.LessOrEqual(t, w.Now()-began, 10*time.Second+2*time.Second)
		failed := 0
		for _, kind := range n.Kinds() {
			if kind == observe.ReleaseFailed {
				failed++
			}
		}
		require.Equal(t, held, failed)
		n.Flow()
		synctest.Wait()
	})
}
