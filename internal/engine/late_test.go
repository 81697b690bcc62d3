package engine_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// played is a server that answers heartbeats as a test says, one after the other, and
// what else it is asked as well as it can.
type played struct {
	fake

	mu       sync.Mutex
	queues   bool            // guarded by mu: an acquire waits in line
	answers  []reply         // guarded by mu: the last one goes on
	sent     []time.Duration // guarded by mu: when heartbeats came
	restored atomic.Int64
	loaded   atomic.Int64
	swept    []time.Duration // guarded by mu: when sweeps came
	sweeping time.Duration   // how long a sweep takes
	endless  bool            // a sweep drops nothing, and always says that more is left
	clock    clock.Clock
}

// reply is one answer, and how long it is on its way. It stands for the moment when
// the heartbeat was sent.
type reply struct {
	engine.Status
	slow time.Duration
	more bool // the script stopped at its bound
}

func (p *played) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	if p.queues {
		return isQueued, nil
	}
	return p.fake.Acquire(ctx, c)
}

func (p *played) Beat(ctx context.Context, _ string, _ engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	p.mu.Lock()
	a := p.answers[0]
	if len(p.answers) > 1 {
		p.answers = p.answers[1:]
	}
	p.sent = append(p.sent, p.clock.Now())
	p.mu.Unlock()
	select {
	case <-time.After(a.slow):
	case <-ctx.Done():
		return engine.Round{}, ctx.Err()
	}
	round := roundOf(claims, a.Status)
	round.NextDeadline.More = a.more
	return round, nil
}

func (p *played) Restore(_ context.Context, _ string, claims []*engine.Claim) (engine.Round, error) {
	p.restored.Add(int64(len(claims)))
	return roundOf(claims[:1], engine.Status{Word: engine.WordWaiting}), nil
}

func (p *played) Load(context.Context) error {
	p.loaded.Add(1)
	return nil
}

func (p *played) Sweep(context.Context, engine.Line) (engine.NextDeadline, error) {
	p.mu.Lock()
	p.swept = append(p.swept, p.clock.Now())
	p.mu.Unlock()
	<-time.After(p.sweeping)
	if p.endless {
		return engine.NextDeadline{In: -1, More: true}, nil
	}
	return engine.NextDeadline{In: -1, Dropped: 1}, nil
}

// times are when heartbeats came so far.
func (p *played) times() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]time.Duration(nil), p.sent...)
}

// onPlayed runs a test in virtual time with an engine on such a server.
func onPlayed(
	t *testing.T, p *played, test func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind), configure ...func(*engine.Config),
) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p.fence, p.resource, p.clock = 1, "r1", clock.New()
		redis := connected(t)
		e, seen := begin(t, p, append(configure, func(cfg *engine.Config) { cfg.Redis = redis })...)
		test(t, e, seen.kinds)
	})
}

func TestALateHeartbeatKeepsAHold(t *testing.T) {
	p := &played{answers: []reply{{Status: isHeld, slow: wait / 2}, {Status: isHeld, slow: never}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind) {
		h := take(t, e)
		after(wait/3 + wait/6)
		require.Equal(t, []observe.Kind{observe.Granted, observe.Unavailable}, kinds())
		after(wait/2 - time.Second)
		require.NoError(t, h.Err())
		require.Greater(t, len(p.times()), 1, "it was sent again")
		after(2 * time.Second)
		require.NoError(t, h.Err(), "the server had renewed it")
		after(wait/3 - time.Second)
		require.ErrorIs(t, h.Err(), berth.ErrLost, "from the start of the heartbeat that was answered")
	})
}

// The process stands still while a heartbeat is on its way, and no timer has fired when the answer is heard.
func TestWhatHasEndedByTheClockIsNotLostByAnAnswer(t *testing.T) {
	for want, fixed := range map[error]bool{berth.ErrExpired: true, berth.ErrLost: false} {
		t.Run(want.Error(), func(t *testing.T) {
			p, l := &played{answers: []reply{{Status: isHeld}, {Status: isUnknown, slow: time.Second}}}, &leap{}
			onPlayed(t, p, func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind) {
				h := take(t, e, func(r *engine.Record) { r.NoRenew = fixed }) // whose first call confirms it
				for before := len(p.times()); len(p.times()) == before; {
					after(wait / 60)
				}
				l.by.Add(int64(wait))
				after(time.Second)
				require.ErrorIs(t, h.Err(), want)
				require.NotEqual(t, fixed, slices.Contains(kinds(), observe.Lost))
			}, l.isOf)
		})
	}
}

