package integration

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// The user with the smallest rights that docs/operations.md gives can do all.
func TestTheSmallestUser(t *testing.T) {
	b := private(t)
	user := b.server.SmallestUser(t, b.ns)
	// A heartbeat would come after 20 s, so what is quick came by a push.
	cfg := semaphore.Config{Lease: time.Minute}
	here, there := b.client(cfg, user), b.client(cfg, user)
	ctx := b.within(patience)

	report, err := here.Check(ctx)
	require.NoError(t, err)
	t.Logf("warnings: %q", report.Warnings)
	for _, warning := range report.Warnings {
		require.Contains(t, warning, "could not be asked")
	}

	mine, theirs := b.sem(here, "gpu", 1), b.sem(there, "gpu", 1)
	p := b.take(mine, nil)
	w := b.queue(theirs, nil, 1)
	_, err = mine.TryAcquire(ctx, nil)
	require.ErrorIs(t, err, semaphore.ErrBusy)
	for _, err := range mine.Holders(ctx) {
		require.NoError(t, err)
	}
	for _, err := range mine.Waiters(ctx) {
		require.NoError(t, err)
	}
	start := time.Now()
	require.NoError(t, p.Renew(ctx))
	require.NoError(t, p.Release(ctx))
	p = w.got(b)
	require.Less(t, time.Since(start), 10*time.Second, "the hand-off was not pushed")
	w = b.queue(mine, nil, 1)
	require.NoError(t, mine.Resize(ctx, 2, nil))
	require.NoError(t, w.got(b).Release(ctx))
	token, err := p.Detach(ctx)
	require.NoError(t, err)
	p, err = here.Resume(ctx, token)
	require.NoError(t, err)
	require.NoError(t, there.ReleaseByID(ctx, "gpu", p.ID()))
	b.signalled("the holder to hear", p.Done())
	stats, err := mine.Stats(ctx)
	require.NoError(t, err)
	require.Zero(t, stats.Held)
	b.tombstones("gpu")
}

func TestTheSmallestUserIsRestored(t *testing.T) {
	b := private(t)
	user := b.server.SmallestUser(t, b.ns)
	cfg := semaphore.Config{Lease: 600 * time.Millisecond}
	b.take(b.sem(b.client(cfg, user), "gpu", 1), nil)
	w := b.queue(b.sem(b.client(cfg, user), "gpu", 1), nil, 1)
	b.forget("gpu")
	require.NoError(t, w.got(b).Release(b.within(patience)))
	b.idle("gpu")
}

// Without PUBLISH a waiter hears of its grant with its next heartbeat, and
// nothing else is different.
func TestAUserWhoMayNotPublish(t *testing.T) {
	b := private(t)
	user := b.server.SmallestUser(t, b.ns)
	b.do("ACL", "SETUSER", "smallest", "-publish")
	const lease = 900 * time.Millisecond
	lag := b.measure()
	cfg := semaphore.Config{Lease: lease}
	here, there := b.client(cfg, user), b.client(cfg, user)
	report, err := here.Check(b.within(patience))
	require.NoError(t, err)
	require.Contains(t, report.Warnings[len(report.Warnings)-1], "PUBLISH is refused")
	mine, theirs := b.sem(here, "gpu", 1), b.sem(there, "gpu", 1)
	for range 3 {
		p := b.take(mine, nil)
		w := b.queue(theirs, nil, 1)
		start := time.Now()
		require.NoError(t, p.Release(b.within(patience)))
		p = w.got(b)
		t.Logf("granted %v after the release, with a lease of %v", time.Since(start).Round(time.Millisecond), lease)
		require.LessOrEqual(t, time.Since(start), lag.allow(lease/3+20*time.Millisecond, 3))
		require.NoError(t, p.Release(b.within(patience)))
	}
	// A holder is swept without pushes, too.
	dead := b.spawn(lease)
	dead.acquire("gpu", 1)
	w := b.queue(theirs, nil, 1)
	_, deadline := b.holder("gpu")
	dead.kill()
	p := w.got(b)
	require.LessOrEqual(t, b.look("gpu").records[p.ID()].Granted.UnixMilli()-deadline, lag.allow(slack, 2).Milliseconds())
	require.NoError(t, p.Release(b.within(patience)))
	b.idle("gpu")
}

// The rules that docs/operations.md adds for a Cluster are enough for one, also while
// a slot moves.
func TestTheSmallestUserOfACluster(t *testing.T) {
	t.Parallel()
	d, ns := harness.Cluster(t), harness.Namespace(t)
	var user func(*rueidis.ClientOption)
	for _, server := range d.Servers() {
		user = server.SmallestUser(t, ns, "+cluster|slots", "+cluster|shards", "+asking")
	}
	space, err := keyspace.New(ns)
	require.NoError(t, err)
	b := &bed{T: t, admin: d.Client(t), ns: ns, space: space, kind: keyspace.Sem}
	cfg := semaphore.Config{Namespace: ns, Lease: time.Minute}
	here, there := b.clientOn(d.Client(t, user), cfg), b.clientOn(d.Client(t, user), cfg)
	p := b.take(b.sem(here, "gpu", 1), nil)
	move := d.Move(t, "{gpu}")
	move.Keys(t) // from here on the old master answers ASK
	w := b.queue(b.sem(there, "gpu", 1), nil, 1)
	move.Finish(t)
	require.NoError(t, p.Release(b.within(patience)))
	require.NoError(t, w.got(b).Release(b.within(patience)))
}
