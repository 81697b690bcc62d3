package integration

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/scripts/composed"
)

// fill makes a private server so full that it refuses whatever needs memory, and
// goes on to do so when a little is freed.
func (w *world) fill() {
	w.Helper()
	used := w.number("memory", "used_memory")
	w.do("CONFIG", "SET", "maxmemory", strconv.Itoa(used+4<<20))
	junk := strings.Repeat("x", 64<<10)
	var full error
	for i := 0; full == nil; i++ {
		full = w.admin.Do(w.Within(patience), w.admin.B().Set().Key(fmt.Sprint("junk", i)).Value(junk).Build()).Error()
	}
	require.ErrorContains(w, full, "OOM")
	w.do("CONFIG", "SET", "maxmemory", strconv.Itoa(used+2<<20))
}

// drained makes room again.
func (w *world) drained() {
	w.Helper()
	w.do("CONFIG", "SET", "maxmemory", "0")
}

// house is a server that is about to be full, and two processes.
type house struct {
	*world
	here, there *user
	ops         *node.Operator
}

const fullLease = safe

// things must work where nothing may grow. Each prepares while there is room, and returns what is to
// happen then.
type things map[string]func(f *house) (then func())

// run runs each on a server of its own, in a world of the kind, and has look look in the end.
func (all things) run(t *testing.T, kind keyspace.Kind, look func(f *house)) {
	t.Helper()
	for what, prepare := range all {
		t.Run(what, func(t *testing.T) {
			f := &house{world: private(t)}
			f.kind = kind
			cfg := node.Config{Lease: fullLease}
			f.here, f.there = f.use(cfg), f.use(cfg)
			f.ops = f.here.Operator()
			then := prepare(f)
			f.fill()
			then()
			f.drained()
			look(f)
		})
	}
}

// waits holds the name, and has another process wait for it.
func (f *house) waits(o terms) (h berth.Hold, q *holding) {
	f.Helper()
	return f.hold(f.here, terms{}), f.holdQueue(f.there, o, 1)
}

// refused checks that a call is refused by words that say why.
func (f *house) refused(err error) {
	f.Helper()
	require.ErrorIs(f, err, berth.ErrNotAcquired)
	require.NotErrorIs(f, err, berth.ErrBusy)
	require.ErrorContains(f, err, "the server is full")
}

// orFull checks that a call was answered, or refused by words that say why.
func (f *house) orFull(err error) {
	f.Helper()
	if err != nil {
		require.ErrorContains(f, err, "the server is full")
	}
	f.whole(f.name())
}

// deadline is when the lease of a hold ends, by the server.
func (f *house) deadline(h berth.Hold) int64 {
	f.Helper()
	return f.look(f.name()).holds[h.ID()]
}

// heartbeats waits for one of a hold.
func (f *house) heartbeats(h berth.Hold) {
	f.Helper()
	before := f.deadline(h)
	f.Await("a heartbeat", func() bool { return f.deadline(h) > before })
}

