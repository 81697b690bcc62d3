package engine_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/observe"
)

var errOwn = errors.New("my own reason")

// behind are the ways in which a hold ends behind the back of a function.
var behind = map[string]struct {
	beats   reply // what heartbeats are answered
	maxHold time.Duration
	want    error
}{
	"forgotten by the server":  {beats: reply{Status: isUnknown}, want: berth.ErrLost},
	"not renewed in time":      {beats: reply{Status: isHeld, slow: never}, want: berth.ErrLost},
	"released by somebody":     {beats: reply{Status: isGone}, want: berth.ErrReleased},
	"at the end of its length": {beats: reply{Status: isHeld}, maxHold: time.Second, want: berth.ErrExpired},
}

// onEnd runs a test with a hold that ends, and fails unless that is given back.
func onEnd(t *testing.T, test func(t *testing.T, h *engine.Hold, want error)) {
	t.Helper()
	for name, c := range behind {
		t.Run(name, func(t *testing.T) {
			p := &played{answers: []reply{c.beats}}
			onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
				test(t, take(t, e, func(r *engine.Record) { r.MaxHold = c.maxHold }), c.want)
				synctest.Wait()
				require.EqualValues(t, 1, p.released.Load())
			})
		})
	}
}

// Who filters the errors of a caller who has left must not filter lost leases.
func TestDoJoinsWhatEndedItsHoldAndMatchesNoEndOfAContext(t *testing.T) {
	for name, returned := range map[string]func(ctx context.Context) error{
		"nothing":             func(context.Context) error { return nil },
		"its own error":       func(context.Context) error { return errOwn },
		"the context's error": func(ctx context.Context) error { return ctx.Err() },
		"the context's cause": context.Cause,
		"all of them":         func(ctx context.Context) error { return errors.Join(ctx.Err(), context.Cause(ctx), errOwn) },
		"a deadline": func(context.Context) error {
			return errors.Join(context.DeadlineExceeded, &berth.ConfigError{Field: "mine"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEnd(t, func(t *testing.T, h *engine.Hold, want error) {
				var own error
				err := h.Do(context.Background(), func(ctx context.Context) error {
					<-ctx.Done()
					require.ErrorIs(t, context.Cause(ctx), want)
					own = returned(ctx)
					return own
				})
				require.ErrorIs(t, err, want)
				end, ok := errors.AsType[*berth.EndError](err)
				require.True(t, ok)
				require.Equal(t, h.Claim().ID, end.Claim)
				require.Equal(t, 1, strings.Count(err.Error(), end.Claim), "%v", err)
				require.NotErrorIs(t, err, context.Canceled)
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, errors.Is(own, errOwn), errors.Is(err, errOwn))
				_, told := errors.AsType[*berth.ConfigError](own)
				field, ok := errors.AsType[*berth.ConfigError](err)
				require.Equal(t, told, ok)
				require.True(t, !ok || field.Field == "mine")
			})
		})
	}
}

func TestDoMatchesTheErrorOfItsContextWhereTheCallersHasEndedToo(t *testing.T) {
	onEnd(t, func(t *testing.T, h *engine.Hold, want error) {
		ctx, cancel := context.WithCancel(context.Background())
		err := h.Do(ctx, func(inner context.Context) error {
			<-inner.Done()
			cancel()
			return inner.Err()
		})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, want)
	})
}

// doing is what a function under Do may do.
type doing struct {
	e     *engine.Engine
	h     *engine.Hold
	leave context.CancelCauseFunc // of the caller
}

