package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
)

func TestCloseEndsWaitsAndGivesBackHolds(t *testing.T) {
	m := &mute{}
	onMute(t, m, func(t *testing.T, e *engine.Engine) {
		first, second, detached := take(t, e), take(t, e), take(t, e)
		require.NoError(t, detached.Detach(t.Context()))
		waiting := inBackground(func() error { return waits(context.Background(), e, time.Hour) })
		require.NoError(t, e.Close(t.Context()))
		err := <-waiting
		refusal, ok := errors.AsType[*berth.AcquireError](err)
		require.True(t, ok)
		require.Equal(t, berth.ReasonClosed, refusal.Reason)
		require.ErrorIs(t, err, berth.ErrClosed)
		require.NotErrorIs(t, err, berth.ErrBusy)
		for _, h := range []*engine.Hold{first, second, detached} {
			require.ErrorIs(t, h.Err(), berth.ErrReleased)
			require.NoError(t, h.Release(t.Context()), "it has been given back")
		}
		require.ErrorIs(t, waits(t.Context(), e, 0), berth.ErrClosed)
		require.ErrorIs(t, e.Begin(), berth.ErrClosed, "nothing is taken up either")
		require.NoError(t, e.Close(t.Context()), "again")
		asked, came := m.seen(t)
		require.Equal(t, 4, asked)
		require.Equal(t, make([]time.Duration, 3), came, "what is detached stays")
	})
}

// Close looks at its holds while others are being granted, and taken up: each is given
// back once, by Close or by the call that may not have it any more.
func TestCloseGivesBackOnceWhatComesMeanwhile(t *testing.T) {
	const held, asked, slow = 260, 20, 100 * time.Millisecond // more than Close gives back at a time
	m := &mute{}
	onMute(t, m, func(t *testing.T, e *engine.Engine) {
		for range held {
			take(t, e)
		}
		m.acquire = slow
		var asking []<-chan error
		for i := range asked {
			asking = append(asking, inBackground(func() error {
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if i%2 == 0 {
					ctx = context.Background() // it waits for its reply, whatever that brings
				}
				_, err := may(ctx, e, true)
				return err
			}))
		}
		require.NoError(t, e.Begin())
		after(slow / 2)
		m.silent(slow)
		closed := closes(e)
		h, err := e.Adopt(t.Context(), &engine.Claim{ID: "m.1", Name: "x", Record: engine.Record{Weight: 1, Wait: wait, Lease: wait}}, e.Now(), 1, "r1", wait)
		require.ErrorIs(t, err, berth.ErrClosed)
		require.Nil(t, h)
		e.End()
		for _, err := range asking {
			require.ErrorIs(t, <-err, berth.ErrClosed)
		}
		require.NoError(t, <-closed)
		_, came := m.seen(t)
		require.Len(t, came, held+asked+1)
		_, released := m.counts()
		require.Equal(t, held+asked+1, released)
	})
}

// What runs in the background is told that Close has begun, and Close waits for its end.
func TestCloseWaitsForTheBackground(t *testing.T) {
	onMute(t, &mute{}, func(t *testing.T, e *engine.Engine) {
		begun, ended := e.Now(), time.Duration(0)
		require.True(t, e.Background(func(closing <-chan struct{}) {
			<-closing
			after(time.Second)
			ended = e.Now()
		}))
		after(time.Second)
		require.NoError(t, e.Close(t.Context()))
		require.Equal(t, begun+2*time.Second, ended)
		require.False(t, e.Background(func(<-chan struct{}) { require.Fail(t, "it is closed") }))
	})
}

// Whoever leaves is told at once; what he leaves to do Close waits for.
func TestCloseWaitsForWhatLeaversLeftToDo(t *testing.T) {
	m := &mute{}
	onMute(t, m, func(t *testing.T, e *engine.Engine) {
		ctx, cancel := context.WithCancel(t.Context())
		waiting := inBackground(func() error { return waits(ctx, e, 0) })
		after(time.Second)
		m.silent(1500 * time.Millisecond)
		cancel()
		require.ErrorIs(t, <-waiting, context.Canceled)
		require.Equal(t, time.Second, e.Now())
		require.NoError(t, e.Close(t.Context()))
		require.Equal(t, 1500*time.Millisecond, e.Now())
		_, came := m.seen(t)
		require.Equal(t, []time.Duration{time.Second}, came)
	})
}

