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
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// patient is the CallTimeout of the tests below, and a third of it their pause.
const patient = 3 * time.Second

// tardy is a server that answers acquires as a test says, one after the other. What
// comes after those is never answered.
type tardy struct {
	fake
	mu      sync.Mutex
	answers []tardyAnswer   // guarded by mu
	starts  []time.Duration // guarded by mu
	left    []time.Duration // guarded by mu: when a call was given up
	stays   []time.Duration // guarded by mu: of the tombstones
	clock   clock.Clock
}

type tardyAnswer struct {
	engine.Answer
	slow time.Duration
}

func (s *tardy) Acquire(ctx context.Context, _ *engine.Claim) (engine.Answer, error) {
	s.mu.Lock()
	a := tardyAnswer{slow: never}
	if len(s.answers) > 0 {
		a, s.answers = s.answers[0], s.answers[1:]
	}
	s.starts = append(s.starts, s.clock.Now())
	s.mu.Unlock()
	a.NextDeadline.In = -1
	select {
	case <-time.After(a.slow):
		return a.Answer, nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.left = append(s.left, s.clock.Now())
		return engine.Answer{}, &scriptkit.Error{MaybeRan: true, Repeatable: true, Err: ctx.Err()}
	}
}

func (s *tardy) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	s.mu.Lock()
	s.stays = append(s.stays, stays)
	s.mu.Unlock()
	return s.fake.Release(ctx, c, stays)
}

// noted is a copy of what the server has noted.
func (s *tardy) noted(what *[]time.Duration) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(*what)
}

func (s *tardy) started() []time.Duration    { return s.noted(&s.starts) }
func (s *tardy) given() []time.Duration      { return s.noted(&s.left) }
func (s *tardy) tombstones() []time.Duration { return s.noted(&s.stays) }

// patiently are the settings of the engine: how long a call may take, and a pause of a second.
func patiently(cfg *engine.Config) {
	cfg.Wait, cfg.CallTimeout, cfg.Retry = time.Hour, patient, berth.Retry{Base: time.Second, Jitter: -1}
}

// onTardy runs a test in virtual time with an engine on such a server, with a context
// that ends and with one that never does.
func onTardy(t *testing.T, answers []tardyAnswer, test func(t *testing.T, ctx context.Context, s *tardy, e *engine.Engine)) {
	t.Helper()
	t.Parallel()
	for name, ends := range map[string]bool{"a context that ends": true, "one that never does": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tardy{answers: append([]tardyAnswer(nil), answers...), clock: clock.New()}
				s.fence = 1
				e, _ := begin(t, s, patiently)
				ctx, cancel := context.Background(), func() {}
				if ends {
					ctx, cancel = context.WithCancel(ctx)
				}
				defer cancel()
				test(t, ctx, s, e)
			})
		})
	}
}

func may(ctx context.Context, e *engine.Engine, wait bool) (*engine.Hold, error) {
	r := engine.Record{Weight: 1, Wait: time.Hour, Lease: time.Hour}
	return e.Acquire(ctx, &engine.Claim{ID: e.ClaimID(), Name: "x", Record: r, MayWait: wait}, 0)
}

var (
	isGranted = engine.Answer{Granted: true, Confirmed: true, Ticket: 1, Fence: 1, Left: time.Hour}
	isFull    = engine.Answer{Refused: &berth.AcquireError{Reason: berth.ReasonFull}}
)

// What comes late is taken, if it comes first; nobody waits for another attempt, or asks again.
func TestALateAnswerToAnAcquireIsTaken(t *testing.T) {
	const late = patient + 1500*time.Millisecond
	again := []time.Duration{patient + time.Second}
	for name, c := range map[string]struct {
		answers  []tardyAnswer
		from, at time.Duration
		again    []time.Duration // when it is asked for again, and that attempt is given up
		waits    bool
		refused  bool
	}{
		"a grant":                  {answers: []tardyAnswer{{isGranted, late}}, at: late, again: again, waits: true},
		"a grant during the pause": {answers: []tardyAnswer{{isGranted, late - time.Second}}, at: late - time.Second},
		"a refusal":                {answers: []tardyAnswer{{isFull, late}}, at: late, again: again, refused: true},
		"that to the other attempt": {
			answers: []tardyAnswer{{isFull, 3 * patient}, {isGranted, time.Second}},
			from:    patient + time.Second, at: patient + 2*time.Second, again: again,
		},
	} {
		t.Run(name, func(t *testing.T) {
			onTardy(t, c.answers, func(t *testing.T, ctx context.Context, s *tardy, e *engine.Engine) {
				h, err := may(ctx, e, c.waits)
				require.Equal(t, c.at, s.clock.Now())
				synctest.Wait()
				require.Len(t, s.given(), len(c.again))
				for _, at := range s.given() {
					require.Equal(t, c.at, at, "nobody waits for the other one")
				}
				if c.refused {
					require.Equal(t, berth.ReasonFull, refused(t, err).Reason)
				} else {
					require.NoError(t, err)
					require.Equal(t, time.Hour-2*time.Millisecond-time.Hour/100-c.at+c.from, h.Left(), "from its own start")
				}
				after(time.Minute)
				require.Equal(t, append([]time.Duration{0}, c.again...), s.started())
				if !c.refused {
					require.Empty(t, s.tombstones())
					require.NoError(t, h.Release(context.Background()))
				}
				require.Equal(t, []time.Duration{time.Minute}, s.tombstones(), "the other attempt may run yet")
			})
		})
	}
}

