package engine_test

import (
	"context"
	"errors"
	"fmt"
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

// within is how long a release is repeated, and cleanup how long a caller waits for one
// who has left.
const (
	within  = 10 * time.Second
	cleanup = 2 * time.Second
)

// mute is a server that may answer late: who may wait is queued, who may not is granted.
type mute struct {
	fake
	acquire time.Duration // how long the answer to an acquire is on its way
	clock   clock.Clock
	told    *told

	mu     sync.Mutex
	speaks time.Duration   // guarded by mu: no release is answered before that
	asked  int             // guarded by mu: acquires
	came   []time.Duration // guarded by mu: when releases came
	stays  []time.Duration // guarded by mu: of the tombstones
}

func (m *mute) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	m.mu.Lock()
	m.asked++
	m.mu.Unlock()
	<-time.After(m.acquire)
	if c.MayWait && c.Name == "queued" {
		return isQueued, nil
	}
	return m.fake.Acquire(ctx, c)
}

func (m *mute) Beat(ctx context.Context, name string, mode engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	round, err := m.fake.Beat(ctx, name, mode, claims)
	for i := range round.Status {
		if name == "queued" {
			round.Status[i] = isWaiting
		}
	}
	return round, err
}

// Release is repeated for as long as Retry allows, as in the scripts of the primitives.
func (m *mute) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	m.mu.Lock()
	now := m.clock.Now()
	speaks := m.speaks - now
	m.came, m.stays = append(m.came, now), append(m.stays, stays)
	m.mu.Unlock()
	err := context.Cause(ctx)
	if err == nil {
		select {
		case <-time.After(max(0, min(speaks, within))):
			err = errors.New("no answer")
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if m.clock.Now() < now+speaks {
		return engine.Parting{}, &scriptkit.Error{MaybeRan: true, Repeatable: true, Unavailable: true, Err: err}
	}
	return m.fake.Release(ctx, c, stays)
}

// silent has the server answer no release before a moment.
func (m *mute) silent(until time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.speaks = until
}

// seen are how many acquires came, and when releases did, all of them without a tombstone.
func (m *mute) seen(t *testing.T) (asked int, came []time.Duration) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, stays := range m.stays {
		require.Zero(t, stays)
	}
	return m.asked, append([]time.Duration{}, m.came...)
}

// removals are when releases came.
func (m *mute) removals(t *testing.T) []time.Duration {
	t.Helper()
	_, came := m.seen(t)
	return came
}

// failures are the releases that the engine says have failed, and what it did for those who had left.
func (m *mute) failures() []observe.Event {
	return append(m.told.of(observe.ReleaseFailed), m.told.of(observe.CleanupFailed)...)
}

// onMute runs a test in virtual time with an engine on such a server.
func onMute(t *testing.T, test func(t *testing.T, m *mute, e *engine.Engine)) {
	t.Helper()
	m := &mute{}
	onEngine(t, m, m, within, nil, func(t *testing.T, e *engine.Engine) { test(t, m, e) })
}

// onEngine is onMute with a server s that m is part of, and settings.
func onEngine(
	t *testing.T, s engine.Scripts, m *mute, callTimeout time.Duration, server func(string) int, test func(t *testing.T, e *engine.Engine),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m.fence, m.resource, m.clock = 1, "r1", clock.New()
		redis := connected(t)
		e, seen := unclosed(s, func(c *engine.Config) {
			c.Redis, c.CallTimeout, c.CleanupTimeout, c.Server = unheard{redis}, callTimeout, cleanup, server
		})
		m.told = seen
		defer func() { _ = e.Close(context.Background()) }()
		test(t, e)
	})
}

// waits has a claim wait in line.
func waits(ctx context.Context, e *engine.Engine, maxWait time.Duration) error {
	c := claimOf(e, "queued")
	c.MayWait = true
	_, err := e.Acquire(ctx, c, maxWait)
	return err
}

// closes closes an engine in the background.
func closes(e *engine.Engine) <-chan error {
	return inBackground(func() error { return e.Close(context.Background()) })
}