// queue has a claim wait in line.
func queue(e *engine.Engine) (returned <-chan error, leave context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	return asksInBackground(ctx, e, claimOf(e, "x"), 0), cancel
}

// The first heartbeat is answered after the second one, if that is answered at all.
func TestALateAnswerToAWaitCountsWhereNothingNewerIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		first    engine.Status
		second   time.Duration // when it is answered that the claim waits
		restored int64
	}{
		"unknown":           {isUnknown, never, 1},
		"unknown, but once": {isUnknown, 0, 0},
		"held, but once":    {isHeld, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := &played{queues: true, answers: []reply{{c.first, wait * 2 / 3, false}, {isWaiting, c.second, false}}}
			onPlayed(t, p, func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind) {
				returned, leave := queue(e)
				after(wait)
				require.Equal(t, c.restored, p.restored.Load())
				if c.second == 0 {
					after(wait)
					require.Zero(t, p.restored.Load())
					require.NotContains(t, kinds(), observe.Restored)
					require.Empty(t, returned, "a later answer says that it waits")
				}
				leave()
				require.ErrorIs(t, <-returned, berth.ErrNotAcquired)
			})
		})
	}
}

func TestAnExtensionThatAHeartbeatOvertakesIsAskedAgain(t *testing.T) {
	extended := isHeld
	extended.Left = 2 * wait
	p := &played{answers: []reply{{Status: extended, slow: wait / 2}, {Status: isHeld, slow: 0}, {Status: extended, slow: time.Second}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
		h := take(t, e)
		require.NoError(t, h.Extend(context.Background(), wait))
		require.Equal(t, 2*wait-heartbeat.Margin(wait)-time.Second, h.Left(), "from the start of the call that counts")
	})
}

func TestTheHeartbeatsScriptIsLoadedOnce(t *testing.T) {
	p := &played{answers: []reply{{Status: isHeld, slow: 0}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
		for range 3 {
			take(t, e)
		}
		synctest.Wait()
		require.EqualValues(t, 1, p.loaded.Load())
	})
}

// Its load would be given up at once, and with it the connection that it waits for.
func TestAnEngineThatIsClosedBeforeItsFirstAnswerLoadsNothing(t *testing.T) {
	for name, closes := range map[string]func(*engine.Engine){
		"closed":    func(e *engine.Engine) { go func() { _ = e.Close(context.Background()) }() },
		"abandoned": func(e *engine.Engine) { e.Abandon() },
	} {
		t.Run(name, func(t *testing.T) {
			p := &played{answers: []reply{{Status: isHeld, slow: 0}}}
			onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
				p.acquired = func() {
					closes(e)
					synctest.Wait()
				}
				_, err := e.Acquire(context.Background(), claimOf(e, "x"), 0)
				require.ErrorIs(t, err, berth.ErrNotAcquired)
				synctest.Wait()
				require.Zero(t, p.loaded.Load())
				require.EqualValues(t, 1, p.released.Load(), "what was granted is given back")
			})
		})
	}
}

func TestASweepThatIsDueWhileOneRunsIsMadeAfterIt(t *testing.T) {
	more := reply{Status: isWaiting, more: true}
	p := &played{queues: true, sweeping: wait, answers: []reply{more, more, more, {Status: isWaiting}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
		returned, leave := queue(e)
		after(3 * wait)
		p.mu.Lock()
		require.Len(t, p.swept, 2, "three were asked for, two of them while the first one ran")
		require.Equal(t, wait, p.swept[1]-p.swept[0])
		p.mu.Unlock()
		leave()
		require.ErrorIs(t, <-returned, berth.ErrNotAcquired)
	})
}

