package engine_test

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/observe"
)

// wait is the wait lease, and the lease, of the claims of these tests.
const wait = 6 * time.Second

// fake is a server that holds one claim, by a grant that a test changes.
type fake struct {
	mu       sync.Mutex
	fence    int64           // guarded by mu
	resource string          // guarded by mu
	slow     time.Duration   // guarded by mu: how long the answer of the next beat is on its way
	beats    int             // guarded by mu
	released int             // guarded by mu
	acquired func()          // guarded by mu: called with mu held when an acquire has run; may be nil
	word     engine.Released // guarded by mu: what a release is told if it is not empty
}

// grants changes what the claim holds, as after a failover.
func (f *fake) grants(fence int64, resource string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fence, f.resource = fence, resource
}

// slows delays the answer of the next beat, which runs at once.
func (f *fake) slows(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slow = d
}

func (f *fake) counts() (beats, released int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.beats, f.released
}

func (f *fake) Acquire(_ context.Context, c *engine.Claim) (engine.Answer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := engine.Answer{
		Granted: true, Confirmed: !c.Record.NoRenew, Ticket: 1, Fence: f.fence, Resource: f.resource, Left: wait, NextDeadline: engine.NextDeadline{In: -1},
	}
	if f.acquired != nil {
		f.acquired()
	}
	return a, nil
}

func (f *fake) Beat(_ context.Context, _ string, _ engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	f.mu.Lock()
	status := engine.Status{Word: engine.WordHeld, Left: wait, Fence: f.fence, Resource: f.resource}
	slow := f.slow
	f.slow = 0
	f.beats++
	f.mu.Unlock()
	<-time.After(slow)
	round := engine.Round{NextDeadline: engine.NextDeadline{In: -1}}
	for range claims {
		round.Status = append(round.Status, status)
	}
	return round, nil
}

func (f *fake) BeatMany(ctx context.Context, batches []engine.Batch, answered func(int, engine.Round, error)) {
	oneByOne(ctx, f.Beat, batches, answered)
}

// beat is a Beat of a fake.
type beat func(context.Context, string, engine.Mode, []*engine.Claim) (engine.Round, error)

// oneByOne is the BeatMany of a fake: each batch is answered by itself.
func oneByOne(ctx context.Context, b beat, batches []engine.Batch, answered func(int, engine.Round, error)) {
	var all sync.WaitGroup
	for i, batch := range batches {
		all.Go(func() {
			round, err := b(ctx, batch.Name, engine.ModeBeat, batch.Claims)
			answered(i, round, err)
		})
	}
	all.Wait()
}

func (f *fake) Load(context.Context) error { return nil }

func (f *fake) Release(context.Context, *engine.Claim, time.Duration) (engine.Parting, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.released++
	return engine.Parting{Word: cmp.Or(f.word, engine.GivenBack), Fence: f.fence}, nil
}

func (f *fake) Restore(context.Context, string, []*engine.Claim) (engine.Round, error) {
	panic("nothing waits")
}

func (f *fake) Requeue(context.Context, *engine.Claim) (engine.Answer, bool, error) {
	panic("nothing waits")
}

func (f *fake) Sweep(context.Context, engine.Line) (engine.NextDeadline, error) {
	return engine.NextDeadline{In: -1}, nil
}

func (f *fake) Key(at engine.Line) string { return at.Name }

// onFake runs a test in virtual time with an engine on a fake server.
func onFake(t *testing.T, test func(t *testing.T, f *fake, e *engine.Engine, lost func() int)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{fence: 1, resource: "r1"}
		var mu sync.Mutex
		lost := 0
		e := engine.New(engine.Config{
			Scripts: f, Node: "n", Wait: wait, CallTimeout: 10 * time.Second, CleanupTimeout: time.Second, Clock: clock.New(),
			Observe: func(ev observe.Event) {
				mu.Lock()
				defer mu.Unlock()
				if ev.Kind == observe.Lost {
					lost++
				}
			},
		})
		defer func() { require.NoError(t, e.Close(context.Background())) }()
		test(t, f, e, func() int {
			mu.Lock()
			defer mu.Unlock()
			return lost
		})
	})
}

func take(t *testing.T, e *engine.Engine, change ...func(*engine.Record)) *engine.Hold {
	t.Helper()
	r := engine.Record{Weight: 1, Wait: wait, Lease: wait}
	for _, f := range change {
		f(&r)
	}
	h, err := e.Acquire(context.Background(), &engine.Claim{ID: e.ClaimID(), Name: "x", Record: r}, 0)
	require.NoError(t, err)
	return h
}

// after lets virtual time pass.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// requireLost fails unless the hold has ended, once, and was given back, once.
func requireLost(t *testing.T, f *fake, h *engine.Hold, lost func() int) {
	t.Helper()
	require.ErrorIs(t, h.Err(), berth.ErrLost)
	require.ErrorIs(t, context.Cause(h.Context()), berth.ErrLost)
	require.Equal(t, 1, lost())
	_, released := f.counts()
	require.Equal(t, 1, released)
	require.ErrorIs(t, h.Release(context.Background()), berth.ErrLost)
	_, released = f.counts()
	require.Equal(t, 1, released, "it was given back already")
}

