package integration

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/test/harness"
)

// meddled is a world with an owner who holds the door with a fixed lease, over a
// connection on which answers get lost.
type meddled struct {
	*world
	m      *meddler
	client *locker
	other  *locker // on a connection that is whole
	ctx    context.Context
	outer  *qlock.Lock
	before int64 // its deadline
}

func (w *world) meddled() *meddled {
	w.Helper()
	m := &meddled{world: w, m: w.meddler()}
	cfg := node.Config{Lease: time.Minute, CallTimeout: 500 * time.Millisecond}
	m.client, m.other = w.lockerOn(m.m, cfg), w.locker(cfg)
	m.ctx = berth.WithOwner(w.Within(2*patience), "me")
	m.outer = w.lockFor(m.client, "me", &qlock.LockOptions{NoRenew: true, Lease: time.Minute})
	m.before = w.look(door).holds[m.outer.ID()]
	return m
}

// moved is by how much the owner's deadline is further off than it was.
func (m *meddled) moved() time.Duration {
	m.Helper()
	return time.Duration(m.whole(door).holds[m.outer.ID()]-m.before) * time.Millisecond
}

// enter enters once more, and extends.
func (m *meddled) enter(by time.Duration) *qlock.Lock {
	m.Helper()
	return m.lockFor(m.client, "me", &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: by})
}

// lostReplies are calls whose answers are lost, once: each does what it does once.
var lostReplies = map[string]struct {
	script string
	run    func(m *meddled)
}{
	"an entry extends once": {"lock_acquire", func(m *meddled) {
		inner := m.enter(10 * time.Second)
		require.Equal(m, 10*time.Second, m.moved())
		require.EqualValues(m, 2, m.look(door).state["used"])
		m.unlock(inner)
	}},
	"an entry that works through is one entry": {"lock_acquire", func(m *meddled) {
		inner := m.lockFor(m.client, "me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
		require.Equal(m, qlock.Reentered, inner.Via())
		require.Zero(m, m.moved())
		require.EqualValues(m, 2, m.look(door).state["used"])
		m.unlock(inner)
	}},
	"a long extension is confirmed once": {"lock_renew", func(m *meddled) {
		inner := m.enter(2 * time.Minute)
		require.Equal(m, 2*time.Minute, m.moved())
		m.unlock(inner)
	}},
	"a release gives back once": {"lock_release", func(m *meddled) {
		first, second := m.enter(20*time.Second), m.enter(30*time.Second)
		m.unlock(first)
		require.Less(m, m.moved(), 50*time.Second, "nothing is given back")
		require.GreaterOrEqual(m, m.moved(), 30*time.Second)
		m.unlock(second)
	}},
	"Extend extends once": {"lock_renew", func(m *meddled) {
		require.NoError(m, m.outer.Extend(m.ctx, 7*time.Second))
		require.Equal(m, 7*time.Second, m.moved())
	}},
	"an operator extends once": {"lock_extend", func(m *meddled) {
		require.NoError(m, qlock.NewOperator(m.client.Node).Extend(m.ctx, door, 9*time.Second))
		require.Equal(m, 9*time.Second, m.moved())
	}},
	"an operator spares the next in line": {"lock_force_hold", func(m *meddled) {
		q := m.lockQueue(m.other, nil, 1)
		last := m.lockQueue(m.other, nil, 2)
		_, err := m.client.Operator().Release(m.ctx, berth.Target{Kind: keyspace.Lock, Name: door})
		require.NoError(m, err)
		l := q.Wait(m.world)
		require.NoError(m, l.Renew(m.ctx))
		require.False(m, last.Over())
		m.unlock(l)
		m.unlock(last.Wait(m.world))
		require.ErrorIs(m, m.outer.Renew(m.ctx), berth.ErrReleased)
	}},
	"a claim goes to the end of the line once": {"lock_requeue", func(m *meddled) {
		m.unlock(m.outer)
		m.outer = m.lock(m.other, nil)
		q := m.lockQueue(m.client, &qlock.LockOptions{RequeueEvery: safe}, 1)
		id := m.look(door).inLine()[0]
		next := m.lockQueue(m.other, nil, 2)
		m.Await("it has gone behind", func() bool { return m.look(door).inLine()[1] == id })
		last := m.lockQueue(m.other, nil, 3)
		m.Await("the call is repeated", func() bool { return m.m.sent("lock_requeue") > 0 })
		require.Equal(m, id, m.whole(door).inLine()[1], "it has gone behind who came later")
		m.unlock(m.outer)
		m.outer = next.Wait(m.world)
		m.unlock(m.outer)
		m.unlock(q.Wait(m.world))
		m.outer = last.Wait(m.world)
	}},
	"a token is resumed once": {"lock_resume", func(m *meddled) {
		token, err := m.outer.Detach(m.ctx)
		require.NoError(m, err)
		l, err := m.client.Resume(m.ctx, token)
		require.NoError(m, err)
		require.Equal(m, m.outer.Fence(), l.Fence())
		m.outer = l
	}},
}

func TestLostRepliesOfLocks(t *testing.T) {
	t.Parallel()
	for what, test := range lostReplies {
		t.Run(what, func(t *testing.T) {
			m := sharedLocks(t).meddled()
			m.m.next(test.script, unheard)
			test.run(m)
			require.Positive(t, m.m.meddled(test.script), "nothing was lost")
			_ = m.outer.Release(m.ctx) // some have ended
			m.Await("nobody holds", func() bool { return len(m.look(door).holds) == 0 })
			m.tombstones(door)
		})
	}
}

// What an entry gives back is gone when its release has run, whether anybody hears
// of that or not: the handles of the owner's other entries end before.
func TestAnUnheardReleaseOfAnEntryEndsTheOthersInTime(t *testing.T) {
	w := sharedLocks(t)
	m := w.meddler()
	c := w.lockerOn(m, node.Config{Lease: time.Minute, CallTimeout: 5 * time.Second})
	outer := w.lockFor(c, "me", &qlock.LockOptions{NoRenew: true, Lease: safe})
	inner := w.lockFor(c, "me", &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: time.Hour})
	require.Greater(t, outer.Left(), 30*time.Minute)
	q := w.lockQueue(w.locker(node.Config{}), nil, 1)
	m.always("lock_release", unheard)
	m.always("lock_renew", deferred)
	go func() { _ = inner.Release(w.Within(patience)) }()
	l := q.Wait(w)
	require.ErrorIs(t, outer.Err(), berth.ErrNotHeld, "two are believed in")
	require.NoError(t, l.Err())
	w.unlock(l)
	m.always("lock_release", passed)
	m.always("lock_renew", passed)
	m.deliver()
}

