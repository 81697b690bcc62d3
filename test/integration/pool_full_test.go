package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// poolHouse is a server that is about to be full, and its pool as two nodes see it.
// It has one resource.
type poolHouse struct {
	*world
	here, there *pool
}

// unchanged checks that something changes no key.
func (f *poolHouse) unchanged(what string, do func()) {
	f.Helper()
	before := f.dumpsOf(proxies)
	do()
	require.Equal(f, before, f.dumpsOf(proxies), "%s has changed something", what)
}

// inPoolHouse are things that must work where nothing may grow. Each prepares while
// there is room, and returns what is to happen then.
var inPoolHouse = map[string]func(f *poolHouse) func(){
	"an allocation is refused, and changes nothing": func(f *poolHouse) func() {
		return func() {
			for what, ask := range map[string]func(context.Context, *allocator.AllocateOptions) (*allocation, error){
				"allocate": f.here.Allocate, "try": f.here.TryAllocate,
			} {
				f.unchanged(what, func() {
					_, err := ask(f.Within(patience), nil)
					require.ErrorIs(f, err, berth.ErrNotAcquired)
					require.NotErrorIs(f, err, berth.ErrBusy)
					require.ErrorContains(f, err, "the server is full")
				})
			}
		}
	},
	"an allocation in line is refused, and changes nothing": func(f *poolHouse) func() {
		a, q := f.allocate(f.here, nil), f.allocateQueue(f.there, nil, 1)
		return func() {
			_, err := f.here.Allocate(f.Within(patience), nil)
			require.ErrorIs(f, err, berth.ErrNotAcquired)
			v := f.whole(proxies)
			require.Len(f, v.holds, 1)
			require.Len(f, v.alive, 1)
			f.giveBack(a)
			f.giveBack(q.Wait(f.world))
		}
	},
	"adding is refused, and changes nothing": func(f *poolHouse) func() {
		return func() {
			for what, do := range map[string]func() error{
				"add": func() error { _, err := f.here.Add(f.Within(patience), numbered(300), nil); return err },
				"expiry": func() error {
					_, err := f.here.Add(f.Within(patience), numbered(1), &allocator.AddOptions{Expiry: time.Hour})
					return err
				},
				"bind": func() error { return f.here.Bind(f.Within(patience), "customer", "r0", nil) },
			} {
				f.unchanged(what, func() { require.Error(f, do(), what) })
			}
		}
	},
	// It begins, which only the state knows of, and goes no further.
	"replacing is refused, and changes no resource": func(f *poolHouse) func() {
		return func() {
			before := f.dumpsOf(proxies)
			_, err := f.here.Replace(f.Within(patience), []string{"other"}, nil)
			require.ErrorContains(f, err, "the server is full")
			require.Equal(f, before[1:], f.dumpsOf(proxies)[1:])
			f.inspected(f.here)
		}
	},
	"a pool is cleared": func(f *poolHouse) func() {
		f.add(f.here, numbered(300)...)
		return func() {
			change, err := f.there.Clear(f.Within(patience))
			require.NoError(f, err)
			require.Equal(f, 300, change.Removed)
			f.drained()
			f.allFree(f.here, 0)
			f.add(f.here, "r0")
		}
	},
	"a release hands on": func(f *poolHouse) func() {
		a, q := f.allocate(f.here, nil), f.allocateQueue(f.there, nil, 1)
		return func() {
			f.giveBack(a)
			f.giveBack(q.Wait(f.world))
		}
	},
	"a release rests": func(f *poolHouse) func() {
		a := f.allocate(f.here, nil)
		q := f.allocateQueue(f.there, nil, 1)
		return func() {
			_ = a.Rest(fullLease, "429")
			f.giveBack(a)
			info, err := f.here.ops.Resource(f.Within(patience), proxies, "r0")
			require.NoError(f, err)
			require.Equal(f, allocator.Resting, info.State)
			f.giveBack(q.Wait(f.world))
		}
	},
	"heartbeats keep holds and waiters": func(f *poolHouse) func() {
		a, q := f.allocate(f.here, nil), f.allocateQueue(f.there, nil, 1)
		return func() {
			before := f.look(proxies).holds[a.ID()]
			f.Await("a heartbeat", func() bool { return f.look(proxies).holds[a.ID()] > before })
			require.NoError(f, a.Err())
			require.False(f, q.Over())
			f.whole(proxies)
			f.giveBack(a)
			f.giveBack(q.Wait(f.world))
		}
	},
	"a fixed lease is renewed": func(f *poolHouse) func() {
		a := f.allocate(f.here, &allocator.AllocateOptions{NoRenew: true, Lease: time.Minute})
		before := f.look(proxies).holds[a.ID()]
		return func() {
			require.NoError(f, a.Renew(f.Within(patience)))
			require.Greater(f, f.look(proxies).holds[a.ID()], before)
			f.giveBack(a)
		}
	},
	"a waiter leaves": func(f *poolHouse) func() {
		a := f.allocate(f.here, nil)
		ctx, cancel := context.WithCancel(context.Background())
		q := f.allocateLaterWith(ctx, f.there, nil)
		f.Await("it waits", func() bool { return f.look(proxies).waiting() == 1 })
		return func() {
			cancel()
			f.Signalled("the caller to be let go", q.Done)
			f.Await("it has left the line", func() bool { return f.look(proxies).waiting() == 0 })
			f.giveBack(a)
		}
	},
	"a grant is confirmed": func(f *poolHouse) func() {
		a, q := f.allocate(f.here, nil), f.allocateQueue(f.there, &allocator.AllocateOptions{NoRenew: true, Lease: time.Hour}, 1)
		return func() {
			f.giveBack(a)
			a = q.Wait(f.world)
			f.ownLeaseRuns(proxies, a.ID())
			f.giveBack(a)
		}
	},
	"a grant binds": func(f *poolHouse) func() {
		a, q := f.allocate(f.here, nil), f.allocateQueue(f.there, &allocator.AllocateOptions{Bind: "customer"}, 1)
		return func() {
			f.giveBack(a)
			f.giveBack(q.Wait(f.world))
			bound, err := f.here.Binding(f.Within(patience), "customer")
			require.NoError(f, err)
			require.Equal(f, "r0", bound.Resource)
			require.NoError(f, f.here.Unbind(f.Within(patience), "customer"))
		}
	},
	"a dead holder is swept": func(f *poolHouse) func() {
		holder := f.spawn(fullLease)
		holder.acquire(proxies, 1)
		q := f.allocateQueue(f.there, nil, 1)
		return func() {
			holder.kill()
			f.giveBack(q.Wait(f.world))
		}
	},
	"GC sweeps a dead holder": func(f *poolHouse) func() {
		holder := f.spawn(fullLease)
		holder.acquire(proxies, 1)
		return func() {
			holder.kill()
			f.Await("it is free", func() bool {
				_, err := f.here.node.Operator().Sweep(f.Within(patience), keyspace.Pool, proxies)
				require.NoError(f, err)
				return f.inspected(f.here).Free == 1
			})
		}
	},
	"GC sweeps a rest": func(f *poolHouse) func() {
		require.NoError(f, f.here.Rest(f.Within(patience), "r0", fullLease, "429", nil))
		return func() {
			f.Await("it is free", func() bool {
				_, err := f.here.node.Operator().Sweep(f.Within(patience), keyspace.Pool, proxies)
				require.NoError(f, err)
				return f.inspected(f.here).Free == 1
			})
		}
	},
	"GC sweeps what expires": func(f *poolHouse) func() {
		_, err := f.here.Add(f.Within(patience), []string{"short"}, &allocator.AddOptions{Expiry: fullLease})
		require.NoError(f, err)
		return func() {
			f.Await("it has left", func() bool {
				_, err := f.here.node.Operator().Sweep(f.Within(patience), keyspace.Pool, proxies)
				require.NoError(f, err)
				s := f.inspected(f.here)
				return s.Resources == 1 && s.Free == 1
			})
		}
	},
	"an operator has it rest, and ends that": func(f *poolHouse) func() {
		return func() {
			require.NoError(f, f.there.Rest(f.Within(patience), "r0", time.Hour, "429", nil))
			f.inspected(f.here)
			require.NoError(f, f.there.Rest(f.Within(patience), "r0", 0, "", nil))
		}
	},
	"the end of a rest hands on": func(f *poolHouse) func() {
		require.NoError(f, f.here.Rest(f.Within(patience), "r0", time.Hour, "429", nil))
		q := f.allocateQueue(f.there, nil, 1)
		return func() {
			require.NoError(f, f.there.Rest(f.Within(patience), "r0", 0, "", nil))
			f.giveBack(q.Wait(f.world))
		}
	},
	"what is free, rests or is leased is removed": func(f *poolHouse) func() {
		f.add(f.here, "a", "b")
		require.NoError(f, f.here.Rest(f.Within(patience), "b", time.Hour, "429", nil))
		a := f.allocate(f.here, nil)
		return func() {
			change, err := f.there.Remove(f.Within(patience), []string{"r0", "a", "b"})
			require.NoError(f, err)
			require.Equal(f, 3, change.Removed)
			require.NoError(f, a.Err())
			f.giveBack(a)
			f.drained()
			f.allFree(f.here, 0)
			f.add(f.here, "r0")
		}
	},
	"an operator releases": func(f *poolHouse) func() {
		a, q := f.allocate(f.here, nil), f.allocateQueue(f.there, nil, 1)
		return func() {
			_, err := f.here.node.Operator().Release(f.Within(patience), berth.Target{Kind: keyspace.Pool, Name: proxies, Claim: a.ID()})
			require.NoError(f, err)
			f.giveBack(q.Wait(f.world))
			f.Signalled("the holder to hear", a.Done())
			require.ErrorIs(f, a.Err(), berth.ErrReleased)
		}
	},
	"a hold is swapped or kept": func(f *poolHouse) func() {
		f.add(f.here, "r1")
		a := f.allocate(f.here, nil)
		return func() {
			before := a.Resource()
			if err := a.Swap(f.Within(patience)); err != nil {
				require.NoError(f, a.Err())
				require.Equal(f, before, a.Resource())
			}
			f.Logf("swapped: %t", a.Resource() != before)
			f.inspected(f.here)
			f.giveBack(a)
			_, err := f.here.Remove(f.Within(patience), []string{"r1"})
			require.NoError(f, err)
		}
	},
	"a hold is resumed elsewhere": func(f *poolHouse) func() {
		a := f.allocate(f.here, nil)
		return func() {
			token, err := a.Detach(f.Within(patience))
			require.NoError(f, err)
			a, err := f.there.Resume(f.Within(patience), token)
			require.NoError(f, err)
			f.giveBack(a)
		}
	},
}

