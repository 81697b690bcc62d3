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

// seen are when acquires came, and what stayed of the claims that were removed.
func (s *tardy) seen() (starts, stays []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Duration(nil), s.starts...), append([]time.Duration(nil), s.stays...)
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
				e := engine.New(engine.Config{
					Scripts: s, Node: "n", Wait: time.Hour, CallTimeout: patient, CleanupTimeout: time.Second, Clock: s.clock,
					Retry: berth.Retry{Base: time.Second, Jitter: -1},
				})
				defer func() { require.NoError(t, e.Close(context.Background())) }()
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

func TestALateGrantOfAnAcquireIsTaken(t *testing.T) {
	answers := []tardyAnswer{{isGranted, patient + 1500*time.Millisecond}}
	onTardy(t, answers, func(t *testing.T, ctx context.Context, s *tardy, e *engine.Engine) {
		h, err := may(ctx, e, true)
		require.NoError(t, err)
		require.Equal(t, patient+1500*time.Millisecond, s.clock.Now())
		require.Equal(t, time.Hour-2*time.Millisecond-time.Hour/100-s.clock.Now(), h.Left(), "from its own start")
		starts, _ := s.seen()
		require.Equal(t, []time.Duration{0, patient + time.Second}, starts)
		synctest.Wait()
		s.mu.Lock()
		require.Equal(t, []time.Duration{s.clock.Now()}, s.left, "nobody waits for the other one")
		s.mu.Unlock()
		require.NoError(t, h.Release(context.Background()))
		_, stays := s.seen()
		require.Equal(t, []time.Duration{time.Minute}, stays, "the other one may run yet")
	})
}

// More is said to be in the way, for ever, and a sweep finds nothing to drop.
func TestARefusalEndsThoughMoreSeemsToBeInTheWay(t *testing.T) {
	unfinished := tardyAnswer{engine.Answer{Refused: isFull.Refused, NextDeadline: engine.NextDeadline{More: true}}, time.Second}
	onTardy(t, slices.Repeat([]tardyAnswer{unfinished}, 200), func(t *testing.T, ctx context.Context, s *tardy, e *engine.Engine) {
		_, err := may(ctx, e, true)
		var refusal *berth.AcquireError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, berth.ReasonFull, refusal.Reason)
		starts, _ := s.seen()
		require.Len(t, starts, 101, "the first one, and one behind each sweep")
	})
}

func TestALateGrantDuringThePauseIsTaken(t *testing.T) {
	answers := []tardyAnswer{{isGranted, patient + 500*time.Millisecond}}
	onTardy(t, answers, func(t *testing.T, ctx context.Context, s *tardy, e *engine.Engine) {
		_, err := may(ctx, e, false)
		require.NoError(t, err)
		require.Equal(t, patient+500*time.Millisecond, s.clock.Now())
		after(time.Minute)
		starts, _ := s.seen()
		require.Len(t, starts, 1, "it is not asked for again")
	})
}

func TestALateRefusalIsTaken(t *testing.T) {
	answers := []tardyAnswer{{isFull, patient + 1500*time.Millisecond}}
	onTardy(t, answers, func(t *testing.T, ctx context.Context, s *tardy, e *engine.Engine) {
		_, err := may(ctx, e, false)
		var refusal *berth.AcquireError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, berth.ReasonFull, refusal.Reason)
		require.Equal(t, patient+1500*time.Millisecond, s.clock.Now())
		after(time.Minute)
		_, stays := s.seen()
		require.Equal(t, []time.Duration{time.Minute}, stays, "the other attempt may be granted yet")
	})
}

func TestOfTwoAnswersToAnAcquireTheFirstIsTaken(t *testing.T) {
	answers := []tardyAnswer{{isFull, 3 * patient}, {isGranted, time.Second}}
	onTardy(t, answers, func(t *testing.T, ctx context.Context, s *tardy, e *engine.Engine) {
		h, err := may(ctx, e, false)
		require.NoError(t, err)
		require.Equal(t, patient+2*time.Second, s.clock.Now())
		after(time.Minute)
		require.NoError(t, h.Err())
		_, stays := s.seen()
		require.Empty(t, stays)
	})
}

func TestWhoLeavesAnUnansweredAcquireLeavesATombstone(t *testing.T) {
	onTardy(t, []tardyAnswer{{isGranted, patient + 2500*time.Millisecond}}, func(t *testing.T, _ context.Context, s *tardy, e *engine.Engine) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := may(ctx, e, true)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		after(patient - time.Second - 1)
		_, stays := s.seen()
		require.Empty(t, stays, "the removal must not overtake it")
		after(1)
		_, stays = s.seen()
		require.Equal(t, []time.Duration{time.Minute}, stays)
		after(time.Minute)
		starts, _ := s.seen()
		require.Len(t, starts, 1)
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
		starts, _ := s.seen()
		require.Equal(t, []time.Duration{0, 4 * half, 5 * half, 4*half + again, 5*half + again}, starts)
	})
}

func TestASlowObserverHoldsUpItsOwnClaimOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tardy{clock: clock.New()}
		s.fence = 1
		e := engine.New(engine.Config{
			Scripts: s, Node: "n", Wait: time.Hour, CallTimeout: patient, CleanupTimeout: time.Second, Clock: s.clock,
			Retry: berth.Retry{Base: time.Second, Jitter: -1},
			Observe: func(ev observe.Event) {
				if ev.Kind == observe.Unavailable {
					time.Sleep(time.Second)
				}
			},
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
		starts, _ := s.seen()
		require.Len(t, starts, 2*calls, "all have asked again, a second after they told of it")
		cancel()
		running.Wait()
		require.NoError(t, e.Close(context.Background()))
	})
}
