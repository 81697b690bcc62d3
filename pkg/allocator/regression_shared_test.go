package allocator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// requireEnded fails unless each claim that was granted ended with one event, and no
// other did.
func (n *proc) requireEnded() {
	n.w.T.Helper()
	synctest.Wait()
	open := make(map[string]int)
	for _, e := range n.Events() {
		switch e.Kind {
		case observe.Granted:
			open[e.Claim]++
		case observe.Released, observe.Lost, observe.Expired, observe.ReleasedByOther:
			open[e.Claim]--
		}
	}
	require.NotEmpty(n.w.T, open)
	for claim, count := range open {
		require.Zero(n.w.T, count, claim)
	}
}

// What a Shared pool hands out has no lease that would end it: whatever is of no use
// must be ended by who finds out.
func TestWhatIsOfNoUseInASharedPoolIsEnded(t *testing.T) {
	ctx := context.Background()
	fails := func(context.Context, string) (string, error) { return "", errMine }
	panics := func(context.Context, string) (string, error) { panic(errMine) }
	opens := func(_ context.Context, key string) (string, error) { return key, nil }
	sick := func(context.Context, string) error { return errMine }
	for name, c := range map[string]struct {
		cfg    allocator.PoolConfig[string]
		closed []string
	}{
		"Open fails":        {allocator.PoolConfig[string]{Open: fails}, nil},
		"Open panics":       {allocator.PoolConfig[string]{Open: panics}, nil},
		"it is not healthy": {allocator.PoolConfig[string]{Open: opens, Healthy: sick}, []string{"a"}},
		"Healthy panics": {
			allocator.PoolConfig[string]{Open: opens, Healthy: func(context.Context, string) error { panic(errMine) }},
			[]string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				var closed []string
				c.cfg.Shared = true
				c.cfg.Close = func(key string) error { closed = append(closed, key); return nil }
				n := w.nodeOf(c.cfg)
				func() {
					defer func() { _ = recover() }()
					_, err := n.AllocateHealthy(ctx, &allocator.AllocateOptions{MaxWait: time.Second})
					require.Error(t, err)
				}()
				w.Advance(time.Second)
				require.Equal(t, c.closed, closed)
				n.requireEnded()
				// Nobody uses the value any more.
				require.NoError(t, change(n.Remove(ctx, []string{"a"})))
				synctest.Wait()
				if c.cfg.Healthy != nil {
					require.Equal(t, []string{"a"}, closed)
				}
				w.requireIdle()
			})
		})
	}
}

// Not to rest is not to end what somebody else has asked for.
func TestWithoutAFailureRestTheRestOfSomebodyElseGoesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a")
		asked := 0
		n := w.nodeOf(allocator.PoolConfig[string]{Shared: true, FailureRest: -1, Healthy: func(ctx context.Context, key string) error {
			if asked++; asked > 1 {
				return nil // its rest was ended
			}
			if err := w.pool.Rest(ctx, key, time.Hour, "theirs", nil); err != nil {
				return err
			}
			return errMine
		}})
		_, err := n.AllocateHealthy(ctx, &allocator.AllocateOptions{MaxWait: time.Second})
		require.ErrorIs(t, err, berth.ErrBusy)
		require.Equal(t, allocator.Resting, w.status("a").State)
		require.Equal(t, "theirs", w.status("a").Reason)
	})
}

// There is no release that could carry the rest, so Release sends it, and says whether
// that worked.
func TestTheReleaseOfASharedAllocationSaysWhetherItsRestWasHeard(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a")
		n := w.nodeWith(once, allocator.PoolConfig[string]{Shared: true})
		n.connect()
		a := n.takes("a", nil)
		_ = a.Rest(time.Hour, "429")
		n.Once("pool_rest", link.LoseRequest)
		require.Error(t, a.Release(ctx))
		require.NoError(t, a.Release(ctx))
		require.NoError(t, n.node.Close(ctx))
		require.Equal(t, allocator.Resting, w.status("a").State)
		require.Equal(t, "429", w.status("a").Reason)
		n.requireEnded()
	})
}

// The claim goes back in the background when the handle is there already: it must not
// take along what was asked for at once.
func TestARestThatIsAskedForAtOnceInASharedPoolIsToldOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.nodeOf(inTurn)
		n.connect()
		var a *allocator.Allocation[string]
		for range 10 {
			var err error
			a, err = n.TryAllocate(context.Background(), nil)
			require.NoError(t, err)
			_ = a.Rest(time.Minute, "429")
		}
		w.Advance(time.Second)
		require.NotContains(t, n.Kinds(), observe.Rested, "not yet")
		require.Equal(t, allocator.Free, w.status("a").State)
		w.release(a)
		require.Equal(t, allocator.Resting, w.status("a").State)
		told := 0
		for _, kind := range n.Kinds() {
			if kind == observe.Rested {
				told++
			}
		}
		require.Equal(t, 1, told)
	})
}