// Whoever gives back under a context that ends waits for CleanupTimeout more, and what was
// begun goes on: a later Close waits for it.
func TestAContextBoundsTheWaitForAReleaseAndNotTheRelease(t *testing.T) {
	calls := map[string]func(*engine.Engine, *engine.Hold) func(context.Context) error{
		"Close":   func(e *engine.Engine, _ *engine.Hold) func(context.Context) error { return e.Close },
		"Release": func(_ *engine.Engine, h *engine.Hold) func(context.Context) error { return h.Release },
	}
	for name, c := range map[string]struct {
		ends, speaks, returns time.Duration
		want                  error
	}{
		"ended already":                     {0, 7 * time.Second, cleanup, context.DeadlineExceeded},
		"ended already, and soon answered":  {0, time.Second, time.Second, nil},
		"ends":                              {3 * time.Second, 7 * time.Second, 5 * time.Second, context.DeadlineExceeded},
		"ends, and the answer comes after":  {3 * time.Second, 4 * time.Second, 4 * time.Second, nil},
		"ends, and the answer comes before": {3 * time.Second, time.Second, time.Second, nil},
	} {
		for call, of := range calls {
			t.Run(call+" "+name, func(t *testing.T) {
				m := &mute{}
				onMute(t, m, func(t *testing.T, e *engine.Engine) {
					h := take(t, e)
					m.silent(c.speaks)
					ctx, cancel := context.WithTimeout(context.Background(), c.ends)
					defer cancel()
					require.ErrorIs(t, of(e, h)(ctx), c.want)
					require.Equal(t, c.returns, e.Now())
					require.ErrorIs(t, h.Err(), berth.ErrReleased)
					require.NoError(t, e.Close(context.Background()))
					require.Equal(t, c.speaks, e.Now())
					require.NoError(t, h.Release(context.Background()), "it was given back")
					_, came := m.seen(t)
					require.Len(t, came, 1)
				})
			})
		}
	}
}

// A release of an engine that is closed leaves nothing running.
func TestAReleaseAfterCloseEndsWithItsWait(t *testing.T) {
	m := &mute{}
	onMute(t, m, func(t *testing.T, e *engine.Engine) {
		h := take(t, e)
		m.silent(time.Hour)
		require.ErrorIs(t, e.Close(context.Background()), berth.ErrUnavailable)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errMine)
		require.ErrorIs(t, h.Release(ctx), errMine)
		require.Equal(t, within+cleanup, e.Now())
		_, came := m.seen(t)
		require.Equal(t, []time.Duration{0, within}, came)
	})
}

// Retry bounds Close once, and not once for each of its holds; what it could not give
// back is told.
func TestRetryBoundsACloseOfManyHolds(t *testing.T) {
	const held, atOnce = 260, 256
	m := &mute{}
	onMute(t, m, func(t *testing.T, e *engine.Engine) {
		for range held {
			take(t, e)
		}
		m.silent(time.Hour)
		err := e.Close(context.Background())
		require.ErrorIs(t, err, berth.ErrUnavailable)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "nobody's context has ended")
		require.NotErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, fmt.Sprintf("%d more holds", held-10))
		require.Equal(t, within, e.Now())
		_, came := m.seen(t)
		require.Len(t, came, atOnce, "nothing more is sent then")
		require.Len(t, m.failures(), held)
	})
}

// What Retry bounds is how long no release at all is answered.
func TestACloseOutlastsAServerThatStandsStill(t *testing.T) {
	const held = 2*256 + 4
	m := &mute{}
	onMute(t, m, func(t *testing.T, e *engine.Engine) {
		for range held {
			take(t, e)
		}
		m.silent(9 * time.Second)
		time.AfterFunc(5*time.Second, func() { m.silent(18 * time.Second) })
		require.NoError(t, e.Close(context.Background()))
		require.Equal(t, 18*time.Second, e.Now())
		_, released := m.counts()
		require.Equal(t, held, released)
	})
}

