package engine_test

import (
	"context"
	"strings"
	"sync"
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

// noted is a fake that notes which claims it was asked for and which were given back; its releases fail so many times.
type noted struct {
	fake
	fails           atomic.Int64
	silent, forgets atomic.Bool // it answers no beat; it knows no claim of one

	mu   sync.Mutex
	said []string // guarded by mu
}

func (f *noted) say(word string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, word)
}

func (f *noted) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	f.say("acquire " + c.ID)
	return f.fake.Acquire(ctx, c)
}

func (f *noted) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	if f.fails.Add(-1) >= 0 {
		<-time.After(time.Second)
		return engine.Parting{}, unanswered()
	}
	f.say("release " + c.ID)
	return f.fake.Release(ctx, c, stays)
}

func (f *noted) Beat(ctx context.Context, name string, mode engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	if f.silent.Load() {
		<-ctx.Done()
		return engine.Round{}, ctx.Err()
	}
	round, err := f.fake.Beat(ctx, name, mode, claims)
	if f.forgets.Load() {
		round = roundOf(claims, isUnknown)
	}
	return round, err
}

// judged runs a test in virtual time with an engine that asks stands of each grant.
func judged(t *testing.T, stands func(c *engine.Claim) bool, drains *atomic.Bool, test func(t *testing.T, f *noted, e *engine.Engine)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &noted{fake: fake{fence: 1}}
		e, _ := begin(t, f, func(cfg *engine.Config) {
			cfg.CallTimeout = time.Second
			cfg.Drains = func() error {
				if drains.Load() {
					return berth.ErrDraining
				}
				return nil
			}
			cfg.Retry = berth.Retry{Attempts: 3, Base: 100 * time.Millisecond, Cap: time.Second, Within: time.Minute}
			cfg.Stands = func(_ context.Context, c *engine.Claim) bool { return stands(c) }
		})
		test(t, f, e)
	})
}

// theClaim is one that asks with all that a caller may set.
func theClaim(e *engine.Engine, waits bool) *engine.Claim {
	return &engine.Claim{
		ID: e.ClaimID(), Name: "x", MayWait: waits, Capacity: 3, Attrs: map[string]any{"a": 1}, Request: "r", Extends: 1,
		WantAfter: time.Hour, RequeueEvery: time.Hour, Before: time.Second, Attempts: time.Hour, Closing: make(chan struct{}),
		Record: engine.Record{Weight: 2, Wait: wait, Lease: wait, Owner: "o", Node: "n"},
	}
}

func TestAGrantThatDoesNotStandIsGivenBackBeforeAnotherClaimAsks(t *testing.T) {
	for name, fails := range map[string]int64{"at once": 0, "a release is not answered": 2} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			judged(t, func(c *engine.Claim) bool {
				require.True(t, c.AtOnce())
				asked++
				return asked == 3
			}, &atomic.Bool{}, func(t *testing.T, f *noted, e *engine.Engine) {
				f.fails.Store(fails)
				first := theClaim(e, true)
				start := e.Now()
				h, err := e.Acquire(context.Background(), first, time.Hour)
				require.NoError(t, err)
				c := h.Claim()
				require.False(t, c.AtOnce())
				require.NotEqual(t, first.ID, c.ID, "an id is used once")
				require.Equal(t, e.Now()-start+time.Second, h.Waited())
				require.Equal(t, []string{
					"acquire " + first.ID, "release " + first.ID, f.said[2], "release " + f.said[2][len("acquire "):], "acquire " + c.ID,
				}, f.said)
				want := theClaim(e, true)
				want.ID, want.Before, want.Closing = c.ID, c.Before, first.Closing
				require.Equal(t,
					[]any{want.Name, want.Record, want.MayWait, want.Capacity, want.Attrs, want.Request, want.Attempts, want.RequeueEvery, want.WantAfter, want.Extends, want.Closing},
					[]any{c.Name, c.Record, c.MayWait, c.Capacity, c.Attrs, c.Request, c.Attempts, c.RequeueEvery, c.WantAfter, c.Extends, c.Closing})
			})
		})
	}
}

func TestACallThatDoesNotWaitGivesUpAGrantThatItCannotGiveBack(t *testing.T) {
	judged(t, func(*engine.Claim) bool { return false }, &atomic.Bool{}, func(t *testing.T, f *noted, e *engine.Engine) {
		f.fails.Store(1000)
		_, err := e.Acquire(context.Background(), theClaim(e, false), 0)
		require.ErrorContains(t, err, "no answer")
		require.Len(t, f.said, 1)
	})
}

func TestWhoLeavesWhileAGrantIsGivenBackLeavesAtOnce(t *testing.T) {
	judged(t, func(*engine.Claim) bool { return false }, &atomic.Bool{}, func(t *testing.T, f *noted, e *engine.Engine) {
		f.fails.Store(2)
		ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
		defer cancel()
		start := e.Now()
		_, err := e.Acquire(ctx, theClaim(e, true), 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, start+1500*time.Millisecond, e.Now())

		closing, c := make(chan struct{}), theClaim(e, true)
		c.Closing = closing
		f.fails.Store(1000)
		start = e.Now()
		time.AfterFunc(1500*time.Millisecond, func() { close(closing) })
		_, err = e.Acquire(context.Background(), c, 0)
		require.ErrorIs(t, err, berth.ErrClosed)
		require.Equal(t, start+1500*time.Millisecond, e.Now())
	})
}

