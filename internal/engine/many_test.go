package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// manyNames is a server that renews what is held, but for what a test says of a name.
type manyNames struct {
	fake

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
		return isQueued, nil
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
		status := isHeld
		if unknown {
			status = isUnknown
		}
		answered(i, roundOf(batches[i].Claims, status), fails)
		m.mu.Lock()
		m.renewed[name] = m.clock.Now()
		m.mu.Unlock()
	}
}

func (m *manyNames) Restore(_ context.Context, name string, claims []*engine.Claim) (engine.Round, error) {
	m.mu.Lock()
	slow := m.unknown[name]
	m.mu.Unlock()
	<-time.After(slow)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.unknown, name)
	m.restored = append(m.restored, name)
	return roundOf(claims[:1], engine.Status{Word: engine.WordHeld}), nil
}

func onManyNames(t *testing.T, test func(t *testing.T, m *manyNames, e *engine.Engine)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &manyNames{unknown: map[string]time.Duration{}, fails: map[string]error{}, renewed: map[string]time.Duration{}, clock: clock.New()}
		m.fence, m.resource = 1, "r1"
		redis := connected(t)
		e, _ := begin(t, m, func(cfg *engine.Config) { cfg.Redis, cfg.Scripts = unheard{redis}, m })
		test(t, m, e)
	})
}

// now runs f while nothing changes.
func (m *manyNames) now(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
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
		var asking []<-chan error
		for _, name := range []string{"lost", "lost, too"} {
			m.now(func() { m.unknown[name] = slow })
			asking = append(asking, asksInBackground(context.Background(), e, claimOf(e, name), 0))
		}
		after(wait / 3)
		m.now(func() {
			require.Len(t, m.rounds, 2, "those that hold, and those that wait")
			require.Equal(t, map[string]time.Duration{"held": wait / 3, "lost": wait / 3, "lost, too": wait / 3}, m.renewed)
			require.Empty(t, m.restored)
		})
		after(slow)
		m.now(func() { require.ElementsMatch(t, []string{"lost", "lost, too"}, m.restored, "side by side") })
		for _, err := range asking {
			require.NoError(t, <-err, "the next heartbeat says that they hold")
		}
		require.NoError(t, h.Err())
	})
}
