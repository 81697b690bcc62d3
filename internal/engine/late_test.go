package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/observe"
)

// played is a server that answers heartbeats as a test says, one after the other, and
// what else it is asked as well as it can.
type played struct {
	fake

	mu       sync.Mutex
	queues   bool            // guarded by mu: an acquire waits in line
	answers  []reply         // guarded by mu: the last one goes on
	sent     []time.Duration // guarded by mu: when heartbeats came
	restored int             // guarded by mu
	loaded   int             // guarded by mu
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
		return engine.Answer{Ticket: 1, Place: "254 1", Left: wait, NextDeadline: engine.NextDeadline{In: -1}}, nil
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
	round := engine.Round{NextDeadline: engine.NextDeadline{In: -1, More: a.more}}
	for range claims {
		round.Status = append(round.Status, a.Status)
	}
	return round, nil
}

func (p *played) BeatMany(ctx context.Context, batches []engine.Batch, answered func(int, engine.Round, error)) {
	oneByOne(ctx, p.Beat, batches, answered)
}

func (p *played) Restore(_ context.Context, _ string, claims []*engine.Claim) (engine.Round, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restored += len(claims)
	return engine.Round{NextDeadline: engine.NextDeadline{In: -1}, Status: []engine.Status{{Word: engine.WordWaiting}}}, nil
}

func (p *played) Load(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loaded++
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

// counts are how many claims were restored, and how often a script was loaded.
func (p *played) counts() (restored, loaded int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restored, p.loaded
}

// onPlayed runs a test in virtual time with an engine on such a server.
func onPlayed(
	t *testing.T, p *played, test func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind), configure ...func(*engine.Config),
) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p.fence, p.resource, p.clock = 1, "r1", clock.New()
		server, err := embedded.Start()
		require.NoError(t, err)
		defer server.Close()
		redis, err := server.Client()
		require.NoError(t, err)
		defer redis.Close()
		var mu sync.Mutex
		var seen []observe.Kind
		cfg := engine.Config{
			Redis: redis, Scripts: p, Node: "n", Channel: "c", Wait: wait, CallTimeout: 10 * time.Second, CleanupTimeout: time.Second, Clock: p.clock,
			Observe: func(ev observe.Event) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, ev.Kind)
			},
		}
		for _, f := range configure {
			f(&cfg)
		}
		e := engine.New(cfg)
		defer func() { require.NoError(t, e.Close(context.Background())) }()
		test(t, e, func() []observe.Kind {
			mu.Lock()
			defer mu.Unlock()
			return append([]observe.Kind(nil), seen...)
		})
	})
}

var (
	isHeld    = engine.Status{Word: engine.WordHeld, Left: wait, Fence: 1, Resource: "r1"}
	isWaiting = engine.Status{Word: engine.WordWaiting, Left: wait}
	isUnknown = engine.Status{Word: engine.WordUnknown}
	isGone    = engine.Status{Word: engine.WordReleased}
)

const never = time.Hour

func TestALateHeartbeatKeepsAHold(t *testing.T) {
	p := &played{answers: []reply{{Status: isHeld, slow: wait / 2}, {Status: isHeld, slow: never}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
		h := take(t, e)
		after(wait - time.Second)
		require.NoError(t, h.Err())
		require.Greater(t, len(p.times()), 1, "it was sent again")
		after(2 * time.Second)
		require.NoError(t, h.Err(), "the server had renewed it")
		after(wait/3 - time.Second)
		require.ErrorIs(t, h.Err(), berth.ErrLost, "from the start of the heartbeat that was answered")
	})
}

func TestALateEndEndsAHold(t *testing.T) {
	p := &played{answers: []reply{{Status: isGone, slow: wait / 2}, {Status: isHeld, slow: 0}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
		h := take(t, e)
		after(wait/3 + wait/2 - 1)
		require.NoError(t, h.Err())
		after(1)
		require.ErrorIs(t, h.Err(), berth.ErrReleased)
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
			}, func(cfg *engine.Config) { l.Clock, cfg.Clock = cfg.Clock, l })
		})
	}
}

func TestAnAnswerFromBeforeALaterOneDoesNotEndAHold(t *testing.T) {
	p := &played{answers: []reply{{Status: isUnknown, slow: wait / 2}, {Status: isHeld, slow: 0}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
		h := take(t, e)
		after(2 * wait)
		require.NoError(t, h.Err(), "the later answer said that it is held")
	})
}

// queue has a claim wait in line.
func queue(e *engine.Engine) (returned chan error, leave context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	returned = make(chan error, 1)
	go func() {
		r := engine.Record{Weight: 1, Wait: wait, Lease: wait}
		_, err := e.Acquire(ctx, &engine.Claim{ID: e.ClaimID(), Name: "x", Record: r, MayWait: true}, 0)
		returned <- err
	}()
	synctest.Wait()
	return returned, cancel
}