func TestAProcessThatHearsOfADrainWithAGrantDoesNotHandItOut(t *testing.T) {
	var drains atomic.Bool
	judged(t, func(*engine.Claim) bool { drains.Store(true); return true }, &drains, func(t *testing.T, f *noted, e *engine.Engine) {
		c := theClaim(e, true)
		_, err := e.Acquire(context.Background(), c, 0)
		require.ErrorIs(t, err, berth.ErrDraining)
		synctest.Wait()
		require.Equal(t, []string{"acquire " + c.ID, "release " + c.ID}, f.said)
	})
}

// The wait ends while the pause of all names is being asked for, of a server that does not answer.
func TestAServerThatDoesNotAnswerBeforeTheFirstAskIsToldAsSuch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _ := begin(t, &noted{fake: fake{fence: 1}}, func(cfg *engine.Config) {
			cfg.CallTimeout = time.Second
			cfg.Before = func(context.Context, *engine.Claim) (*berth.AcquireError, error) {
				<-time.After(2 * time.Second)
				return nil, nil
			}
		})
		_, err := e.Acquire(t.Context(), theClaim(e, true), 300*time.Millisecond)
		require.Equal(t, berth.ReasonFailed, refused(t, err).Reason)
		require.NotContains(t, err.Error(), "not sent")
	})
}

// slips are ways in which a grant ends before its caller has the handle.
var slips = map[string]struct {
	fixed bool
	err   error
	ends  func(f *noted, at *leap)
}{
	"no heartbeat is answered": {false, berth.ErrLost, func(f *noted, _ *leap) {
		f.silent.Store(true)
		<-time.After(wait)
		f.silent.Store(false)
	}},
	"the server has lost it": {false, berth.ErrLost, func(f *noted, _ *leap) {
		f.forgets.Store(true)
		<-time.After(wait)
		f.forgets.Store(false)
	}},
	"the process stands still":             {false, berth.ErrLost, func(_ *noted, at *leap) { at.by.Add(int64(wait)) }},
	"the process stands still, no renewal": {true, berth.ErrExpired, func(_ *noted, at *leap) { at.by.Add(int64(wait)) }},
}

// slipping runs an acquire that loses its first so many grants in that way, and whose first releases fail.
func slipping(t *testing.T, waits bool, grants int, fails int64, test func(t *testing.T, f *noted, first *engine.Claim, h *engine.Hold, err, slip error)) {
	t.Helper()
	t.Parallel()
	for name, slip := range slips {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, at, lost := &noted{fake: fake{fence: 1}}, &leap{Clock: clock.New()}, 0
				e, _ := begin(t, f, func(cfg *engine.Config) {
					cfg.CallTimeout, cfg.Clock = time.Second, at
					cfg.Observe = func(ev observe.Event) {
						if ev.Kind.EndsAcquire() {
							f.say(string(ev.Kind) + " " + ev.Claim)
						}
					}
					cfg.Stands = func(context.Context, *engine.Claim) bool {
						if lost++; lost <= grants {
							slip.ends(f, at)
						}
						return true
					}
				})
				f.fails.Store(fails)
				c := theClaim(e, waits)
				c.Record.NoRenew = slip.fixed
				h, err := e.Acquire(context.Background(), c, time.Hour)
				test(t, f, c, h, err, slip.err)
			})
		})
	}
}

func TestAWaitOutlivesAGrantThatEndsBeforeItsCallerHasIt(t *testing.T) {
	slipping(t, true, 2, 0, func(t *testing.T, f *noted, first *engine.Claim, h *engine.Hold, err, _ error) {
		require.NoError(t, err)
		require.NoError(t, h.Err())
		require.Len(t, f.said, 8)
		_, second, _ := strings.Cut(f.said[3], " ")
		require.Equal(t, []string{
			"acquire " + first.ID, "release " + first.ID, "failed " + first.ID,
			"acquire " + second, "release " + second, "failed " + second,
			"acquire " + h.Claim().ID, "granted " + h.Claim().ID,
		}, f.said, "what is left of a grant is given back before another claim asks")
	})
}

// A claim's end is told once, or those who count who waits would count it twice.
func TestAGrantThatHasEndedAndCannotBeGivenBackIsToldOnce(t *testing.T) {
	slipping(t, true, 1, 1<<20, func(t *testing.T, f *noted, first *engine.Claim, _ *engine.Hold, err, _ error) {
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.Len(t, f.said, 2, f.said)
		require.Equal(t, "acquire "+first.ID, f.said[0])
	})
}

// As of a lease that is too short for the network.
func TestAWaitWhoseGrantsAllEndBeforeItsCallerHasThemIsToldSo(t *testing.T) {
	slipping(t, true, 1000, 0, func(t *testing.T, f *noted, _ *engine.Claim, _ *engine.Hold, err, slip error) {
		require.ErrorIs(t, err, slip)
		synctest.Wait()
		require.Len(t, f.said, 3*10)
	})
}

func TestACallThatDoesNotWaitGetsNoGrantThatHasEnded(t *testing.T) {
	slipping(t, false, 1000, 0, func(t *testing.T, f *noted, first *engine.Claim, _ *engine.Hold, err, slip error) {
		require.ErrorIs(t, err, slip)
		synctest.Wait()
		require.ElementsMatch(t, []string{"acquire " + first.ID, "failed " + first.ID, "release " + first.ID}, f.said)
	})
}
