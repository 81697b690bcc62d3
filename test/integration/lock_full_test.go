package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// lockHouse is a server that is about to be full, and two processes.
type lockHouse struct {
	*world
	here, there *locker
}

// inLockHouse are things that must work where nothing may grow. Each prepares
// while there is room, and returns what is to happen then.
var inLockHouse = map[string]func(f *lockHouse) func(){
	"a lock is refused": func(f *lockHouse) func() {
		return func() {
			for _, ask := range []func(context.Context, string, *qlock.LockOptions) (*qlock.Lock, error){f.here.Lock, f.here.TryLock} {
				_, err := ask(f.Within(patience), door, nil)
				require.ErrorIs(f, err, berth.ErrNotAcquired)
				require.NotErrorIs(f, err, berth.ErrBusy)
				require.ErrorContains(f, err, "the server is full")
				require.Empty(f, f.look(door).expires, "it left keys")
			}
		}
	},
	"an entry is refused, and the hold stays": func(f *lockHouse) func() {
		l := f.lockFor(f.here, "me", nil)
		return func() {
			for _, conflict := range []qlock.Conflict{qlock.WorkThrough, qlock.ExtendAndWorkThrough} {
				_, err := f.here.Lock(berth.WithOwner(f.Within(patience), "me"), door, &qlock.LockOptions{Conflict: conflict})
				require.ErrorContains(f, err, "the server is full")
				require.Len(f, f.whole(door).holds, 1)
			}
			require.NoError(f, l.Err())
			f.unlock(l)
		}
	},
	"a release hands on": func(f *lockHouse) func() {
		l, q := f.lock(f.here, nil), f.lockQueue(f.there, nil, 1)
		return func() {
			f.unlock(l)
			f.unlock(q.Wait(f.world))
		}
	},
	"heartbeats keep holds and waiters": func(f *lockHouse) func() {
		l := f.lockFor(f.here, "me", nil)
		inner := f.lockFor(f.there, "me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		q := f.lockQueue(f.there, nil, 1)
		return func() {
			before := f.look(door).holds[l.ID()]
			f.Await("a heartbeat", func() bool { return f.look(door).holds[l.ID()] > before })
			require.NoError(f, l.Err())
			require.NoError(f, inner.Err())
			require.False(f, q.Over())
			f.whole(door)
			f.unlock(l, inner)
			f.unlock(q.Wait(f.world))
		}
	},
	"a fixed lease is renewed": func(f *lockHouse) func() {
		l := f.lock(f.here, &qlock.LockOptions{NoRenew: true, Lease: time.Minute})
		before := f.look(door).holds[l.ID()]
		return func() {
			require.NoError(f, l.Renew(f.Within(patience)))
			require.Greater(f, f.look(door).holds[l.ID()], before)
			f.unlock(l)
		}
	},
	"a lease is extended": func(f *lockHouse) func() {
		l := f.lock(f.here, &qlock.LockOptions{NoRenew: true, Lease: time.Minute})
		return func() {
			before := f.look(door).holds[l.ID()]
			require.NoError(f, l.Extend(f.Within(patience), time.Second))
			require.NoError(f, l.Extend(f.Within(patience), time.Second))
			require.NoError(f, qlock.NewOperator(f.there.Node).Extend(f.Within(patience), door, time.Second))
			require.Equal(f, before+3000, f.look(door).holds[l.ID()])
			f.unlock(l)
		}
	},
	"an extension is given back": func(f *lockHouse) func() {
		l := f.lockFor(f.here, "me", &qlock.LockOptions{NoRenew: true, Lease: time.Minute})
		before := f.look(door).holds[l.ID()]
		inner := f.lockFor(f.here, "me", &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: time.Minute})
		return func() {
			require.Equal(f, before+60000, f.look(door).holds[l.ID()])
			f.unlock(inner)
			require.Less(f, f.look(door).holds[l.ID()], before+30000)
			f.unlock(l)
		}
	},
	"a waiter leaves": func(f *lockHouse) func() {
		l := f.lock(f.here, nil)
		ctx, cancel := context.WithCancel(context.Background())
		q := f.lockLaterWith(ctx, f.there, nil)
		f.Await("it waits", func() bool { return f.look(door).waiting() == 1 })
		return func() {
			cancel()
			f.Signalled("the caller to be let go", q.Done)
			f.Await("it has left the line", func() bool { return f.look(door).waiting() == 0 })
			f.unlock(l)
		}
	},
	"a waiter goes to the end of the line": func(f *lockHouse) func() {
		l := f.lock(f.here, nil)
		q := f.lockQueue(f.there, &qlock.LockOptions{RequeueEvery: fullLease}, 1)
		next := f.lockQueue(f.here, nil, 2)
		first := f.look(door).inLine()[0]
		return func() {
			f.Await("it has gone behind", func() bool { return f.look(door).inLine()[1] == first })
			f.unlock(l)
			f.unlock(next.Wait(f.world))
			f.unlock(q.Wait(f.world))
		}
	},
	"a grant is confirmed": func(f *lockHouse) func() {
		l, q := f.lock(f.here, nil), f.lockQueue(f.there, &qlock.LockOptions{NoRenew: true, Lease: time.Hour}, 1)
		return func() {
			f.unlock(l)
			l = q.Wait(f.world)
			f.ownLeaseRuns(door, l.ID())
			f.unlock(l)
		}
	},
	"a dead holder is swept": func(f *lockHouse) func() {
		holder := f.spawn(fullLease)
		holder.acquire(door, 1)
		q := f.lockQueue(f.there, nil, 1)
		return func() {
			holder.kill()
			f.unlock(q.Wait(f.world))
		}
	},
	"an operator releases the lock": func(f *lockHouse) func() {
		l := f.lockFor(f.here, "me", nil)
		inner := f.lockFor(f.here, "me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		q := f.lockQueue(f.there, nil, 1)
		return func() {
			count, err := f.there.Operator().Release(f.Within(patience), berth.Target{Kind: keyspace.Lock, Name: door})
			require.NoError(f, err)
			require.Equal(f, 2, count)
			f.unlock(q.Wait(f.world))
			for _, ended := range []*qlock.Lock{l, inner} {
				f.Signalled("the holder to hear", ended.Done())
				require.ErrorIs(f, ended.Err(), berth.ErrReleased)
			}
		}
	},
	"an operator releases what a node holds": func(f *lockHouse) func() {
		l, q := f.lock(f.here, nil), f.lockQueue(f.there, nil, 1)
		return func() {
			count, err := f.there.Operator().Release(f.Within(patience), berth.Target{Node: f.here.ID()})
			require.NoError(f, err)
			require.Equal(f, 1, count)
			f.unlock(q.Wait(f.world))
			f.Signalled("the holder to hear", l.Done())
		}
	},
	"a hold is resumed elsewhere": func(f *lockHouse) func() {
		l := f.lock(f.here, nil)
		return func() {
			token, err := l.Detach(f.Within(patience))
			require.NoError(f, err)
			l, err := f.there.Resume(f.Within(patience), token)
			require.NoError(f, err)
			f.unlock(l)
		}
	},
}

func TestLocksOfAFullServer(t *testing.T) {
	t.Parallel()
	for what, prepare := range inLockHouse {
		t.Run(what, func(t *testing.T) {
			f := &lockHouse{world: privateLocks(t)}
			cfg := node.Config{Lease: fullLease}
			f.here, f.there = f.locker(cfg), f.locker(cfg)
			then := prepare(f)
			f.fill()
			then()
			f.drained()
			f.unlock(f.lock(f.here, nil))
			f.tombstones(door)
		})
	}
}

// A swarm lives on where nothing may grow, and ends what dead nodes hold.
func TestASwarmOnAFullServer(t *testing.T) {
	w := privateLocks(t)
	s := w.swarmed()
	w.fill()
	w.pass(zombie + zombie/4) // more than a node lives on without a probe
	require.Empty(t, s.child.ask(order{Do: "err", Name: door}).Err, "its probes are refused")
	require.Equal(t, s.hold.Node, s.child.ask(order{Do: "node"}).Node)
	s.child.stop()
	l := s.wait.Wait(w)
	require.Greater(t, l.Fence(), s.hold.Fence)
	w.unlock(l)
	w.drained()
}
