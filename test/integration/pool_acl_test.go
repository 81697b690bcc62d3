package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// The user with the smallest rights that docs/operations.md gives can do all with
// pools, every script of theirs.
func TestTheSmallestUserOfPools(t *testing.T) {
	b := privatePools(t)
	user := b.server.SmallestUser(t, b.ns)
	b.do("ACL", "SETUSER", "smallest", "+scan") // for what goes through all names, as the page says
	cfg := allocator.Config{Lease: time.Hour}   // the first heartbeat is far off: what comes, comes by a push
	client := b.pooler(cfg, user)
	here := b.proxies(client, poolConfig{Source: func(context.Context) ([]string, error) { return []string{"a"}, nil }})
	there := b.proxies(b.pooler(cfg, user), poolConfig{})
	ctx := b.within(patience)

	report, err := client.Check(ctx)
	require.NoError(t, err)
	for _, warning := range report.Warnings {
		require.Contains(t, warning, "could not be asked")
	}
	a := b.allocate(here, &allocator.AllocateOptions{Bind: "customer"}) // by the source
	_, err = there.TryAllocate(ctx, nil)
	require.ErrorIs(t, err, berth.ErrBusy)
	w := b.allocateQueue(there, nil, 1)
	b.giveBack(a)
	a = w.take(b)

	w = b.allocateQueue(here, nil, 1)
	_, err = there.Add(ctx, []string{"b", "c"}, &allocator.AddOptions{Expiry: time.Hour})
	require.NoError(t, err)
	b.giveBack(w.take(b))
	require.NoError(t, a.Swap(ctx))
	require.NoError(t, there.Rest(ctx, "a", time.Hour, "429"))
	require.NoError(t, there.Rest(ctx, "a", 0, ""))
	require.NoError(t, there.Bind(ctx, "customer", "b", nil))
	_, err = there.Binding(ctx, "customer")
	require.NoError(t, err)
	for _, err := range there.Bindings(ctx) {
		require.NoError(t, err)
	}
	require.NoError(t, there.Unbind(ctx, "customer"))
	for _, err := range there.Resources(ctx) {
		require.NoError(t, err)
	}
	for _, err := range there.Holders(ctx) {
		require.NoError(t, err)
	}
	for _, err := range there.Waiters(ctx) {
		require.NoError(t, err)
	}
	for _, err := range client.Stats(ctx) {
		require.NoError(t, err)
	}
	_, err = there.GC(ctx)
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
	require.NoError(t, client.ReleaseByID(ctx, proxies, a.ID()))
	require.ErrorIs(t, a.Renew(ctx), allocator.ErrReleased)
	random := b.pooler(cfg, user)
	p, err := allocator.NewPool(random, proxies, poolConfig{Policy: allocator.Random, Cooldown: 20 * time.Millisecond})
	require.NoError(t, err)
	b.giveBack(b.allocate(p, nil))
	b.await("it has rested", func() bool {
		s, err := p.Stats(ctx)
		require.NoError(t, err)
		return s.Free == s.Resources
	})
	_, err = there.Remove(ctx, []string{"a"})
	require.NoError(t, err)
	b.inspected(p)
	_, err = there.Clear(ctx)
	require.NoError(t, err)
	require.Empty(t, b.refusals(), "commands that the user may not run")
	b.tombstones(proxies)
}

func TestTheSmallestUserOfPoolsIsRestored(t *testing.T) {
	b := privatePools(t)
	user := b.server.SmallestUser(t, b.ns)
	cfg := allocator.Config{Lease: safe}
	here := b.proxies(b.pooler(cfg, user), poolConfig{})
	b.add(here, "r0")
	b.allocate(here, nil)
	w := b.allocateQueue(b.proxies(b.pooler(cfg, user), poolConfig{}), nil, 1)
	b.forget(proxies)
	b.await("it stands in line again", func() bool { return b.look(proxies).waiting() == 1 })
	b.add(here, "r0")
	b.giveBack(w.take(b))
	require.Empty(t, b.refusals(), "commands that the user may not run")
	b.tombstones(proxies) // of a restore that was slow to be answered
	b.allFree(here, 1)
}

// Without PUBLISH a waiter hears of its grant with its next heartbeat, and nothing
// else is different.
func TestAUserOfPoolsWhoMayNotPublish(t *testing.T) {
	b := privatePools(t)
	user := b.server.SmallestUser(t, b.ns)
	b.do("ACL", "SETUSER", "smallest", "-publish")
	cfg := allocator.Config{Lease: safe}
	client := b.pooler(cfg, user)
	mine, theirs := b.proxies(client, poolConfig{}), b.proxies(b.pooler(cfg, user), poolConfig{})
	report, err := client.Check(b.within(patience))
	require.NoError(t, err)
	require.Contains(t, report.Warnings[len(report.Warnings)-1], "PUBLISH is refused")
	b.add(mine, "r0")
	for _, pass := range []func(a *allocation){
		func(a *allocation) { b.giveBack(a) },
		func(a *allocation) {
			require.NoError(t, client.ReleaseByID(b.within(patience), proxies, a.ID()))
		},
		func(*allocation) { b.add(mine, "r1") },
	} {
		a := b.allocate(mine, nil)
		w := b.allocateQueue(theirs, nil, 1)
		pass(a)
		b.giveBack(w.take(b))
		_ = a.Release(b.within(patience)) // it may have been
		_, err := mine.Remove(b.within(patience), []string{"r1"})
		require.NoError(t, err)
	}
	b.tombstones(proxies) // of what the operator has released
	b.allFree(mine, 1)
}