// ofAll are of all kinds.
var ofAll = things{
	"a name that is idle": func(f *house) func() {
		return func() {
			before := f.dumpsOf(f.name())
			for _, ask := range []func(context.Context, terms) (berth.Hold, error){f.here.take, f.here.try} {
				_, err := ask(f.Within(patience), terms{})
				f.refused(err)
				require.Equal(f, before, f.dumpsOf(f.name()), "an acquire left something")
			}
			f.orFull(f.ops.Pause(f.Within(patience), f.kind, f.name(), time.Minute, "full"))
			f.orFull(f.ops.Unpause(f.Within(patience), f.kind, f.name()))
		}
	},
	"a name that is in use": func(f *house) func() {
		h, q := f.waits(terms{})
		asked := h.Wanted() // its node listens from here on
		return func() {
			for _, ask := range []func(context.Context, terms) (berth.Hold, error){f.here.take, f.here.try} {
				_, err := ask(f.Within(patience), terms{})
				require.ErrorIs(f, err, berth.ErrNotAcquired)
				v := f.whole(f.name())
				require.Len(f, v.holds, 1)
				require.Len(f, v.alive, 1)
			}
			f.heartbeats(h)
			require.NoError(f, h.Err())
			require.False(f, q.Over())
			f.whole(f.name())
			_, err := f.ops.Want(f.Within(patience), f.target(h))
			require.NoError(f, err)
			f.Signalled("the holder to hear", asked)
			f.whole(f.name())
			_, err = f.ops.Release(f.Within(patience), f.target(h))
			require.NoError(f, err)
			f.release(q.Wait(f.world))
			f.ended(h, berth.ErrReleased)
		}
	},
	"a fixed lease is renewed, and wanted back, or that is refused": func(f *house) func() {
		h := f.hold(f.here, terms{NoRenew: true, Lease: time.Minute})
		before := f.deadline(h)
		return func() {
			require.NoError(f, h.Renew(f.Within(patience)))
			require.Greater(f, f.deadline(h), before)
			_, err := f.ops.Want(f.Within(patience), f.target(h))
			f.orFull(err)
			require.NoError(f, h.Renew(f.Within(patience)))
			f.release(h)
		}
	},
	"a waiter leaves": func(f *house) func() {
		h := f.hold(f.here, terms{})
		ctx, cancel := context.WithCancel(context.Background())
		q := f.holdLater(ctx, f.there, terms{})
		f.awaitInLine(f.name(), 1, q.Over)
		return func() {
			cancel()
			f.Signalled("the caller to be let go", q.Done)
			f.Await("it has left the line", func() bool { return f.look(f.name()).waiting() == 0 })
			f.release(h)
		}
	},
	"a grant is confirmed": func(f *house) func() {
		h, q := f.waits(terms{NoRenew: true, Lease: time.Hour})
		return func() {
			f.release(h)
			h = q.Wait(f.world)
			require.Greater(f, f.deadline(h)-f.now(), (time.Hour / 2).Milliseconds(), "its own lease does not run")
			f.release(h)
		}
	},
	"a dead holder is swept": func(f *house) func() {
		holder := f.spawn(fullLease)
		holder.acquire(f.name(), 1)
		q := f.holdQueue(f.there, terms{}, 1)
		return func() {
			holder.kill()
			f.release(q.Wait(f.world))
		}
	},
	"a name is paused and that is ended": func(f *house) func() {
		h, q := f.waits(terms{})
		return func() {
			require.NoError(f, f.ops.Pause(f.Within(patience), f.kind, f.name(), time.Hour, "full"))
			f.release(h)
			require.NoError(f, f.ops.Pause(f.Within(patience), f.kind, f.name(), time.Hour, "again"))
			require.False(f, q.Over())
			require.NoError(f, f.ops.Unpause(f.Within(patience), f.kind, f.name()))
			f.release(q.Wait(f.world))
		}
	},
	"a pause ends by itself": func(f *house) func() {
		h, q := f.waits(terms{})
		require.NoError(f, f.ops.Pause(f.Within(patience), f.kind, f.name(), fullLease, ""))
		f.release(h)
		return func() { f.release(q.Wait(f.world)) }
	},
	"a hold is resumed elsewhere": func(f *house) func() {
		h := f.hold(f.here, terms{})
		return func() {
			token, err := h.Detach(f.Within(patience))
			require.NoError(f, err)
			h, err := f.there.resume(f.Within(patience), token)
			require.NoError(f, err)
			f.release(h)
		}
	},
}