// An entry that the network delivers only after its caller has left must not
// extend what the owner holds.
func TestALateEntryMeetsATombstone(t *testing.T) {
	m := sharedLocks(t).meddled()
	m.m.always("lock_acquire", deferred) // also the attempts that follow, where the cancel takes its time
	ctx, cancel := context.WithCancel(m.ctx)
	q := m.lockLaterWith(ctx, m.client, &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: time.Minute})
	m.Await("the entry is on its way", func() bool { return m.m.meddled("lock_acquire") > 0 })
	cancel()
	m.Signalled("the caller to be let go", q.Done)
	require.ErrorIs(t, q.Err, context.Canceled)
	m.Await("the cancel has run", func() bool { return len(m.look(door).stones) == 1 })
	m.m.deliver()
	require.Zero(t, m.moved())
	require.EqualValues(t, 1, m.look(door).state["used"])
	require.NoError(t, m.outer.Err())
	m.unlock(m.outer)
	m.tombstones(door)
}

func TestLocksThroughABadNetwork(t *testing.T) {
	w := sharedLocks(t)
	proxy := harness.Proxy(t, w.server)
	cfg := node.Config{Lease: safe, CallTimeout: time.Second, Retry: heard}
	far := func(redis rueidis.Client) ask { return forLock(w.lockerOn(redis, cfg)) }
	tr := w.trafficOf(door, []ask{forLock(w.locker(cfg)), far(proxy.Client(t)), far(proxy.Client(t))}, 12, 1)
	const outage = 200 * time.Millisecond
	tr.under(1,
		func() { proxy.AddLatency(30 * time.Millisecond) },
		func() { proxy.Heal(t) },
		func() { proxy.DropReplies(); w.pass(outage); proxy.Heal(t) },
		func() { proxy.Reset() },
		func() { proxy.BlackHole(); w.pass(outage); proxy.Heal(t) },
		func() { proxy.Cut(); w.pass(outage); proxy.Heal(t) },
	)
	w.tombstones(door)
}
