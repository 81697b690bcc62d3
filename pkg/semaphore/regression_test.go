package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

// A token serves once: the handle that somebody has keeps its hold.
func TestASecondResumeTakesNothingAway(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		token, err := a.take(1, nil).Detach(ctx)
		require.NoError(t, err)
		first, err := b.Resume(ctx, token)
		require.NoError(t, err)
		_, err = b.Resume(ctx, token)
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		require.NoError(t, first.Err())
		require.Equal(t, 1, w.stats().Held)
		require.NoError(t, first.Release(ctx))
		w.RequireIdle()
	})
}

// The process that detached a permit has resumed it, and has not heard so: it
// may ask again, and its old handle keeps nothing alive.
func TestAnUnheardResumeCanBeRepeatedInTheSameProcess(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a := w.node()
		old := a.take(1, nil)
		token, err := old.Detach(ctx)
		require.NoError(t, err)
		r := w.Call("semaphore_resume", "60000", "berth:wake:", gpu, token.Node, token.Claim, token.Node, "beat")
		require.Equal(t, "resumed", r.Status(), "as an attempt does whose answer is lost")
		p, err := a.Resume(ctx, token)
		require.NoError(t, err)
		w.Advance(3 * lease)
		require.NoError(t, p.Err())
		require.ErrorIs(t, old.Err(), berth.ErrReleased)
		require.NoError(t, p.Release(ctx))
		w.RequireIdle()
	})
}

func TestAnUnheardResumeThatNobodyRepeatsEndsWithItsLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.node()
		old := a.take(1, nil)
		token, err := old.Detach(context.Background())
		require.NoError(t, err)
		r := w.Call("semaphore_resume", "60000", "berth:wake:", gpu, token.Node, token.Claim, token.Node, "beat")
		require.Equal(t, "resumed", r.Status())
		w.Advance(lease + ms)
		require.Zero(t, w.stats().Held)
	})
}

// The first own call after a hand-off starts a lease that is shorter than what was
// left of the wait lease. It may be a heartbeat that is on its way already: so the
// caller gets the permit only after a call that was answered.
func TestALeaseBelowTheWaitLeaseIsConfirmedBeforeItIsBelieved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		q := b.queue(1, &semaphore.AcquireOptions{Lease: time.Second})
		b.Reset()
		require.NoError(t, p.Release(ctx))
		held := q.Granted(w.Now())
		require.Equal(t, 1, b.Count("semaphore_renew"))
		require.LessOrEqual(t, held.Left(), time.Second)
	})
}

// What the server refuses for good ends a wait, which else nobody would hear of.
func TestAWaitThatIsRefusedForGoodEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		a.take(1, nil)
		q := b.queue(1, nil)
		w.SetCount("fmt", 3)
		<-q.Done
		require.ErrorIs(t, q.Err, berth.ErrIncompatible)
		require.LessOrEqual(t, q.At, lease/3)
		w.SetCount("fmt", 2)
	})
}

func TestResumeOnAClosedClientTakesNothingUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b, c := w.node(), w.node(), w.node()
		token, err := a.take(1, nil).Detach(ctx)
		require.NoError(t, err)
		b.Shut()
		_, err = b.Resume(ctx, token)
		require.ErrorIs(t, err, berth.ErrClosed)
		p, err := c.Resume(ctx, token)
		require.NoError(t, err)
		require.NoError(t, p.Release(ctx))
	})
}