func TestAnExtensionOfAHoldThatHasEndedMeanwhile(t *testing.T) {
	p := &played{answers: []reply{{Status: isHeld, slow: 2 * time.Second}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind) {
		h := take(t, e, func(r *engine.Record) { r.MaxHold = time.Second })
		require.ErrorIs(t, h.Extend(context.Background(), 100*time.Millisecond), berth.ErrExpired)
		require.NotContains(t, kinds(), observe.Extended)
	})
}

func TestAReleaseThatComesAfterTheEndSaysWhatHasEndedTheHold(t *testing.T) {
	for want, maximum := range map[error]time.Duration{berth.ErrExpired: time.Second, berth.ErrLost: time.Minute} {
		t.Run(want.Error(), func(t *testing.T) {
			p, l := &played{fake: fake{word: engine.HadExpired}, answers: []reply{{Status: isHeld}}}, &leap{}
			p.parts = func() { l.by.Add(int64(wait)) } // the process stands still while its release is on its way
			onPlayed(t, p, func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind) {
				h := take(t, e, func(r *engine.Record) { r.MaxHold = maximum })
				require.ErrorIs(t, h.Release(context.Background()), want)
				require.Equal(t, maximum == time.Minute, slices.Contains(kinds(), observe.Lost))
			}, l.isOf)
		})
	}
}

// What panics on an answer is here the observer that hears of the wish.
func TestAPanicOnOneAnswerLetsTheHeartbeatGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, seen, first := &fake{fence: 7}, &told{}, sync.Once{}
		f.beaten = func(round *engine.Round) error {
			first.Do(func() { round.Status[0].Word = engine.WordWanted })
			return nil
		}
		e, _ := begin(t, f, func(cfg *engine.Config) {
			cfg.Observe = func(ev observe.Event) {
				if seen.take(ev); ev.Kind == observe.Wanted {
					panic(guard.Meant("no such index"))
				}
			}
		})
		h := take(t, e)
		time.Sleep(time.Minute)
		require.NoError(t, h.Err())
		require.Greater(t, f.beats.Load(), int64(20))
		panicked := seen.of(observe.Panicked)
		require.Len(t, panicked, 1)
		require.ErrorContains(t, panicked[0].Err, "the answer to a heartbeat panicked: no such index")
		require.NoError(t, h.Release(context.Background()))
	})
}

func TestAConfirmingCallIsRepeatedUntilItIsAnsweredAndAnotherOwnCallByRetry(t *testing.T) {
	const pause, attempts = 10 * time.Millisecond, 3
	synctest.Test(t, func(t *testing.T) {
		isLost := &scriptkit.Error{MaybeRan: true, Repeatable: true, Err: errOwn}
		f, lost := &fake{fence: 1}, slices.Repeat([]error{isLost}, 2*attempts)
		f.beaten = func(*engine.Round) (err error) {
			if len(lost) > 0 {
				err, lost = lost[0], lost[1:]
			}
			return err
		}
		e, seen := begin(t, f, func(cfg *engine.Config) {
			cfg.CallTimeout, cfg.Retry = time.Second, berth.Retry{Attempts: attempts, Base: pause, Cap: pause, Jitter: -1}
		})
		h := take(t, e, func(r *engine.Record) { r.NoRenew = true })
		require.Equal(t, 2*attempts*pause, e.Now())
		require.Equal(t, wait-2*time.Millisecond-wait/100, h.Left(), "from the start of the call that was answered")
		repeated := seen.of(observe.Repeated)
		require.Len(t, repeated, 2*attempts)
		require.ErrorIs(t, repeated[0].Err, errOwn)

		lost = slices.Repeat([]error{isLost}, attempts)
		require.ErrorIs(t, h.Renew(context.Background()), errOwn)
		require.Empty(t, lost, "it was sent no more often")
		require.NoError(t, h.Err())
		require.Len(t, seen.of(observe.Repeated), 3*attempts-1)

		lost = []error{&scriptkit.Error{Err: errOwn}}
		c := claimOf(e, "y")
		c.Record.NoRenew = true
		_, err := e.Acquire(context.Background(), c, 0)
		require.ErrorIs(t, err, errOwn, "the server refuses it for good")
		require.Empty(t, lost)
	})
}