func TestALateUnknownRestoresNothingThatALaterHeartbeatHasFound(t *testing.T) {
	p := &played{queues: true, answers: []reply{{Status: isUnknown, slow: wait * 2 / 3}, {Status: isWaiting, slow: 0}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind) {
		returned, leave := queue(e)
		after(2 * wait)
		restored, _ := p.counts()
		require.Zero(t, restored)
		require.NotContains(t, kinds(), observe.Restored)
		leave()
		require.ErrorIs(t, <-returned, berth.ErrNotAcquired)
	})
}

func TestALateUnknownRestoresWhereNothingNewerIsKnown(t *testing.T) {
	p := &played{queues: true, answers: []reply{{Status: isUnknown, slow: wait * 2 / 3}, {Status: isWaiting, slow: never}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
		returned, leave := queue(e)
		after(wait)
		restored, _ := p.counts()
		require.Equal(t, 1, restored)
		leave()
		require.ErrorIs(t, <-returned, berth.ErrNotAcquired)
	})
}

func TestALateGrantFromBeforeALaterAnswerIsNotBelieved(t *testing.T) {
	p := &played{queues: true, answers: []reply{{Status: isHeld, slow: wait * 2 / 3}, {Status: isWaiting, slow: 0}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
		returned, leave := queue(e)
		after(2 * wait)
		require.Empty(t, returned, "a later answer says that it waits")
		leave()
		require.ErrorIs(t, <-returned, berth.ErrNotAcquired)
	})
}

func TestALateGrantIsTakenFromItsOwnStart(t *testing.T) {
	p := &played{queues: true, answers: []reply{{Status: isHeld, slow: wait / 2}, {Status: isWaiting, slow: never}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
		returned, _ := queue(e)
		sent := p.times()
		require.Len(t, sent, 1, "it is asked for once it has subscribed")
		after(sent[0] + wait/2 - 1 - p.clock.Now())
		require.Empty(t, returned)
		after(1)
		require.NoError(t, <-returned)
	})
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

func TestAHeartbeatThatIsMissedIsToldOf(t *testing.T) {
	p := &played{answers: []reply{{Status: isHeld, slow: never}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind) {
		take(t, e)
		after(wait/3 + wait/6)
		require.Equal(t, []observe.Kind{observe.Granted, observe.Unavailable}, kinds())
	})
}

func TestTheHeartbeatsScriptIsLoadedOnce(t *testing.T) {
	p := &played{answers: []reply{{Status: isHeld, slow: 0}}}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
		for range 3 {
			take(t, e)
		}
		synctest.Wait()
		_, loaded := p.counts()
		require.Equal(t, 1, loaded)
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
				r := engine.Record{Weight: 1, Wait: wait, Lease: wait}
				_, err := e.Acquire(context.Background(), &engine.Claim{ID: e.ClaimID(), Name: "x", Record: r}, 0)
				require.ErrorIs(t, err, berth.ErrNotAcquired)
				synctest.Wait()
				_, loaded := p.counts()
				require.Zero(t, loaded)
				_, released := p.fake.counts()
				require.Equal(t, 1, released, "what was granted is given back")
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

func TestAReleaseOfWhatTheServerSaysHadExpired(t *testing.T) {
	for want, fixed := range map[error]bool{berth.ErrExpired: true, berth.ErrLost: false} {
		t.Run(want.Error(), func(t *testing.T) {
			onFake(t, func(t *testing.T, f *fake, e *engine.Engine, _ func() int) {
				f.word = engine.HadExpired
				h := take(t, e, func(r *engine.Record) { r.NoRenew = fixed })
				require.NoError(t, h.Err())
				require.ErrorIs(t, h.Release(context.Background()), want)
			})
		})
	}
}

// stalls lets the process stand still while its release is on its way.
type stalls struct {
	*played
	clock *leap
}

func (s stalls) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	s.clock.by.Add(int64(wait))
	return s.played.Release(ctx, c, stays)
}

func TestAReleaseThatComesAfterTheEndSaysWhatHasEndedTheHold(t *testing.T) {
	for want, maximum := range map[error]time.Duration{berth.ErrExpired: time.Second, berth.ErrLost: time.Minute} {
		for _, word := range []engine.Released{engine.HadExpired, engine.NotHeld} {
			t.Run(want.Error()+" "+string(word), func(t *testing.T) {
				p, l := &played{fake: fake{word: word}, answers: []reply{{Status: isHeld}}}, &leap{}
				onPlayed(t, p, func(t *testing.T, e *engine.Engine, kinds func() []observe.Kind) {
					h := take(t, e, func(r *engine.Record) { r.MaxHold = maximum })
					require.ErrorIs(t, h.Release(context.Background()), want)
					require.Equal(t, maximum == time.Minute, slices.Contains(kinds(), observe.Lost))
				}, func(cfg *engine.Config) { l.Clock, cfg.Clock, cfg.Scripts = cfg.Clock, l, stalls{p, l} })
			})
		}
	}
}
