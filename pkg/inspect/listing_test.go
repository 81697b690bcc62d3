package inspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// told is all that the reader tells of a name.
func (w *world) told(kind keyspace.Kind, name string) (inspect.Name, []berth.Holder, []berth.Waiter) {
	w.T.Helper()
	ctx := context.Background()
	n, err := w.look.Name(ctx, kind, name)
	require.NoError(w.T, err)
	require.Equal(w.T, []any{kind, name}, []any{n.Kind, n.Name})
	holders, err := w.look.Holders(ctx, kind, name, "", 0)
	require.NoError(w.T, err)
	waiters, err := w.look.Waiters(ctx, kind, name, "", 0)
	require.NoError(w.T, err)
	require.Empty(w.T, append(holders.Problems, waiters.Problems...))
	require.Empty(w.T, holders.Next+waiters.Next)
	return n, holders.Items, waiters.Items
}

var meta = map[string]string{"job": "42"}

// asked is a kind, and how to ask for all that the kind knows. Whoever waits has a priority of 4.
var asked = map[string]struct {
	kind keyspace.Kind
	name string
	hold func(p *process) (berth.Hold, error)
	wait func(p *process)
	want inspect.Name
	held berth.Holder
	weak berth.Waiter
}{
	"a semaphore": {
		keyspace.Sem, "gpu",
		func(p *process) (berth.Hold, error) {
			s := semaphore.New(p.Node, "gpu", 3, nil)
			return s.Acquire(of("me"), &semaphore.AcquireOptions{Weight: 2, Lease: 5 * time.Second, NoRenew: true, MaxHold: time.Minute, Meta: meta})
		},
		func(p *process) {
			p.awaitPermitFor("you", "gpu", 3, &semaphore.AcquireOptions{Weight: 2, Priority: 4, Meta: meta})
		},
		inspect.Name{Capacity: 3, Held: 2},
		berth.Holder{Weight: 2},
		berth.Waiter{Weight: 2},
	},
	"a lock": {
		keyspace.Lock, "nightly",
		func(p *process) (berth.Hold, error) {
			return p.lock("nightly", "me", &qlock.LockOptions{Lease: 5 * time.Second, NoRenew: true, MaxHold: time.Minute, Meta: meta}), nil
		},
		func(p *process) { p.awaitLock("nightly", "you", &qlock.LockOptions{Priority: 4, Meta: meta}) },
		inspect.Name{Capacity: 1, Held: 1, Lock: &inspect.Lock{Owner: "me", Left: 3500 * ms}},
		berth.Holder{Weight: 1},
		berth.Waiter{Weight: 1},
	},
	"a pool": {
		keyspace.Pool, "proxies",
		func(p *process) (berth.Hold, error) {
			return p.filled("\xff a|").Allocate(of("me"), &allocator.AllocateOptions{Lease: 5 * time.Second, NoRenew: true, MaxHold: time.Minute, Meta: meta})
		},
		func(p *process) {
			testkit.Queue(of("you"), p.w.World, func(ctx context.Context) (*allocator.Allocation[string], error) {
				return p.pool(allocator.PoolConfig[string]{}).Allocate(ctx, &allocator.AllocateOptions{Priority: 4, Meta: meta})
			})
		},
		inspect.Name{Capacity: 1, Held: 1, Pool: &inspect.Pool{}},
		berth.Holder{Weight: 1, Resource: "\xff a|"},
		berth.Waiter{Weight: 1},
	},
}

func TestHoldsAndWaitsAreToldInFull(t *testing.T) {
	for what, c := range asked {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n, _, _ := w.told(c.kind, c.name)
				require.Equal(w.T, inspect.Name{Kind: c.kind, Name: c.name, At: n.At}, n, "nobody has used it")
				require.Zero(w.T, n.Share())
				require.Empty(w.T, w.Keys(), "and a question does not make it known")

				p, q := w.process("worker 7"), w.process("worker 8")
				w.Advance(time.Second)
				at := time.UnixMilli(time.Now().UnixMilli())
				h, err := c.hold(p)
				require.NoError(w.T, err)
				w.Advance(ms)
				c.wait(q)
				w.Advance(1499 * ms)
				holder, waiter := c.held, c.weak
				n, holders, waiters := w.told(c.kind, c.name)
				holder.ID, holder.Node, holder.Label, holder.Owner, holder.Fence = h.ID(), h.Node(), "worker 7", "me", h.Fence()
				holder.Lease, holder.Left, holder.NoRenew, holder.MaxHold = 5*time.Second, 3500*ms, true, time.Minute
				holder.Granted, holder.Held, holder.Meta = at, 1500*ms, meta
				require.Equal(w.T, []berth.Holder{holder}, holders)
				waiter.ID, waiter.Node = w.waiting(c.kind, c.name, "worker 8"), q.ID()
				waiter.Label, waiter.Owner, waiter.Priority, waiter.Meta = "worker 8", "you", 4, meta
				waiter.Since, waiter.Waited, waiter.Alive = at.Add(ms), 1499*ms, testkit.Lease-1499*ms
				require.Equal(w.T, []berth.Waiter{waiter}, waiters)
				want := c.want
				want.Kind, want.Name, want.Holders, want.Waiting, want.Fence = c.kind, c.name, 1, 1, h.Fence()
				want.Revision, want.At = n.Revision, n.At
				want.Oldest, want.Longest, want.First = 1500*ms, n.Longest, waiters
				require.Equal(w.T, holder.ID, n.Longest.ID)
				require.Equal(w.T, 1500*ms, n.Longest.Held)
				if want.Lock != nil {
					want.Lock.Claim, want.Lock.Label = h.ID(), "worker 7"
				}
				require.Equal(w.T, want, n)
				require.InDelta(w.T, float64(want.Held)/float64(want.Capacity), n.Share(), 1e-9)

				_, err = h.Detach(context.Background())
				require.NoError(w.T, err)
				_, holders, _ = w.told(c.kind, c.name)
				holder.Detached = true
				require.Equal(w.T, []berth.Holder{holder}, holders)
				q.Die()
				w.Advance(testkit.Lease)
				n, holders, waiters = w.told(c.kind, c.name)
				require.Empty(w.T, holders, "what has expired is not held, swept or not")
				require.Empty(w.T, waiters)
				require.Equal(w.T, []int{0, 0}, []int{n.Held, n.Holders})
			})
		})
	}
}
