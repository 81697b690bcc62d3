package integration

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// A server that starts from an older snapshot has holds again that were given back. Their node lives, so
// nothing else would ever end one without end.
func TestAReleaseThatTheServerLosesIsAskedAgain(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(w *world, watch observe.Observer) (take func(ctx context.Context) (berth.Hold, error)){
		"a lock": func(w *world, watch observe.Observer) func(context.Context) (berth.Hold, error) {
			c := w.locker(node.Config{Observer: watch})
			return func(ctx context.Context) (berth.Hold, error) {
				return c.Lock(ctx, door, &qlock.LockOptions{Lease: berth.Forever})
			}
		},
		"a lock of a swarm": func(w *world, watch observe.Observer) func(context.Context) (berth.Hold, error) {
			c := w.locker(node.Config{Observer: watch, Swarm: node.SwarmConfig{ProbeEvery: time.Second, ZombieAfter: time.Minute}})
			require.NoError(w, c.Swarm().Start(w.Within(patience)))
			return func(ctx context.Context) (berth.Hold, error) {
				return c.Lock(ctx, door, &qlock.LockOptions{Lease: berth.Forever})
			}
		},
		"a permit": func(w *world, watch observe.Observer) func(context.Context) (berth.Hold, error) {
			s := w.sem(w.node(node.Config{Observer: watch}), "gpu", 1)
			return func(ctx context.Context) (berth.Hold, error) {
				return s.Acquire(ctx, &semaphore.AcquireOptions{Lease: berth.Forever})
			}
		},
		"an allocation with a long lease": func(w *world, watch observe.Observer) func(context.Context) (berth.Hold, error) {
			p := w.proxies(w.node(node.Config{Observer: watch}), poolConfig{})
			w.add(p, "r1")
			return func(ctx context.Context) (berth.Hold, error) {
				return p.Allocate(ctx, &allocator.AllocateOptions{Lease: 100 * time.Hour})
			}
		},
	}
	for what, kind := range kinds {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, harness.Single(t).Servers()[0])
			var again atomic.Int64
			take := kind(w, observe.Func(func(e observe.Event) {
				if e.Kind == observe.ReleasedAgain {
					again.Add(1)
				}
			}))
			hold, err := take(w.Within(patience))
			require.NoError(t, err)
			w.server.Snapshot(t)
			require.NoError(t, hold.Release(w.Within(patience)))
			w.server.Restore(t)
			// A wait would subscribe, which is the sign by itself: so nobody waits.
			w.Await("the release is asked again", func() bool { return again.Load() == 1 })
			next, err := take(w.Within(patience))
			require.NoError(t, err)
			require.NoError(t, next.Release(w.Within(patience)))
		})
	}
}