func TestAHoldEndsWhereTheServerKnowsItByAnotherGrant(t *testing.T) {
	for name, other := range map[string]struct {
		fence    int64
		resource string
	}{
		"a newer fence": {2, "r1"}, "an older one": {-1, "r1"}, "another resource": {2, "r2"},
	} {
		t.Run(name, func(t *testing.T) {
			for name, ask := range map[string]func(h *engine.Hold){
				"by a heartbeat": func(*engine.Hold) { after(wait / 3) },
				"by Renew":       func(h *engine.Hold) { _ = h.Renew(context.Background()) },
				"by Detach":      func(h *engine.Hold) { _ = h.Detach(context.Background()) },
			} {
				t.Run(name, func(t *testing.T) {
					onFake(t, func(t *testing.T, f *fake, e *engine.Engine, lost func() int) {
						h := take(t, e)
						f.grants(other.fence, other.resource)
						ask(h)
						synctest.Wait()
						requireLost(t, f, h, lost)
					})
				})
			}
		})
	}
}

// Between the grant and the return of the confirming call nobody has been told of any
// resource yet.
func TestAClaimWithoutAHandleTakesTheGrantThatItsConfirmingCallNames(t *testing.T) {
	onFake(t, func(t *testing.T, f *fake, e *engine.Engine, lost func() int) {
		f.mu.Lock()
		f.acquired = func() { f.fence, f.resource = 2, "r2" } // once it has answered
		f.mu.Unlock()
		h := take(t, e, func(r *engine.Record) { r.NoRenew = true })
		require.EqualValues(t, 2, h.Fence())
		require.Equal(t, "r2", h.Resource())
		after(wait / 2)
		require.NoError(t, h.Renew(context.Background()))
		require.NoError(t, h.Release(context.Background()))
		require.Zero(t, lost())
	})
}

// exchange starts a call that gets the next grant, and whose answer comes later.
func exchange(f *fake, h *engine.Hold, fence int64, resource string, later time.Duration) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := h.Exchange(context.Background(), func(context.Context) (engine.Exchanged, error) {
			f.grants(fence, resource)
			<-time.After(later)
			return engine.Exchanged{Fence: fence, Resource: resource}, nil
		})
		done <- err
	}()
	synctest.Wait()
	return done
}

// A heartbeat does not wait for an exchange: it runs before, in between or after.
func TestAnExchangeAndAHeartbeatAtOnceEndNothing(t *testing.T) {
	t.Run("the beat's answer, from before, comes behind the exchange's", func(t *testing.T) {
		onFake(t, func(t *testing.T, f *fake, e *engine.Engine, lost func() int) {
			h := take(t, e)
			f.slows(500 * time.Millisecond)
			after(wait / 3)
			require.NoError(t, <-exchange(f, h, 2, "r2", 0))
			before, _ := f.counts()
			after(500 * time.Millisecond)
			beats, _ := f.counts()
			require.Equal(t, before+1, beats, "it proves nothing, so another one asks at once")
			require.NoError(t, h.Err())
			require.Equal(t, "r2", h.Resource())
			f.grants(3, "r3")
			after(wait / 3)
			requireLost(t, f, h, lost)
		})
	})
	t.Run("the exchange's answer comes behind the beat's, which names the new grant", func(t *testing.T) {
		onFake(t, func(t *testing.T, f *fake, e *engine.Engine, lost func() int) {
			h := take(t, e)
			after(wait/3 - time.Second) // before the beat
			done := exchange(f, h, 2, "r2", 3*time.Second)
			after(2 * time.Second)
			beats, released := f.counts()
			require.Equal(t, 1, beats, "what proves nothing is asked again when the exchange is over")
			require.Zero(t, released)
			require.NoError(t, h.Err())
			require.NoError(t, <-done)
			require.EqualValues(t, 2, h.Fence())
			after(2 * wait)
			require.NoError(t, h.Err())
			require.Zero(t, lost())
		})
	})
	t.Run("the beat is sent while the exchange is under way, and answered after it", func(t *testing.T) {
		onFake(t, func(t *testing.T, f *fake, e *engine.Engine, lost func() int) {
			h := take(t, e)
			after(wait/3 - time.Second)
			done := exchange(f, h, 2, "r2", 1500*time.Millisecond)
			f.slows(900 * time.Millisecond)
			require.NoError(t, <-done)
			after(2 * wait)
			require.NoError(t, h.Err())
			require.Zero(t, lost())
		})
	})
}

func TestAHoldThatWasTakenUpEndsByAnotherGrantToo(t *testing.T) {
	onFake(t, func(t *testing.T, f *fake, e *engine.Engine, lost func() int) {
		require.NoError(t, e.Begin())
		c := &engine.Claim{ID: "m.1", Name: "x", Record: engine.Record{Weight: 1, Wait: wait, Lease: wait}}
		h, err := e.Adopt(context.Background(), c, e.Now(), 1, "r1", wait)
		e.End()
		require.NoError(t, err)
		after(wait / 3)
		require.NoError(t, h.Err())
		f.grants(2, "r2")
		after(wait / 3)
		requireLost(t, f, h, lost)
	})
}