// ofOne are those of one kind.
var ofOne = map[keyspace.Kind]things{
	keyspace.Sem: {
		"holds of several names go on": func(f *house) func() {
			return f.beats(composed.FatRenew, 2, func(name string, capacity int) (berth.Hold, error) {
				return asHold(semaphore.New(f.here.Node, name, capacity, semaphore.Config{}).Acquire(f.Within(patience), nil))
			})
		},
		"holds of one name go on": func(f *house) func() {
			return f.beats(nil, 8, func(_ string, capacity int) (berth.Hold, error) {
				return asHold(semaphore.New(f.here.Node, "together", capacity, semaphore.Config{}).Acquire(f.Within(patience), nil))
			})
		},
		"a resize grants": func(f *house) func() {
			h, q := f.waits(terms{})
			return func() {
				require.NoError(f, semaphore.NewOperator(f.here.Node).Resize(f.Within(patience), f.name(), 2, nil))
				f.release(q.Wait(f.world))
				f.release(h)
			}
		},
	},
	keyspace.Lock: {
		"holds of several names go on": func(f *house) func() {
			return f.beats(composed.ThinRenew, 1, func(name string, _ int) (berth.Hold, error) {
				return asHold(f.here.locks.Lock(f.Within(patience), name, nil))
			})
		},
		"an entry is refused, and the hold stays": func(f *house) func() {
			l := f.lockFor(f.here.locks, "me", nil)
			return func() {
				for _, conflict := range []qlock.Conflict{qlock.WorkThrough, qlock.ExtendAndWorkThrough} {
					_, err := f.here.locks.Lock(berth.WithOwner(f.Within(patience), "me"), door, &qlock.LockOptions{Conflict: conflict})
					f.refused(err)
					require.Len(f, f.whole(door).holds, 1)
				}
				require.NoError(f, l.Err())
				f.release(l)
			}
		},
		"a lease is extended": func(f *house) func() {
			l := f.lockFor(f.here.locks, "", &qlock.LockOptions{NoRenew: true, Lease: time.Minute})
			return func() {
				before := f.deadline(l)
				require.NoError(f, l.Extend(f.Within(patience), time.Second))
				require.NoError(f, l.Extend(f.Within(patience), time.Second))
				require.NoError(f, qlock.NewOperator(f.there.Node).Extend(f.Within(patience), door, time.Second))
				require.Equal(f, before+3000, f.deadline(l))
				f.release(l)
			}
		},
		"an extension is given back": func(f *house) func() {
			l, inner := f.entries(time.Minute)
			extended := f.deadline(l)
			return func() {
				f.release(inner)
				require.Less(f, f.deadline(l), extended-30000)
				f.release(l)
			}
		},
		"a waiter goes to the end of the line": func(f *house) func() {
			l := f.hold(f.here, terms{})
			q := testkit.Begin(f.Within(2*patience), func(ctx context.Context) (*qlock.Lock, error) {
				return f.there.locks.Lock(ctx, door, &qlock.LockOptions{RequeueEvery: fullLease})
			})
			f.awaitInLine(door, 1, q.Over)
			next := f.holdQueue(f.here, terms{}, 2)
			first := f.look(door).inLine()[0]
			return func() {
				f.Await("it has gone behind", func() bool { return f.look(door).inLine()[1] == first })
				f.release(l)
				f.release(next.Wait(f.world))
				f.release(q.Wait(f.world))
			}
		},
		"heartbeats keep the entries of an owner, and an operator releases them": func(f *house) func() {
			l, inner := f.entries(0)
			q := f.holdQueue(f.there, terms{}, 1)
			return func() {
				f.heartbeats(l)
				require.NoError(f, l.Err())
				require.NoError(f, inner.Err())
				f.whole(door)
				count, err := f.ops.Release(f.Within(patience), berth.Target{Kind: keyspace.Lock, Name: door})
				require.NoError(f, err)
				require.Equal(f, 2, count)
				f.release(q.Wait(f.world))
				f.ended(l, berth.ErrReleased)
				f.ended(inner, berth.ErrReleased)
			}
		},
	},
	keyspace.Pool: {
		"adding and replacing are refused, and change no resource": func(f *house) func() {
			return func() {
				before := f.dumpsOf(proxies)
				_, many := f.here.pool.Add(f.Within(patience), numbered(300), nil)
				_, expiry := f.here.pool.Add(f.Within(patience), numbered(1), &allocator.AddOptions{Expiry: time.Hour})
				for _, err := range []error{many, expiry, f.here.pool.Bind(f.Within(patience), "customer", "r0", nil)} {
					require.ErrorContains(f, err, "the server is full")
				}
				require.Equal(f, before, f.dumpsOf(proxies))
				// It begins, which only the state knows of, and goes no further.
				_, err := f.here.pool.Replace(f.Within(patience), []string{"other"}, nil)
				require.ErrorContains(f, err, "the server is full")
				require.Equal(f, before[1:], f.dumpsOf(proxies)[1:])
				f.inspected(f.here.pool)
			}
		},
		"a pool is cleared": func(f *house) func() {
			f.add(f.here.pool, numbered(300)...)
			return func() {
				change, err := f.there.pool.Clear(f.Within(patience))
				require.NoError(f, err)
				require.Equal(f, 300, change.Removed)
				f.drained()
				f.allFree(f.here.pool, 0)
				f.add(f.here.pool, "r0")
			}
		},
		"a release rests": func(f *house) func() {
			a := f.allocate(f.here.pool, nil)
			q := f.holdQueue(f.there, terms{}, 1)
			return func() {
				_ = a.Rest(fullLease, "429")
				f.release(a)
				info, err := f.here.pool.ops.Resource(f.Within(patience), proxies, "r0")
				require.NoError(f, err)
				require.Equal(f, allocator.Resting, info.State)
				f.release(q.Wait(f.world))
			}
		},
		"a grant binds": func(f *house) func() {
			a, q := f.allocate(f.here.pool, nil), f.allocateQueue(f.there.pool, &allocator.AllocateOptions{Bind: "customer"}, 1)
			return func() {
				f.release(a)
				f.release(q.Wait(f.world))
				bound, err := f.here.pool.Binding(f.Within(patience), "customer")
				require.NoError(f, err)
				require.Equal(f, "r0", bound.Resource)
				require.NoError(f, f.here.pool.Unbind(f.Within(patience), "customer"))
			}
		},
		"an operator sweeps who died, a rest, and what expires": func(f *house) func() {
			p := f.here.pool
			holder := f.spawn(fullLease)
			holder.acquire(proxies, 1)
			f.add(p, "r1")
			require.NoError(f, p.Rest(f.Within(patience), "r1", fullLease, "429", nil))
			_, err := p.Add(f.Within(patience), []string{"short"}, &allocator.AddOptions{Expiry: fullLease})
			require.NoError(f, err)
			return func() {
				holder.kill()
				f.Await("all is free that stays", func() bool {
					_, err := f.ops.Sweep(f.Within(patience), keyspace.Pool, proxies)
					require.NoError(f, err)
					s := f.inspected(p)
					return s.Resources == 2 && s.Free == 2
				})
				_, err := p.Remove(f.Within(patience), []string{"r1"})
				require.NoError(f, err)
			}
		},
		"a rest begins and ends, which hands on": func(f *house) func() {
			p := f.there.pool
			require.NoError(f, p.Rest(f.Within(patience), "r0", time.Hour, "429", nil))
			q := f.holdQueue(f.there, terms{}, 1)
			return func() {
				require.NoError(f, p.Rest(f.Within(patience), "r0", 0, "", nil))
				f.release(q.Wait(f.world))
				require.NoError(f, p.Rest(f.Within(patience), "r0", time.Hour, "429", nil))
				f.inspected(p)
				require.NoError(f, p.Rest(f.Within(patience), "r0", 0, "", nil))
			}
		},
		"what is free, rests or is leased is removed": func(f *house) func() {
			p := f.here.pool
			f.add(p, "a", "b")
			require.NoError(f, p.Rest(f.Within(patience), "b", time.Hour, "429", nil))
			a := f.allocate(p, nil)
			return func() {
				change, err := f.there.pool.Remove(f.Within(patience), []string{"r0", "a", "b"})
				require.NoError(f, err)
				require.Equal(f, 3, change.Removed)
				require.NoError(f, a.Err())
				f.release(a)
				f.drained()
				f.allFree(p, 0)
				f.add(p, "r0")
			}
		},
		"a hold is swapped or kept": func(f *house) func() {
			p := f.here.pool
			f.add(p, "r1")
			a := f.allocate(p, nil)
			return func() {
				before := a.Resource()
				if err := a.Swap(f.Within(patience)); err != nil {
					require.NoError(f, a.Err())
					require.Equal(f, before, a.Resource())
				}
				f.Logf("swapped: %t", a.Resource() != before)
				f.inspected(p)
				f.release(a)
				_, err := p.Remove(f.Within(patience), []string{"r1"})
				require.NoError(f, err)
			}
		},
	},
}