func TestCloseEndsWaitsAndGivesBackHolds(t *testing.T) {
	onMute(t, func(t *testing.T, m *mute, e *engine.Engine) {
		first, second, detached := take(t, e), take(t, e), take(t, e)
		require.NoError(t, detached.Detach(t.Context()))
		waiting := inBackground(func() error { return waits(context.Background(), e, time.Hour) })
		require.NoError(t, e.Close(t.Context()))
		err := <-waiting
		require.Equal(t, berth.ReasonClosed, refused(t, err).Reason)
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
	onMute(t, func(t *testing.T, m *mute, e *engine.Engine) {
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
		h, err := adopt(e)
		require.ErrorIs(t, err, berth.ErrClosed)
		require.Nil(t, h)
		e.End()
		for _, err := range asking {
			require.ErrorIs(t, <-err, berth.ErrClosed)
		}
		require.NoError(t, <-closed)
		require.Len(t, m.removals(t), held+asked+1)
		require.EqualValues(t, held+asked+1, m.released.Load())
	})
}

// What runs in the background is told that Close has begun, and Close waits for its end.
func TestCloseWaitsForTheBackground(t *testing.T) {
	onMute(t, func(t *testing.T, _ *mute, e *engine.Engine) {
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
	onMute(t, func(t *testing.T, m *mute, e *engine.Engine) {
		ctx, cancel := context.WithCancel(t.Context())
		waiting := inBackground(func() error { return waits(ctx, e, 0) })
		after(time.Second)
		m.silent(1500 * time.Millisecond)
		cancel()
		require.ErrorIs(t, <-waiting, context.Canceled)
		require.Equal(t, time.Second, e.Now())
		require.NoError(t, e.Close(t.Context()))
		require.Equal(t, 1500*time.Millisecond, e.Now())
		require.Equal(t, []time.Duration{time.Second}, m.removals(t))
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
				onMute(t, func(t *testing.T, m *mute, e *engine.Engine) {
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
					require.Len(t, m.removals(t), 1)
				})
			})
		}
	}
}

// A release of an engine that is closed leaves nothing running.
func TestAReleaseAfterCloseEndsWithItsWait(t *testing.T) {
	onMute(t, func(t *testing.T, m *mute, e *engine.Engine) {
		h := take(t, e)
		m.silent(time.Hour)
		require.ErrorIs(t, e.Close(context.Background()), berth.ErrUnavailable)
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errOwn)
		require.ErrorIs(t, h.Release(ctx), errOwn)
		require.Equal(t, within+cleanup, e.Now())
		require.Equal(t, []time.Duration{0, within}, m.removals(t))
	})
}

// Retry bounds Close once, and not once for each of its holds; what it could not give
// back is told.
func TestRetryBoundsACloseOfManyHolds(t *testing.T) {
	const held, atOnce = 260, 256
	onMute(t, func(t *testing.T, m *mute, e *engine.Engine) {
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
		require.Len(t, m.removals(t), atOnce, "nothing more is sent then")
		require.Len(t, m.failures(), held)
	})
}

// What Retry bounds is how long no release at all is answered.
func TestACloseOutlastsAServerThatStandsStill(t *testing.T) {
	const held = 2*256 + 4
	onMute(t, func(t *testing.T, m *mute, e *engine.Engine) {
		for range held {
			take(t, e)
		}
		m.silent(9 * time.Second)
		time.AfterFunc(5*time.Second, func() { m.silent(18 * time.Second) })
		require.NoError(t, e.Close(context.Background()))
		require.Equal(t, 18*time.Second, e.Now())
		require.EqualValues(t, held, m.released.Load())
	})
}

func TestReleasesTogetherAreOne(t *testing.T) {
	onMute(t, func(t *testing.T, m *mute, e *engine.Engine) {
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
		require.Len(t, m.removals(t), 1)
	})
}

// A wait ends with what ended it first. Others were in the way only where the server has
// said so; and no removal overtakes the attempt that it is to remove.
func TestHowAWaitEnds(t *testing.T) {
	const end = 100 * time.Millisecond
	contexts := []error{context.Canceled, context.DeadlineExceeded, errOwn}
	for name, c := range map[string]struct {
		ctx     func() (context.Context, context.CancelFunc)
		maxWait time.Duration
		reason  berth.Reason
		matches []error
	}{
		"cancelled": {reason: berth.ReasonCancelled, matches: []error{context.Canceled, errOwn}, ctx: func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(context.Background())
			timer := time.AfterFunc(end, func() { cancel(errOwn) })
			return ctx, func() { timer.Stop() }
		}},
		"the caller's deadline": {reason: berth.ReasonTimedOut, maxWait: time.Hour, matches: []error{context.DeadlineExceeded, errOwn}, ctx: func() (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(context.Background(), end, errOwn)
		}},
		"MaxWait": {reason: berth.ReasonTimedOut, maxWait: end, ctx: func() (context.Context, context.CancelFunc) {
			return context.WithCancel(context.Background())
		}},
	} {
		for state, slow := range map[string]time.Duration{"it waits": 0, "its acquire is on its way": 5 * end} {
			t.Run(name+" while "+state, func(t *testing.T) {
				onMute(t, func(t *testing.T, m *mute, e *engine.Engine) {
					m.acquire = slow
					ctx, cancel := c.ctx()
					defer cancel()
					err := waits(ctx, e, c.maxWait)
					require.Equal(t, end, e.Now())
					refusal := refused(t, err)
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
	onMute(t, func(t *testing.T, m *mute, e *engine.Engine) {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errOwn)
		err := waits(ctx, e, time.Hour)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errOwn)
		asked, came := m.seen(t)
		require.Zero(t, asked)
		require.Empty(t, came)
	})
}

// A removal that fails is told, and given up.
func TestARemovalThatFailsIsTold(t *testing.T) {
	onMute(t, func(t *testing.T, m *mute, e *engine.Engine) {
		m.silent(time.Hour)
		require.ErrorIs(t, waits(context.Background(), e, time.Second), berth.ErrBusy)
		after(cleanup - 1)
		require.Empty(t, m.failures())
		after(1)
		require.Len(t, m.failures(), 1)
		after(time.Minute)
		require.Equal(t, []time.Duration{time.Second}, m.removals(t))
	})
}
