package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/observe"
)

// A node in a swarm outlives its time: by its own clock, of which Passed tells; as others say,
// of whom Settle asks; and its engine is abandoned.

// outlived is a node of which a test says that its time has passed.
type outlived struct {
	passed atomic.Bool
	settle func(ctx context.Context) // what asking the others does; nil for nothing
}

func (o *outlived) configure(cfg *engine.Config) {
	cfg.Passed = o.passed.Load
	cfg.Settle = func(ctx context.Context) {
		if o.settle != nil {
			o.settle(ctx)
		}
	}
}

// acquire asks for a claim in the background.
func acquire(ctx context.Context, e *engine.Engine, maxWait time.Duration, noRenew bool) <-chan error {
	c := claimOf(e, "y")
	c.Record.NoRenew = noRenew
	return asksInBackground(ctx, e, c, maxWait)
}

// requireRefused fails unless an acquire has returned, and was refused for the reason.
func requireRefused(t *testing.T, returned <-chan error, reason berth.Reason, cause error) {
	t.Helper()
	synctest.Wait()
	require.Len(t, returned, 1)
	refusal := refused(t, <-returned)
	require.Equal(t, reason, refusal.Reason)
	require.ErrorIs(t, refusal.Cause, cause)
}

// ends are the events of handles that ended.
func ends(kinds []observe.Kind) (found []observe.Kind) {
	for _, k := range kinds {
		switch k {
		case observe.Lost, observe.Expired, observe.Released, observe.ReleasedByOther, observe.Detached, observe.ReleaseFailed, observe.CleanupFailed:
			found = append(found, k)
		}
	}
	return found
}

func TestAnEngineThatIsAbandonedEndsWhatItHasAtOnce(t *testing.T) {
	p := &played{answers: []reply{{Status: isHeld}, {Status: isWaiting}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind) {
		holds := []*engine.Hold{take(t, e), take(t, e, func(r *engine.Record) { r.NoRenew = true })}
		p.queues = true
		returned := acquire(context.Background(), e, 0, false)

		under := holds[0].Context()
		require.Equal(t, 2, e.Abandon(), "handles")
		require.ErrorIs(t, context.Cause(under), berth.ErrLost, "before anybody asks")
		for _, h := range holds {
			require.ErrorIs(t, h.Err(), berth.ErrLost)
			require.ErrorIs(t, context.Cause(h.Context()), berth.ErrLost)
		}
		requireRefused(t, returned, berth.ReasonClosed, engine.ErrReplaced)
		require.Equal(t, []observe.Kind{observe.Lost, observe.Lost}, ends(kinds()))
		require.EqualValues(t, 3, p.released.Load(), "both holds, and what waited")
		for _, h := range holds {
			require.ErrorIs(t, h.Release(context.Background()), berth.ErrLost, "it was given back before")
		}

		require.Zero(t, e.Abandon())
		requireRefused(t, acquire(context.Background(), e, 0, false), berth.ReasonClosed, engine.ErrReplaced)
		require.ErrorIs(t, e.Begin(), engine.ErrReplaced)
		require.EqualValues(t, 3, p.released.Load(), "once each")
		require.Equal(t, []observe.Kind{observe.Lost, observe.Lost}, ends(kinds()))
	})
}

func TestWhatIsTakenUpByAnEngineThatIsAbandonedIsGivenBack(t *testing.T) {
	p := &played{}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind) {
		require.NoError(t, e.Begin())
		e.Abandon()
		_, err := adopt(e)
		require.ErrorIs(t, err, berth.ErrLost)
		e.End()
		synctest.Wait()
		require.EqualValues(t, 1, p.released.Load())
		require.NotContains(t, kinds(), observe.Resumed)
	})
}