// beats holds 8 times, and has the holds live on a full server by their heartbeats. Those of several names, in one script, which is
// also sent by hand: no other helps it there.
func (f *house) beats(script *scriptkit.Script, capacity int, take func(name string, capacity int) (berth.Hold, error)) func() {
	f.Helper()
	held, keys, args := make([]berth.Hold, 8), []string{}, []string{"60000"}
	for i := range held {
		name := fmt.Sprint("one of eight ", i)
		h, err := take(name, capacity)
		require.NoError(f, err)
		held[i] = h
		parts := []string{f.space.State(f.kind, name), f.space.Key(f.kind, name, keyspace.LinePart)}
		node, _, _ := strings.Cut(held[i].ID(), ".")
		if i == 0 && script == composed.FatRenew {
			args = append(args, node)
		}
		if script != nil {
			keys, args = append(keys, parts[:len(script.Keys)]...), append(args, held[i].ID())
		}
	}
	return func() {
		if script != nil {
			r, err := scriptkit.NewRunner(f.admin, scriptkit.Options{}).Run(f.Within(patience), script, scriptkit.Once, keys, args)
			require.NoError(f, err)
			for i := range held {
				require.Positive(f, r.Int(1+2*i), "what is left of %q", held[i].Name())
			}
		}
		until := time.Now().Add(2 * fullLease)
		f.Await("two leases pass", func() bool { return time.Now().After(until) })
		for _, h := range held {
			require.NoError(f, h.Err())
			require.NoError(f, h.Release(f.Within(patience)))
		}
	}
}

