package integration

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// The user with the smallest rights that docs/operations.md gives can do all with
// locks, every script of theirs and of the swarm's.
func TestTheSmallestUserOfLocks(t *testing.T) {
	w := privateLocks(t)
	user := w.server.SmallestUser(t, w.ns)
	w.do("ACL", "SETUSER", "smallest", "+scan") // for what goes through all names, as the page says
	// The first heartbeat is far off: what comes, comes by a push.
	cfg := node.Config{Lease: time.Hour, Swarm: watching()}
	here, there := w.locker(cfg, user), w.locker(cfg, user)
	ctx := w.Within(patience)

	report, err := here.Check(ctx)
	require.NoError(t, err)
	for _, warning := range report.Warnings {
		require.Contains(t, warning, "could not be asked")
	}
	require.NoError(t, here.Swarm().Start(ctx))
	require.NoError(t, there.Swarm().Start(ctx))

	l := w.lockFor(here, "me", nil)
	inner := w.lockFor(here, "me", &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: time.Second})
	worked := w.lockFor(there, "me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
	_, err = there.Lock(berth.WithOwner(ctx, "me"), door, nil)
	require.ErrorIs(t, err, berth.ErrDeadlock)
	_, err = there.TryLock(ctx, door, &qlock.LockOptions{DetailedErrors: true})
	require.ErrorIs(t, err, berth.ErrBusy)
	var refusal *berth.AcquireError
	require.ErrorAs(t, err, &refusal)
	require.Len(t, refusal.Holders, 3, "who holds could not be asked")
	require.NoError(t, l.Extend(ctx, time.Second))
	require.NoError(t, qlock.NewOperator(there.Node).Extend(ctx, door, time.Second))
	w.unlock(worked, inner)

	q := w.lockQueue(there, &qlock.LockOptions{Access: qlock.Random, RequeueEvery: 100 * time.Millisecond}, 1)
	reader := w.reader(user)
	require.Equal(t, 1, reader.Look(keyspace.Lock, door).Waiting)
	require.Len(t, reader.Waiters(keyspace.Lock, door), 1)
	require.Len(t, reader.Names(keyspace.Lock), 1)
	ticket := w.look(door).state["ticket"]
	w.Await("it goes to the end of the line", func() bool { return w.look(door).state["ticket"] > ticket })
	require.NoError(t, l.Renew(ctx))
	w.unlock(l)
	l = q.Wait(w)
	token, err := l.Detach(ctx)
	require.NoError(t, err)
	l, err = here.Resume(ctx, token)
	require.NoError(t, err)
	_, err = there.Operator().Release(ctx, berth.Target{Kind: keyspace.Lock, Name: door})
	require.NoError(t, err)
	require.ErrorIs(t, l.Renew(ctx), berth.ErrReleased)
	l = w.lock(here, nil)
	count, err := there.Operator().Release(ctx, berth.Target{Node: here.ID()})
	require.NoError(t, err)
	require.Equal(t, 1, count)
	require.ErrorIs(t, l.Renew(ctx), berth.ErrReleased)

	_, err = there.Swarm().FlushNow(ctx)
	require.NoError(t, err)
	nodes := 0
	for _, err := range there.Swarm().Info(ctx) {
		require.NoError(t, err)
		nodes++
	}
	require.Equal(t, 2, nodes)
	for _, c := range []*locker{here, there} {
		require.NoError(t, c.Swarm().ProbeNow(ctx))
		require.NoError(t, c.Swarm().Status().Err)
		require.NoError(t, c.Swarm().Stop(ctx))
	}
	require.Empty(t, w.refusals(), "commands that the user may not run")
	w.tombstones(door)
}

// A dead node is condemned and flushed by the smallest user too.
func TestTheSmallestUserFlushesADeadNode(t *testing.T) {
	w := privateLocks(t)
	user := w.server.SmallestUser(t, w.ns)
	w.do("ACL", "SETUSER", "smallest", "+scan")
	dead := w.spawnLocker(spec{Swarm: inSwarm()})
	require.Empty(t, dead.ask(order{Do: "swarm"}).Err)
	dead.acquireFixed(order{Lease: time.Hour})
	here := w.locker(node.Config{Swarm: watching()}, user)
	require.NoError(t, here.Swarm().Start(w.Within(patience)))
	q := w.lockQueue(here, nil, 1)
	dead.kill()
	w.unlock(q.Wait(w))
	require.Empty(t, w.refusals(), "commands that the user may not run")
}

// Without +scan nobody finds what a dead node holds, so it is not condemned either.
// The nodes are listed all the same.
func TestAUserWithoutScanCondemnsNobody(t *testing.T) {
	w := privateLocks(t)
	blind := w.locker(node.Config{Swarm: watching()}, w.server.SmallestUser(t, w.ns))
	dead := w.spawnLocker(spec{Swarm: inSwarm()})
	require.Empty(t, dead.ask(order{Do: "swarm"}).Err)
	held := dead.acquireFixed(order{Lease: time.Hour})
	dead.kill()
	seen := func() (found node.SwarmNode) {
		for n, err := range blind.Swarm().Info(w.Within(patience)) {
			require.NoError(t, err)
			require.Equal(t, held.Node, n.Node)
			found = n
		}
		return found
	}
	w.Await("it is dead", func() bool { return seen().Zombie })
	flushed, err := blind.Swarm().FlushNow(w.Within(patience))
	require.ErrorContains(t, err, "NOPERM")
	require.Zero(t, flushed)
	require.False(t, seen().Condemned)
	_, err = blind.Swarm().Zombies(w.Within(patience))
	require.ErrorContains(t, err, "NOPERM")

	flushed, err = w.locker(node.Config{}).Swarm().FlushNow(w.Within(patience))
	require.NoError(t, err)
	require.Equal(t, node.Flushed{Nodes: 1, Holds: 1}, flushed)
}

// refusals are what the server has refused a user of it, but for what rueidis asks
// for when it connects and Check does without.
func (w *world) refusals() (all []string) {
	w.Helper()
	entries, err := w.do("ACL", "LOG").ToArray()
	require.NoError(w, err)
	for _, entry := range entries {
		fields, err := entry.AsMap()
		require.NoError(w, err)
		object, reason := fields["object"], fields["reason"]
		what, err := object.ToString()
		require.NoError(w, err)
		why, err := reason.ToString()
		require.NoError(w, err)
		if !slices.Contains([]string{"info", "config|get", "client|tracking", "client|setinfo", "client|no-evict", "client|list", "cluster|slots"}, what) {
			all = append(all, why+" "+what)
		}
	}
	return all
}
