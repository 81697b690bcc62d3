package engine_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// manyNames is a server that renews what is held, but for what a test says of a name.
type manyNames struct {
	fake
	t *testing.T

	mu       sync.Mutex
	rounds   [][]string               // guarded by mu: the names of each BeatMany
	unknown  map[string]time.Duration // guarded by mu: does not know it any more; how long a restore takes
	fails    map[string]error         // guarded by mu
	restored []string                 // guarded by mu: in the order of the answers
	renewed  map[string]time.Duration // guarded by mu: when a heartbeat had been taken in
	clock    clock.Clock
}

func (m *manyNames) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	if c.MayWait {
		return engine.Answer{Ticket: 1, Place: "254 1", Left: wait, NextDeadline: engine.NextDeadline{In: -1}}, nil
	}
	return m.fake.Acquire(ctx, c)
}

func (m *manyNames) BeatMany(_ context.Context, batches []engine.Batch, answered func(int, engine.Round, error)) {
	m.mu.Lock()
	names := make([]string, len(batches))
	for i, b := range batches {
		names[i] = b.Name
	}
	m.rounds = append(m.rounds, names)
	m.mu.Unlock()
	for i, name := range names {
		m.mu.Lock()
		_, unknown := m.unknown[name]
		fails := m.fails[name]
		m.mu.Unlock()
		round := engine.Round{NextDeadline: engine.NextDeadline{In: -1}}
		for range batches[i].Claims {
			status := engine.Status{Word: engine.WordHeld, Left: wait, Fence: m.fence, Resource: m.resource}
			if unknown {
				status = isUnknown
			}
			round.Status = append(round.Status, status)
		}
		answered(i, round, fails)
		m.mu.Lock()
		m.renewed[name] = m.clock.Now()
		m.mu.Unlock()
	}
}

func (m *manyNames) Restore(_ context.Context, name string, _ []*engine.Claim) (engine.Round, error) {
	m.mu.Lock()
	slow := m.unknown[name]
	m.mu.Unlock()
	<-time.After(slow)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unknown, name)
	m.restored = append(m.restored, name)
	return engine.Round{NextDeadline: engine.NextDeadline{In: -1}, Status: []engine.Status{{Word: engine.WordHeld}}}, nil
}

// unheard is a client whose subscriptions do not come about, so that nobody who waits asks
// at once.
type unheard struct{ rueidis.Client }

func (unheard) Dedicate() (rueidis.DedicatedClient, func()) { panic("not used") }

func (unheard) Receive(ctx context.Context, _ rueidis.Completed, _ func(rueidis.PubSubMessage)) error {
	<-ctx.Done()
	return ctx.Err()
}

func onManyNames(t *testing.T, test func(t *testing.T, m *manyNames, e *engine.Engine)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &manyNames{t: t, unknown: map[string]time.Duration{}, fails: map[string]error{}, renewed: map[string]time.Duration{}, clock: clock.New()}
		m.fence, m.resource = 1, "r1"
		server, err := embedded.Start()
		require.NoError(t, err)
		defer server.Close()
		redis, err := server.Client()
		require.NoError(t, err)
		defer redis.Close()
		e := engine.New(engine.Config{
			Redis: unheard{redis}, Channel: "c", Scripts: m, Node: "n", Wait: wait, CallTimeout: 10 * time.Second, CleanupTimeout: time.Second, Clock: m.clock,
		})
		defer func() { require.NoError(t, e.Close(context.Background())) }()
		test(t, m, e)
	})
}

// now runs f while nothing changes.
func (m *manyNames) now(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

func hold(t *testing.T, e *engine.Engine, name string) *engine.Hold {
	t.Helper()
	h, err := e.Acquire(context.Background(), &engine.Claim{ID: e.ClaimID(), Name: name, Record: engine.Record{Weight: 1, Wait: wait, Lease: wait}}, 0)
	require.NoError(t, err)
	return h
}

func TestHoldsOfManyNamesAreRenewedTogether(t *testing.T) {
	onManyNames(t, func(t *testing.T, m *manyNames, e *engine.Engine) {
		var holds []*engine.Hold
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprint(i))
			holds = append(holds, hold(t, e, names[i]))
		}
		after(wait / 3)
		m.now(func() {
			require.Len(t, m.rounds, 1)
			require.ElementsMatch(t, names, m.rounds[0])
		})
		after(10 * wait)
		for _, h := range holds {
			require.NoError(t, h.Err())
		}
	})
}

func TestAHoldThatIsNotRenewedEndsNoOther(t *testing.T) {
	onManyNames(t, func(t *testing.T, m *manyNames, e *engine.Engine) {
		kept, fails, gone := hold(t, e, "kept"), hold(t, e, "fails"), hold(t, e, "gone")
		m.now(func() {
			m.fails["fails"] = &scriptkit.Error{Repeatable: true, Unavailable: true, Err: context.DeadlineExceeded}
			m.unknown["gone"] = 0
		})
		after(wait / 3)
		require.ErrorIs(t, gone.Err(), berth.ErrLost)
		after(wait)
		require.ErrorIs(t, fails.Err(), berth.ErrLost)
		require.NoError(t, kept.Err())
	})
}

func TestARestoreOfOneNameDelaysNoOther(t *testing.T) {
	onManyNames(t, func(t *testing.T, m *manyNames, e *engine.Engine) {
		const slow = wait / 12
		h := hold(t, e, "held")
		var all sync.WaitGroup
		for _, name := range []string{"lost", "lost, too"} {
			m.now(func() { m.unknown[name] = slow })
			all.Go(func() {
				r := engine.Record{Weight: 1, Wait: wait, Lease: wait}
				_, err := e.Acquire(context.Background(), &engine.Claim{ID: e.ClaimID(), Name: name, Record: r, MayWait: true}, 0)
				if err != nil {
					t.Error(err)
				}
			})
		}
		after(wait / 3)
		m.now(func() {
			require.Len(t, m.rounds, 2, "those that hold, and those that wait")
			require.Equal(t, map[string]time.Duration{"held": wait / 3, "lost": wait / 3, "lost, too": wait / 3}, m.renewed)
			require.Empty(t, m.restored)
		})
		after(slow)
		m.now(func() { require.ElementsMatch(t, []string{"lost", "lost, too"}, m.restored, "side by side") })
		all.Wait() // the next heartbeat says that they hold
		require.NoError(t, h.Err())
	})
}