func TestDoGivesBackWhatItsFunctionLeaves(t *testing.T) {
	returns := func(err error) func(context.Context, *doing) error {
		return func(context.Context, *doing) error { return err }
	}
	releases := func(ctx context.Context, d *doing) error { _ = d.h.Release(ctx); return nil }
	for name, c := range map[string]struct {
		f    func(ctx context.Context, d *doing) error
		word engine.Released // of the release, if it is not that it was given back
		want error
		kept bool  // nothing is given back
		end  error // what has ended the hold, if not its release
	}{
		"and returns nothing":                   {f: returns(nil)},
		"and returns its error":                 {f: returns(errOwn), want: errOwn},
		"and returns a deadline of its own":     {f: returns(context.DeadlineExceeded), want: context.DeadlineExceeded},
		"lost, which nobody had heard of":       {f: returns(nil), word: engine.NotHeld, want: berth.ErrLost},
		"lost, with an error of its own":        {f: returns(errOwn), word: engine.LeftLine, want: errOwn},
		"released, which nobody had heard of":   {f: returns(nil), word: engine.ForceReleased, want: berth.ErrReleased},
		"lost, which its own release hears":     {f: releases, word: engine.NotHeld, want: berth.ErrLost},
		"released, which its own release hears": {f: releases, word: engine.ForceReleased, want: berth.ErrReleased},
		"unless the engine has done so, and others may have had it": {
			f:    func(_ context.Context, d *doing) error { d.e.Abandon(); synctest.Wait(); return nil },
			want: berth.ErrLost, end: berth.ErrLost,
		},
		"unless that has given it back":      {f: func(ctx context.Context, d *doing) error { return d.h.Release(ctx) }},
		"unless that has detached it":        {f: func(ctx context.Context, d *doing) error { return d.h.Detach(ctx) }, kept: true},
		"unless Close has given it back":     {f: func(ctx context.Context, d *doing) error { return d.e.Close(ctx) }},
		"when its caller has left":           {f: func(ctx context.Context, d *doing) error { d.leave(errOwn); return context.Cause(ctx) }, want: errOwn},
		"and returns why its caller's ended": {f: func(ctx context.Context, d *doing) error { d.leave(errOwn); return ctx.Err() }, want: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			p := &played{fake: fake{word: c.word}, answers: []reply{{Status: isHeld}}}
			onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
				h := take(t, e)
				ctx, leave := context.WithCancelCause(context.Background())
				var inner context.Context
				err := h.Do(ctx, func(ctx context.Context) error {
					inner = ctx
					require.NoError(t, ctx.Err())
					require.Same(t, h, e.Held(ctx, engine.Line{Name: h.Claim().Name}))
					return c.f(ctx, &doing{e, h, leave})
				})
				leave(nil)
				require.ErrorIs(t, err, c.want)
				tells := c.word != "" || c.end != nil
				require.Equal(t, tells && c.word != engine.ForceReleased, errors.Is(err, berth.ErrNotHeld))
				_, told := errors.AsType[*berth.EndError](err)
				require.Equal(t, tells, told)
				require.Error(t, inner.Err())
				require.ErrorIs(t, h.Err(), cmp.Or(c.end, berth.ErrReleased))
				require.Equal(t, !c.kept, p.released.Load() == 1)
			})
		})
	}
}

func TestDoOfALooseHoldTellsThatCloseHasEndedIt(t *testing.T) {
	onFake(t, func(t *testing.T, _ *fake, e *engine.Engine, _ func() int) {
		h := take(t, e)
		h.Loosen()
		err := h.Do(context.Background(), func(ctx context.Context) error {
			go func() { _ = e.Close(context.Background()) }()
			<-ctx.Done()
			return nil
		})
		require.ErrorIs(t, err, berth.ErrClosed)
	})
}

// Its function has ended its context itself: the caller has not left.
func TestDoOfWhatItsFunctionGaveBackMatchesNoEndOfAContext(t *testing.T) {
	onFake(t, func(t *testing.T, _ *fake, e *engine.Engine, _ func() int) {
		h := take(t, e)
		err := h.Do(context.Background(), func(ctx context.Context) error {
			require.NoError(t, h.Release(ctx))
			<-ctx.Done()
			return ctx.Err()
		})
		require.Error(t, err)
		require.NotErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, berth.ErrNotHeld)
	})
}

func TestAPanicGoesOnThroughDoWhichGivesBack(t *testing.T) {
	onFake(t, func(t *testing.T, f *fake, e *engine.Engine, _ func() int) {
		require.PanicsWithError(t, errOwn.Error(), func() {
			_ = take(t, e).Do(context.Background(), func(context.Context) error { panic(errOwn) })
		})
		require.EqualValues(t, 1, f.released.Load())
	})
}