// entries hold the door twice for one owner: the second time with an extension if it is given one.
func (f *house) entries(extension time.Duration) (outer, inner *qlock.Lock) {
	f.Helper()
	if extension > 0 {
		outer = f.lockFor(f.here.locks, "me", &qlock.LockOptions{NoRenew: true, Lease: time.Minute})
		return outer, f.lockFor(f.here.locks, "me", &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: extension})
	}
	return f.lockFor(f.here.locks, "me", nil), f.lockFor(f.there.locks, "me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
}

func TestAFullServer(t *testing.T) {
	t.Parallel()
	for kind := range contended {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			for _, all := range []things{ofAll, ofOne[kind]} {
				all.run(t, kind, func(f *house) {
					f.release(f.hold(f.here, terms{}))
					f.nothingLeft(f.here)
				})
			}
		})
	}
}

// inLanes are those of who waits for one resource alone: here has r0, and besides there is r1.
var inLanes = things{
	"a release into a lane": func(f *house) func() {
		a, q := f.alone("r0"), f.allocateQueue(f.there.pool, only("r0"), 1)
		return func() {
			f.release(a)
			f.gets(q, "r0")
		}
	},
	"the end of a wait for one resource": func(f *house) func() {
		require.NoError(f, f.here.pool.Bind(f.Within(patience), "customer", "r0", nil))
		a := f.alone("r0")
		q := f.allocateQueue(f.there.pool, &allocator.AllocateOptions{Bind: "customer", BindWait: fullLease}, 1)
		return func() {
			require.False(f, q.Over())
			f.gets(q, "r1")
			f.release(a)
		}
	},
	"a resource with a lane is removed": func(f *house) func() {
		require.NoError(f, f.here.pool.Bind(f.Within(patience), "customer", "r0", nil))
		a := f.alone("r0")
		named := f.allocateQueue(f.there.pool, only("r0"), 1)
		bound := f.allocateQueue(f.there.pool, &allocator.AllocateOptions{Bind: "customer", BindWait: berth.Forever}, 2)
		return func() {
			change, err := f.here.pool.Remove(f.Within(patience), []string{"r0"})
			require.NoError(f, err)
			require.Equal(f, 1, change.Removed)
			named.Fails(f, berth.ErrAbsent)
			f.gets(bound, "r1")
			f.release(a)
		}
	},
	"a rest that ends": func(f *house) func() {
		require.NoError(f, f.here.pool.Rest(f.Within(patience), "r0", fullLease, "", nil))
		q := f.allocateQueue(f.there.pool, only("r0"), 1)
		return func() {
			require.False(f, q.Over())
			f.gets(q, "r0")
		}
	},
	"somebody leaves a lane": func(f *house) func() {
		a := f.alone("r0")
		ctx, cancel := context.WithCancel(context.Background())
		q := testkit.Begin(ctx, func(ctx context.Context) (*allocation, error) { return f.there.pool.Allocate(ctx, only("r0")) })
		f.awaitInLine(proxies, 1, q.Over)
		next := f.allocateQueue(f.there.pool, only("r0"), 2)
		return func() {
			cancel()
			f.Signalled("the caller to be let go", q.Done)
			f.Await("it has left", func() bool { return f.look(proxies).waiting() == 1 })
			f.release(a)
			f.gets(next, "r0")
		}
	},
	"who arrives at a lane is refused": func(f *house) func() {
		a := f.alone("r0")
		return func() {
			for _, resource := range []string{"r0", "r1"} { // held, and free
				_, err := f.there.pool.Allocate(f.Within(patience), only(resource))
				f.refused(err)
			}
			require.Zero(f, f.look(proxies).waiting())
			f.release(a)
		}
	},
}