// More is said to be in the way, for ever, and a sweep finds nothing to drop.
func TestARefusalEndsThoughMoreSeemsToBeInTheWay(t *testing.T) {
	unfinished := tardyAnswer{engine.Answer{Refused: isFull.Refused, NextDeadline: engine.NextDeadline{More: true}}, time.Second}
	onTardy(t, slices.Repeat([]tardyAnswer{unfinished}, 200), func(t *testing.T, ctx context.Context, s *tardy, e *engine.Engine) {
		_, err := may(ctx, e, true)
		require.Equal(t, berth.ReasonFull, refused(t, err).Reason)
		require.Len(t, s.started(), 101, "the first one, and one behind each sweep")
	})
}

func TestWhoLeavesAnUnansweredAcquireLeavesATombstone(t *testing.T) {
	onTardy(t, []tardyAnswer{{isGranted, patient + 2500*time.Millisecond}}, func(t *testing.T, _ context.Context, s *tardy, e *engine.Engine) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := may(ctx, e, true)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		after(patient - time.Second - 1)
		require.Empty(t, s.tombstones(), "the removal must not overtake it")
		after(1)
		require.Equal(t, []time.Duration{time.Minute}, s.tombstones())
		after(time.Minute)
		require.Len(t, s.started(), 1)
	})
}

func TestEachAttemptIsUnansweredAfterItsOwnTime(t *testing.T) {
	half := 500 * time.Millisecond
	onTardy(t, []tardyAnswer{{isGranted, 2 * half}}, func(t *testing.T, _ context.Context, s *tardy, e *engine.Engine) {
		_, err := may(context.Background(), e, true)
		require.NoError(t, err)
		after(2 * half)
		ctx, cancel := context.WithTimeout(context.Background(), patient+4*half)
		defer cancel()
		var asking sync.WaitGroup
		for range 2 {
			asking.Go(func() {
				_, err := may(ctx, e, true)
				require.ErrorIs(t, err, context.DeadlineExceeded)
			})
			after(half)
		}
		asking.Wait()
		again := patient + time.Second
		require.Equal(t, []time.Duration{0, 4 * half, 5 * half, 4*half + again, 5*half + again}, s.started())
	})
}

func TestASlowObserverHoldsUpItsOwnClaimOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tardy{clock: clock.New()}
		s.fence = 1
		e, _ := begin(t, s, patiently, func(cfg *engine.Config) {
			cfg.Observe = func(ev observe.Event) {
				if ev.Kind == observe.Unavailable {
					time.Sleep(time.Second)
				}
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		const calls = 8
		var running sync.WaitGroup
		for range calls {
			running.Go(func() {
				if _, err := may(ctx, e, true); err == nil {
					t.Error("granted by nobody")
				}
			})
		}
		time.Sleep(patient + 2500*time.Millisecond)
		require.Len(t, s.started(), 2*calls, "all have asked again, a second after they told of it")
		cancel()
		running.Wait()
	})
}

func TestAnAcquireAndAReleaseAllocateLittle(t *testing.T) {
	f := &fake{fence: 1, left: time.Hour} // the machine may stand still meanwhile
	e, _ := begin(t, f, func(cfg *engine.Config) {
		cfg.Wait, cfg.CallTimeout, cfg.CleanupTimeout, cfg.Observe = time.Hour, time.Hour, time.Hour, nil
	})
	// The claim with its hold, its id, the asking and what ends it, the attempt, and the end.
	const most = 6
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		h, err := may(context.Background(), e, true)
		if err == nil {
			err = h.Release(context.Background())
		}
		if err != nil {
			t.Error(err)
		}
	}), float64(most))
}

// unswept is a server on which each call that frees something stops at its bound.
type unswept struct {
	fake
	queues bool
	sweeps atomic.Int64
}

func (s *unswept) Acquire(context.Context, *engine.Claim) (engine.Answer, error) {
	if s.queues {
		return isQueued, nil
	}
	return isGranted, nil
}

func (s *unswept) Beat(_ context.Context, _ string, _ engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	return roundOf(claims, isWaiting), nil
}

func (s *unswept) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	parting, err := s.fake.Release(ctx, c, stays)
	parting.More = true
	return parting, err
}

func (s *unswept) Sweep(context.Context, engine.Line) (engine.NextDeadline, error) {
	return engine.NextDeadline{In: -1, Dropped: 1, More: s.sweeps.Add(1) < 3}, nil
}

// Nobody else may be there to go on.
func TestWhoFreesSweepsWhatIsLeft(t *testing.T) {
	for name, queues := range map[string]bool{"a release": false, "the end of a wait": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &unswept{fake: fake{fence: 1}, queues: queues}
				redis := connected(t)
				e, _ := begin(t, s, patiently, func(cfg *engine.Config) { cfg.Redis = redis })
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				h, err := may(ctx, e, true)
				if queues {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				} else {
					require.NoError(t, err)
					require.NoError(t, h.Release(ctx))
				}
				synctest.Wait()
				require.EqualValues(t, 3, s.sweeps.Load())
			})
		})
	}
}