func TestADroppedHoldIsGivenBackInTheBackground(t *testing.T) {
	onFake(t, func(t *testing.T, f *fake, e *engine.Engine, _ func() int) {
		h := take(t, e)
		f.slows(time.Second)
		go func() { _ = h.Renew(context.Background()) }() // a release is sent after it
		synctest.Wait()
		began := e.Now()
		h.Drop()
		require.Equal(t, began, e.Now(), "nobody waits for that")
		require.ErrorIs(t, h.Err(), berth.ErrReleased)
		after(time.Second)
		require.EqualValues(t, 1, f.released.Load())
	})
}

func TestAContextWithinAHoldThatHasEndedHasEnded(t *testing.T) {
	onFake(t, func(t *testing.T, _ *fake, e *engine.Engine, _ func() int) {
		h := take(t, e)
		require.NoError(t, h.Release(context.Background()))
		for range 100 { // by chance it may have, all the same
			inner, cancel := h.Within(context.Background())
			require.ErrorIs(t, context.Cause(inner), berth.ErrReleased)
			cancel()
		}
	})
}

// leap is a clock that a test moves forward, as a process meets it that has stood still: no timer has
// fired.
type leap struct {
	clock.Clock
	by atomic.Int64
}

// isOf has an engine look at the clock.
func (l *leap) isOf(cfg *engine.Config) { l.Clock, cfg.Clock = cfg.Clock, l }

func (l *leap) Now() time.Duration { return l.Clock.Now() + time.Duration(l.by.Load()) }

// Each look is the first one at its context: Err, Done, and Err of what was made before.
func TestTheContextsOfAHoldLookAtTheClockThemselves(t *testing.T) {
	looks := map[string]func(context.Context) bool{
		"Err":  func(ctx context.Context) bool { return ctx.Err() != nil },
		"Done": func(ctx context.Context) bool { return isDone(ctx.Done()) },
	}
	for name, ended := range looks {
		t.Run(name, func(t *testing.T) {
			p, l := &played{answers: []reply{{Status: isHeld}}}, &leap{}
			onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
				for _, of := range []func(*engine.Hold) context.Context{
					func(h *engine.Hold) context.Context { return h.Context() },
					func(h *engine.Hold) context.Context {
						inner, cancel := h.Within(context.Background())
						t.Cleanup(cancel)
						return inner
					},
				} {
					ctx := of(take(t, e))
					made, cancel := context.WithCancel(ctx)
					defer cancel()
					require.False(t, ended(ctx))
					l.by.Add(int64(wait))
					require.True(t, ended(ctx), "at the first look")
					require.ErrorIs(t, context.Cause(ctx), berth.ErrLost)
					require.ErrorIs(t, context.Cause(made), berth.ErrLost, "what is made from it ends in the same moment")
				}
			}, l.isOf)
		})
	}
}

func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// The outer hold ends first, and no timer has fired yet. Whoever looks, looks at the inner context.
func TestANestedContextLooksAtTheClockOfTheOuterHoldToo(t *testing.T) {
	for name, between := range map[string]func(context.Context) context.Context{
		"nothing between":           func(ctx context.Context) context.Context { return ctx },
		"a context made in between": func(ctx context.Context) context.Context { return context.WithValue(ctx, t, "") },
		"without the outer's end":   context.WithoutCancel,
	} {
		t.Run(name, func(t *testing.T) {
			p, l := &played{answers: []reply{{Status: isHeld}}}, &leap{}
			onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
				outer := take(t, e, func(r *engine.Record) { r.MaxHold = wait / 2 }) // no heartbeat lengthens it
				a, cancel := outer.Within(context.Background())
				defer cancel()
				inner := take(t, e)
				b, cancel := inner.Within(between(a))
				defer cancel()
				require.NoError(t, b.Err())
				l.by.Add(int64(wait) / 2)
				if name == "without the outer's end" {
					require.NoError(t, b.Err())
					return
				}
				require.ErrorIs(t, b.Err(), context.Canceled, "at the first look")
				require.ErrorIs(t, context.Cause(b), berth.ErrExpired, "of the outer hold")
				require.ErrorIs(t, outer.Err(), berth.ErrExpired)
				require.NoError(t, inner.Err())
			}, l.isOf)
		})
	}
}