func TestReleasesTogetherAreOne(t *testing.T) {
	m := &mute{}
	onMute(t, m, func(t *testing.T, e *engine.Engine) {
		h := take(t, e)
		m.silent(time.Second)
		var all []<-chan error
		for range 8 {
			all = append(all, inBackground(func() error { return h.Release(context.Background()) }))
		}
		for _, err := range all {
			require.NoError(t, <-err)
		}
		require.Equal(t, time.Second, e.Now())
		require.NoError(t, h.Release(context.Background()))
		_, came := m.seen(t)
		require.Len(t, came, 1)
	})
}

// A wait ends with what ended it first. Others were in the way only where the server has
// said so; and no removal overtakes the attempt that it is to remove.
func TestHowAWaitEnds(t *testing.T) {
	const end = 100 * time.Millisecond
	contexts := []error{context.Canceled, context.DeadlineExceeded, errMine}
	for name, c := range map[string]struct {
		ctx     func() (context.Context, context.CancelFunc)
		maxWait time.Duration
		reason  berth.Reason
		matches []error
	}{
		"cancelled": {reason: berth.ReasonCancelled, matches: []error{context.Canceled, errMine}, ctx: func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(context.Background())
			timer := time.AfterFunc(end, func() { cancel(errMine) })
			return ctx, func() { timer.Stop() }
		}},
		"the caller's deadline": {reason: berth.ReasonTimedOut, maxWait: time.Hour, matches: []error{context.DeadlineExceeded, errMine}, ctx: func() (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(context.Background(), end, errMine)
		}},
		"MaxWait": {reason: berth.ReasonTimedOut, maxWait: end, ctx: func() (context.Context, context.CancelFunc) {
			return context.WithCancel(context.Background())
		}},
	} {
		for state, slow := range map[string]time.Duration{"it waits": 0, "its acquire is on its way": 5 * end} {
			t.Run(name+" while "+state, func(t *testing.T) {
				m := &mute{acquire: slow}
				onMute(t, m, func(t *testing.T, e *engine.Engine) {
					ctx, cancel := c.ctx()
					defer cancel()
					err := waits(ctx, e, c.maxWait)
					require.Equal(t, end, e.Now())
					refusal, ok := errors.AsType[*berth.AcquireError](err)
					require.True(t, ok)
					require.Equal(t, end, refusal.Waited)
					reason := c.reason
					if slow > 0 && reason == berth.ReasonTimedOut {
						reason = berth.ReasonFailed
					}
					require.Equal(t, reason, refusal.Reason)
					require.Equal(t, reason == berth.ReasonTimedOut, errors.Is(err, berth.ErrBusy))
					for _, of := range contexts {
						require.Equal(t, slices.Contains(c.matches, of), errors.Is(err, of), "%v", of)
					}
					after(time.Minute)
					asked, came := m.seen(t)
					require.Equal(t, 1, asked)
					require.Equal(t, []time.Duration{max(end, slow)}, came)
					require.Empty(t, m.failures())
				})
			})
		}
	}
}

func TestWhoComesWithAContextThatHasEndedSendsNothing(t *testing.T) {
	m := &mute{}
	onMute(t, m, func(t *testing.T, e *engine.Engine) {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errMine)
		err := waits(ctx, e, time.Hour)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errMine)
		asked, came := m.seen(t)
		require.Zero(t, asked)
		require.Empty(t, came)
	})
}

// A removal that fails is told, and given up.
func TestARemovalThatFailsIsTold(t *testing.T) {
	m := &mute{}
	onMute(t, m, func(t *testing.T, e *engine.Engine) {
		m.silent(time.Hour)
		require.ErrorIs(t, waits(context.Background(), e, time.Second), berth.ErrBusy)
		after(cleanup - 1)
		require.Empty(t, m.failures())
		after(1)
		require.Len(t, m.failures(), 1)
		after(time.Minute)
		_, came := m.seen(t)
		require.Equal(t, []time.Duration{time.Second}, came)
	})
}
