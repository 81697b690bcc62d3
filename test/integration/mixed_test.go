package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// guest is a node with settings of its own on a name that all share.
type guest struct {
	what string
	cfg  node.Config
	cap  int
	opts semaphore.AcquireOptions
}

// guests differ in all that a node may set. They hold for longer than the test
// looks, or until their own limit.
var guests = []guest{
	{"short", node.Config{Lease: safe, Linger: time.Millisecond}, 2, semaphore.AcquireOptions{}},
	{"long", node.Config{Lease: time.Minute, Linger: time.Minute}, 7, semaphore.AcquireOptions{}},
	{"fixed", node.Config{Lease: safe}, 1, semaphore.AcquireOptions{NoRenew: true, Lease: time.Hour}},
	{"bounded", node.Config{Lease: safe}, 100, semaphore.AcquireOptions{MaxHold: time.Hour}},
	{"heavy", node.Config{Lease: safe}, 3, semaphore.AcquireOptions{Weight: 2}},
	{"short fixed", node.Config{Lease: 40 * time.Second}, 1, semaphore.AcquireOptions{NoRenew: true, Lease: 30 * time.Minute}},
}

// watch checks, each time it is called, that no claim's deadline has come nearer
// and that no claim has gone.
type watch struct {
	w     *world
	holds map[string]int64
}

func (on *watch) look(claims map[string]string) {
	on.w.Helper()
	v := on.w.whole("shared")
	for claim, what := range claims {
		deadline, held := v.holds[claim]
		require.True(on.w, held, "%s is gone", what)
		require.GreaterOrEqual(on.w, deadline, on.holds[claim], "the deadline of %s came nearer", what)
		on.holds[claim] = deadline
	}
}

func TestGuestsWithOtherSettingsLeaveEachOtherAlone(t *testing.T) {
	w := shared(t)
	const capacity = 7
	host := semaphore.NewOperator(w.node(node.Config{Linger: 5 * time.Second}))
	require.NoError(t, host.Resize(w.Within(patience), "shared", capacity, &semaphore.ResizeOptions{Create: true}))
	on := &watch{w: w, holds: map[string]int64{}}
	claims := map[string]string{}
	var visitors []*semaphore.Semaphore
	var permits []*semaphore.Permit
	for _, g := range guests {
		s := w.sem(w.node(g.cfg), "shared", g.cap)
		p := w.take(s, &g.opts)
		if g.opts.NoRenew {
			require.NoError(t, p.Renew(w.Within(patience))) // its whole lease runs
		}
		visitors, permits = append(visitors, s), append(permits, p)
		claims[p.ID()] = g.what
		on.look(claims)
	}
	require.EqualValues(t, capacity, w.look("shared").state["used"])
	on.jostle(visitors, claims)

	// The shortest lease ends; all renew by themselves or last.
	start := w.now()
	w.Await("time goes by", func() bool {
		on.look(claims)
		return w.now()-start > safe.Milliseconds()+1000
	})
	for i, p := range permits {
		require.NoError(t, p.Err(), guests[i].what)
		require.NoError(t, p.Release(w.Within(patience)), guests[i].what)
		delete(claims, p.ID())
		on.look(claims)
	}
	w.idle("shared")
	require.EqualValues(t, capacity, w.look("shared").state["cap"], "somebody's capacity replaced the stored one")
}

// jostle has every guest do what touches the name: ask and be refused, wait and
// leave, count, list.
func (on *watch) jostle(visitors []*semaphore.Semaphore, claims map[string]string) {
	w := on.w
	w.Helper()
	for _, sem := range visitors {
		_, err := sem.TryAcquire(w.Within(patience), nil)
		require.ErrorIs(w, err, berth.ErrBusy)
		on.look(claims)
		ctx, cancel := context.WithCancel(context.Background())
		waits := w.beginWith(ctx, sem, &semaphore.AcquireOptions{Priority: 9})
		w.Await("it waits", func() bool { return w.look("shared").waiting() == 1 })
		on.look(claims)
		cancel()
		w.Signalled("the caller to be let go", waits.Done)
		w.Await("it has left", func() bool { return w.look("shared").waiting() == 0 })
		on.look(claims)
		require.Equal(w, 7, w.reader().Look(keyspace.Sem, "shared").Held)
		w.reader().Holders(keyspace.Sem, "shared")
		on.look(claims)
	}
}

// A hold that ends by a limit of its own ends then, among others that do not.
func TestLimitsEndOnlyTheirOwnHold(t *testing.T) {
	w := shared(t)
	c := w.node(node.Config{Lease: time.Minute})
	s := w.sem(c, "gpu", 3)
	lag := w.measure()
	endless := w.take(s, &semaphore.AcquireOptions{Lease: berth.Forever})
	long := w.take(s, nil)
	short := w.take(s, &semaphore.AcquireOptions{MaxHold: safe})
	deadline := w.look("gpu").holds[short.ID()]
	q := w.queue(w.sem(w.node(node.Config{Lease: safe}), "gpu", 99), nil, 1)
	p := q.Wait(w)
	granted := w.look("gpu").records[p.ID()].Granted.UnixMilli()
	require.GreaterOrEqual(t, granted, deadline)
	require.LessOrEqual(t, granted-deadline, lag.allow(slack, 2).Milliseconds())
	require.ErrorIs(t, short.Err(), berth.ErrExpired)
	require.NoError(t, endless.Err())
	require.NoError(t, long.Err())
	v := w.look("gpu")
	require.Contains(t, v.holds, endless.ID())
	require.Contains(t, v.holds, long.ID())
	require.Equal(t, []int64{-1, -1}, v.expires, "a hold without end must not expire with its keys")
	for _, p := range []*semaphore.Permit{endless, long, p} {
		require.NoError(t, p.Release(w.Within(patience)))
	}
	require.ErrorIs(t, short.Release(w.Within(patience)), berth.ErrExpired)
	w.idle("gpu")
}

// Permits of one node and name are renewed together. One with a lease so short
// that the network is too slow for it must not take the others' heartbeats along
// when its own are given up.
func TestShortLeasesDoNotCostLongOnes(t *testing.T) {
	w := shared(t)
	const lease = safe
	proxy := harness.Proxy(t, w.server)
	proxy.AddLatency(20 * time.Millisecond)
	s := w.sem(w.nodeOn(proxy.Client(t), node.Config{Lease: lease}), "gpu", 5)
	long := w.take(s, nil)
	start := time.Now()
	shorts := 0
	for ; time.Since(start) < lease+lease/10; shorts++ {
		// A sixth of this lease is less than a round trip.
		p, err := s.Acquire(w.Within(patience), &semaphore.AcquireOptions{NoRenew: true, Lease: 100 * time.Millisecond})
		if err == nil {
			w.Signalled("the short one to end", p.Done())
			continue
		}
		require.ErrorIs(t, err, berth.ErrExpired) // on a slow machine, before it was here
	}
	t.Logf("%d short permits beside one of %v", shorts, lease)
	require.NoError(t, long.Err())
	require.NoError(t, long.Release(w.Within(patience)))
}