func TestAHoldEndsOnceTheTimeOfItsNodeHasPassed(t *testing.T) {
	for name, c := range map[string]struct {
		answers []reply
		passes  time.Duration
	}{
		"whoever asks":                    {answers: []reply{{Status: isHeld}}},
		"also where its lease ends":       {[]reply{{Status: isHeld}, {Status: isHeld, slow: never}}, wait},
		"also where the server has freed": {[]reply{{Status: isHeld}, {Status: isGone}}, wait / 2},
	} {
		t.Run(name, func(t *testing.T) {
			p, o := &played{answers: c.answers}, &outlived{}
			onPlayed(t, p, func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind) {
				h := take(t, e, func(r *engine.Record) { r.NoRenew = true })
				o.passed.Store(true)
				after(c.passes)
				require.ErrorIs(t, h.Err(), berth.ErrLost)
				require.ErrorIs(t, context.Cause(h.Context()), berth.ErrLost)
				sent := len(p.times())
				require.ErrorIs(t, h.Renew(context.Background()), berth.ErrLost)
				require.Len(t, p.times(), sent)
				require.Equal(t, []observe.Kind{observe.Lost}, ends(kinds()))
			}, o.configure)
		})
	}
}

func TestNothingIsAskedForOnceTheTimeOfTheNodeHasPassed(t *testing.T) {
	p, o := &played{}, &outlived{}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind) {
		asked := 0
		p.acquired = func() {
			asked++
			o.passed.Store(true)
		}
		requireRefused(t, acquire(context.Background(), e, 0, false), berth.ReasonClosed, engine.ErrReplaced)
		require.EqualValues(t, 1, p.released.Load(), "it was granted, and is given back")
		requireRefused(t, acquire(context.Background(), e, 0, false), berth.ReasonClosed, engine.ErrReplaced)
		require.ErrorIs(t, e.Begin(), engine.ErrReplaced)
		require.Equal(t, 1, asked)
		require.NotContains(t, kinds(), observe.Granted)
	}, o.configure)
}

// Somebody has ended a claim that waits: an operator, or who found its node dead.
func TestAWaitThatSomebodyEndedIsSettled(t *testing.T) {
	gone := engine.Status{Word: engine.WordGone}
	for name, tc := range map[string]struct {
		settle  func(ctx context.Context, o *outlived, e *engine.Engine, leave context.CancelFunc)
		maxWait time.Duration
		reason  berth.Reason
		cause   error
	}{
		"the node lives": {reason: berth.ReasonGone},
		"its time has passed": {
			settle: func(_ context.Context, o *outlived, _ *engine.Engine, _ context.CancelFunc) { o.passed.Store(true) },
			reason: berth.ReasonGone, cause: engine.ErrReplaced,
		},
		"it is replaced": {
			settle: func(_ context.Context, _ *outlived, e *engine.Engine, _ context.CancelFunc) { e.Abandon() },
			reason: berth.ReasonGone, cause: engine.ErrReplaced,
		},
		"nobody knows, and the caller leaves": {
			settle: func(ctx context.Context, _ *outlived, _ *engine.Engine, leave context.CancelFunc) {
				leave()
				<-ctx.Done()
			},
			reason: berth.ReasonCancelled, cause: context.Canceled,
		},
		"nobody knows until the wait is over": {
			settle:  func(ctx context.Context, _ *outlived, _ *engine.Engine, _ context.CancelFunc) { <-ctx.Done() },
			maxWait: wait / 2, reason: berth.ReasonTimedOut,
		},
		"nobody knows, and the engine is closed": {
			settle: func(ctx context.Context, _ *outlived, e *engine.Engine, _ context.CancelFunc) {
				go func() { _ = e.Close(context.Background()) }()
				<-ctx.Done()
			},
			reason: berth.ReasonClosed, cause: berth.ErrClosed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, o := &played{queues: true, answers: []reply{{Status: isWaiting}, {Status: gone}}}, &outlived{}
			onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
				ctx, leave := context.WithCancel(context.Background())
				defer leave()
				o.settle = func(ctx context.Context) {
					if tc.settle != nil {
						tc.settle(ctx, o, e, leave)
					}
				}
				returned := acquire(ctx, e, tc.maxWait, false)
				after(wait)
				requireRefused(t, returned, tc.reason, tc.cause)
			}, o.configure)
		})
	}
}

func TestAGrantThatSomebodyEndedIsSettled(t *testing.T) {
	p, o := &played{answers: []reply{{Status: isGone}}}, &outlived{}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
		requireRefused(t, acquire(context.Background(), e, 0, true), berth.ReasonFailed, berth.ErrReleased)
		o.settle = func(context.Context) { o.passed.Store(true) }
		requireRefused(t, acquire(context.Background(), e, 0, true), berth.ReasonFailed, engine.ErrReplaced)
	}, o.configure)
}
