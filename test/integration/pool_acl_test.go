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

// The user with the smallest rights that docs/operations.md gives can do all with
// pools, every script of theirs.
func TestTheSmallestUserOfPools(t *testing.T) {
	w := privatePools(t)
	user := w.server.SmallestUser(t, w.ns)
	w.do("ACL", "SETUSER", "smallest", "+scan") // for what goes through all names, as the page says
	cfg := node.Config{Lease: time.Hour}        // the first heartbeat is far off: what comes, comes by a push
	here := w.proxies(w.node(cfg, user), poolConfig{Source: func(context.Context) ([]string, error) { return []string{"a"}, nil }})
	there := w.proxies(w.node(cfg, user), poolConfig{})
	ctx := w.Within(patience)

	report, err := here.node.Check(ctx)
	require.NoError(t, err)
	for _, warning := range report.Warnings {
		require.Contains(t, warning, "could not be asked")
	}
	a := w.allocate(here, &allocator.AllocateOptions{Bind: "customer"}) // by the source
	_, err = there.TryAllocate(ctx, nil)
	require.ErrorIs(t, err, berth.ErrBusy)
	q := w.allocateQueue(there, nil, 1)
	w.giveBack(a)
	a = q.Wait(w)

	q = w.allocateQueue(here, nil, 1)
	_, err = there.Add(ctx, []string{"b", "c"}, &allocator.AddOptions{Expiry: time.Hour})
	require.NoError(t, err)
	w.giveBack(q.Wait(w))
	require.NoError(t, a.Swap(ctx))
	require.NoError(t, there.Rest(ctx, "a", time.Hour, "429", nil))
	require.NoError(t, there.Rest(ctx, "a", 0, "", nil))
	require.NoError(t, there.Bind(ctx, "customer", "b", nil))
	_, err = there.Binding(ctx, "customer")
	require.NoError(t, err)
	for _, err := range there.ops.Bindings(ctx, proxies) {
		require.NoError(t, err)
	}
	require.NoError(t, there.Unbind(ctx, "customer"))
	for _, err := range there.ops.Resources(ctx, proxies) {
		require.NoError(t, err)
	}
	reader := w.reader(user)
	require.Len(t, reader.Holders(keyspace.Pool, proxies), 1)
	require.Empty(t, reader.Waiters(keyspace.Pool, proxies))
	require.Len(t, reader.Names(keyspace.Pool), 1)
	_, err = there.node.Operator().Sweep(ctx, "")
	require.NoError(t, err)
	_, err = here.CheckHealth(ctx, 2)
	require.NoError(t, err)
	_, err = there.Replace(ctx, []string{"a", "b"}, nil)
	require.NoError(t, err)
	_, err = here.Refresh(ctx)
	require.NoError(t, err)
	require.NoError(t, a.Renew(ctx))
	token, err := a.Detach(ctx)
	require.NoError(t, err)
	a, err = here.Resume(ctx, token)
	require.NoError(t, err)
	_, err = there.node.Operator().Release(ctx, berth.Target{Kind: keyspace.Pool, Name: proxies, Claim: a.ID()})
	require.NoError(t, err)
	require.ErrorIs(t, a.Renew(ctx), berth.ErrReleased)
	random := w.node(cfg, user)
	p := w.proxies(random, poolConfig{Policy: allocator.Random, Cooldown: 20 * time.Millisecond})
	w.giveBack(w.allocate(p, nil))
	w.Await("it has rested", func() bool {
		n := reader.Look(keyspace.Pool, proxies)
		return n.Pool.Free == n.Capacity
	})
	_, err = there.Remove(ctx, []string{"a"})
	require.NoError(t, err)
	w.inspected(p)
	_, err = there.Clear(ctx)
	require.NoError(t, err)
	require.Empty(t, w.refusals(), "commands that the user may not run")
	w.tombstones(proxies)
}

func TestTheSmallestUserOfPoolsIsRestored(t *testing.T) {
	w := privatePools(t)
	user := w.server.SmallestUser(t, w.ns)
	cfg := node.Config{Lease: safe}
	here := w.proxies(w.node(cfg, user), poolConfig{})
	w.add(here, "r0")
	w.allocate(here, nil)
	q := w.allocateQueue(w.proxies(w.node(cfg, user), poolConfig{}), nil, 1)
	w.forget(proxies)
	w.Await("it stands in line again", func() bool { return w.look(proxies).waiting() == 1 })
	w.add(here, "r0")
	w.giveBack(q.Wait(w))
	require.Empty(t, w.refusals(), "commands that the user may not run")
	w.tombstones(proxies) // of a restore that was slow to be answered
	w.allFree(here, 1)
}

// Without PUBLISH a waiter hears of its grant with its next heartbeat, and nothing
// else is different.
func TestAUserOfPoolsWhoMayNotPublish(t *testing.T) {
	w := privatePools(t)
	user := w.server.SmallestUser(t, w.ns)
	w.do("ACL", "SETUSER", "smallest", "-publish")
	cfg := node.Config{Lease: safe}
	mine, theirs := w.proxies(w.node(cfg, user), poolConfig{}), w.proxies(w.node(cfg, user), poolConfig{})
	report, err := mine.node.Check(w.Within(patience))
	require.NoError(t, err)
	require.Contains(t, report.Warnings[len(report.Warnings)-1], "PUBLISH is refused")
	w.add(mine, "r0")
	for _, pass := range []func(a *allocation){
		func(a *allocation) { w.giveBack(a) },
		func(a *allocation) {
			_, err := mine.node.Operator().Release(w.Within(patience), berth.Target{Kind: keyspace.Pool, Name: proxies, Claim: a.ID()})
			require.NoError(t, err)
		},
		func(*allocation) { w.add(mine, "r1") },
	} {
		a := w.allocate(mine, nil)
		q := w.allocateQueue(theirs, nil, 1)
		pass(a)
		w.giveBack(q.Wait(w))
		_ = a.Release(w.Within(patience)) // it may have been
		_, err := mine.Remove(w.Within(patience), []string{"r1"})
		require.NoError(t, err)
	}
	w.tombstones(proxies) // of what the operator has released
	w.allFree(mine, 1)
}