// only is a claim for one resource.
func only(resource string) *allocator.AllocateOptions {
	return &allocator.AllocateOptions{Resource: resource}
}

// alone takes one resource, and has r1 be there.
func (f *house) alone(resource string) *allocation {
	f.Helper()
	f.add(f.here.pool, "r1")
	return f.allocate(f.here.pool, only(resource))
}

// gets waits for an allocation of a resource, and gives it back.
func (f *house) gets(q *testkit.Call[*allocation], resource string) {
	f.Helper()
	a := q.Wait(f.world)
	require.Equal(f, resource, a.Resource())
	f.release(a)
}

func TestLanesOfAFullServer(t *testing.T) {
	t.Parallel()
	inLanes.run(t, keyspace.Pool, func(f *house) { f.inspected(f.here.pool) })
}

// A swarm lives on where nothing may grow, and ends what dead nodes hold.
func TestASwarmOnAFullServer(t *testing.T) {
	w := private(t).of(keyspace.Lock)
	s := w.swarmed()
	w.fill()
	w.pass(zombie + zombie/4) // more than a node lives on without a probe
	require.Empty(t, s.child.ask(order{Do: "err", Name: door}).Err, "its probes are refused")
	require.Equal(t, s.hold.Node, s.child.ask(order{Do: "node"}).Node)
	s.child.stop()
	l := s.wait.Wait(w)
	require.Greater(t, l.Fence(), s.hold.Fence)
	w.release(l)
	w.drained()
}

// A guard admits nobody new there, refuses who is older, and lets go on who was admitted before.
func TestAGuardOnAFullServer(t *testing.T) {
	w := private(t)
	g, ctx := w.guard(w.admin), w.Within(patience)
	require.NoError(t, g.Admit(ctx, "x", 5))
	require.NoError(t, g.Forget(ctx, "y", 5)) // both scripts are known
	w.fill()
	require.NoError(t, g.Admit(ctx, "x", 5))
	require.ErrorIs(t, g.Admit(ctx, "x", 4), fence.ErrStale)
	err := g.Admit(ctx, "x", 6)
	require.ErrorContains(t, err, "the server is full")
	require.NotErrorIs(t, err, fence.ErrStale)
	require.NoError(t, g.Forget(ctx, "x", 5))
	w.drained()
	require.NoError(t, g.Admit(ctx, "x", 4))
}

// A line that a full server has forgotten stands again as soon as there is room. That it cannot be put back costs
// a hold of the same node nothing.
func TestALineForgottenByAFullServer(t *testing.T) {
	w := private(t)
	q := w.queueOf(2, 20)
	h, err := userOf(q.crew[0].Node, keyspace.Lock, door, 1, safe, poolConfig{}).claim(w.Within(patience))
	require.NoError(t, err)
	w.fill()
	w.forget(w.name())
	q.lost()
	w.pass(safe) // heartbeats
	require.NoError(t, h.Err())
	keys, err := w.do("KEYS", w.ns+":sem:*").AsStrSlice()
	require.NoError(t, err)
	require.Empty(t, keys)
	for _, q := range q.waits {
		require.False(t, q.Over(), "a wait ended: %v", q.Err)
	}
	w.drained()
	q.standsAgain()
	q.drain()
	w.release(h)
}