func TestPoolsOfAFullServer(t *testing.T) {
	runInPoolHouse(t, inPoolHouse, []string{"r0"}, func(f *poolHouse) {
		f.giveBack(f.allocate(f.here, nil))
		f.tombstones(proxies)
		f.allFree(f.here, 1)
	})
}

// runInPoolHouse runs each of the things on a pool of its own, of these resources, and then looks.
func runInPoolHouse(t *testing.T, things map[string]func(f *poolHouse) func(), resources []string, look func(f *poolHouse)) {
	t.Helper()
	t.Parallel()
	for what, prepare := range things {
		t.Run(what, func(t *testing.T) {
			f := &poolHouse{world: privatePools(t)}
			cfg := node.Config{Lease: fullLease}
			f.here, f.there = f.pool(cfg), f.pool(cfg)
			f.add(f.here, resources...)
			then := prepare(f)
			f.fill()
			then()
			f.drained()
			look(f)
		})
	}
}

// A key of another type, somebody else's, in the place of one of the pool's.
func TestKeysOfAnotherTypeAreLeftAlone(t *testing.T) {
	w := sharedPools(t)
	p, ctx := w.pool(node.Config{}), w.Within(2*patience)
	for i, key := range w.keysOf(proxies) {
		for _, there := range []bool{false, true} {
			if there {
				w.add(p, "r0", "r1")
				w.do("DEL", key)
			}
			w.do("SET", key, "somebody's")
			calls := map[string]func() error{
				"add":     func() error { _, err := p.Add(ctx, []string{"r0"}, nil); return err },
				"try":     func() error { _, err := p.TryAllocate(ctx, nil); return err },
				"rest":    func() error { return p.Rest(ctx, "r0", time.Hour, "", nil) },
				"remove":  func() error { _, err := p.Remove(ctx, []string{"r0"}); return err },
				"inspect": func() error { _, err := p.ops.Inspect(ctx, proxies); return err },
			}
			refused := 0
			for what, call := range calls {
				if err := call(); err != nil && what != "try" {
					require.NotErrorIs(t, err, context.DeadlineExceeded, what)
					refused++
				}
				text, err := w.do("GET", key).ToString()
				require.NoError(t, err, "%s has replaced key %d", what, i)
				require.Equal(t, "somebody's", text)
			}
			require.Positive(t, refused, "nothing is said of key %d", i)
			for _, key := range w.keysOf(proxies) {
				w.do("DEL", key)
			}
		}
	}
	w.add(p, "r0")
	w.giveBack(w.allocate(p, nil))
	w.allFree(p, 1)
}
