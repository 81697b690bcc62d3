package conformance

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// errLeft is why a caller of the tests leaves.
var errLeft = errors.New("the caller has left")

// wish is what is asked of a claim, whatever its kind.
type wish struct {
	lease, maxHold, maxWait time.Duration
	noRenew                 bool
	meta                    map[string]string
}

// face is a name as a process sees it.
type face struct {
	*node.Node
	acquire func(of wish) func(context.Context) (berth.Hold, error)
	resume  func(ctx context.Context, token berth.Token) (berth.Hold, error)
}

// A kind is what there is of every one of them.
type kind struct {
	name string
	of   keyspace.Kind
	most int // may hold at once
	// open makes a name of which so many may hold, at the most.
	open func(w *world, name string, most int) [2]face
}

var kinds = [...]kind{
	{"semaphore", keyspace.Sem, 3, openSem},
	{"lock", keyspace.Lock, 1, openLock},
	{"allocator", keyspace.Pool, 3, openPool},
}

func openSem(w *world, name string, most int) (two [2]face) {
	for i, s := range w.sem(name, most) {
		two[i] = face{s.Node, func(of wish) func(context.Context) (berth.Hold, error) {
			opts := &semaphore.AcquireOptions{Lease: of.lease, MaxHold: of.maxHold, MaxWait: of.maxWait, NoRenew: of.noRenew}
			opts.Meta = of.meta
			return func(ctx context.Context) (berth.Hold, error) { return s.Acquire(ctx, opts) }
		}, func(ctx context.Context, token berth.Token) (berth.Hold, error) { return s.Resume(ctx, token) }}
	}
	return two
}

func openLock(w *world, name string, _ int) (two [2]face) {
	for i, l := range w.locks() {
		two[i] = face{l.Node, func(of wish) func(context.Context) (berth.Hold, error) {
			opts := &qlock.LockOptions{Lease: of.lease, MaxHold: of.maxHold, MaxWait: of.maxWait, NoRenew: of.noRenew}
			opts.Meta = of.meta
			return func(ctx context.Context) (berth.Hold, error) { return l.Lock(ctx, name, opts) }
		}, func(ctx context.Context, token berth.Token) (berth.Hold, error) { return l.Resume(ctx, token) }}
	}
	return two
}

func openPool(w *world, name string, most int) (two [2]face) {
	pools := w.pools(name, poolConfig{})
	w.add(pools[0], numbered(most)...)
	for i, p := range pools {
		two[i] = face{w.node(i), func(of wish) func(context.Context) (berth.Hold, error) {
			opts := &allocator.AllocateOptions{Lease: of.lease, MaxHold: of.maxHold, MaxWait: of.maxWait, NoRenew: of.noRenew}
			opts.Meta = of.meta
			return func(ctx context.Context) (berth.Hold, error) { return p.Allocate(ctx, opts) }
		}, func(ctx context.Context, token berth.Token) (berth.Hold, error) { return p.Resume(ctx, token) }}
	}
	return two
}

// kindTests are scenarios that every kind goes through.
func kindTests() (all []test) {
	for _, k := range kinds {
		for name, run := range map[string]func(*world, kind){
			"first come, first served, at once":       order,
			"never more than there is":                storm,
			"a cancelled wait leaves nothing":         leave,
			"what runs out is handed on":              runOut,
			"detach and resume":                       detach,
			"release by an operator":                  force,
			"listings, and releases of all of a node": listings,
		} {
			all = append(all, test{name: k.name + "/" + name, run: func(w *world) { run(w, k) }})
		}
	}
	return all
}

// thing is the name of tests that need only one.
const thing = "thing"

func order(w *world, k kind) {
	const waiters = 6
	w.cfg.Lease = 2 * patience
	two := k.open(w, thing, 1)
	last := must(w, two[0].acquire(wish{}))
	var line []*testkit.Call[berth.Hold]
	for i := range waiters {
		line = append(line, queue(w, two[(i+1)%2].acquire(wish{}), w.waiting(k.of, thing), i+1))
	}
	released := time.Now()
	for i, q := range line {
		release(w, last)
		next := q.Wait(w)
		if i == 0 {
			// Without the wake-up the next heartbeat would bring it, a third of a lease later.
			require.Less(w, time.Since(released), patience/3)
		}
		for _, later := range line[i+1:] {
			require.False(w, later.Over(), "waiter %d was passed", i)
		}
		require.Greater(w, next.Fence(), last.Fence())
		last = next
	}
	release(w, last)
}

func storm(w *world, k kind) {
	const goroutines, rounds = 12, 5
	two := k.open(w, thing, k.most)
	var inside atomic.Int64
	var fences, used sync.Map
	var users sync.WaitGroup
	for i := range goroutines {
		users.Go(func() {
			for range rounds {
				h, err := two[i%2].acquire(wish{})(w.Within(patience))
				if err != nil {
					w.Errorf("acquire: %v", err)
					return
				}
				if now := inside.Add(1); now > int64(k.most) {
					w.Errorf("%d are inside", now)
				}
				if _, twice := fences.LoadOrStore(h.Fence(), true); twice {
					w.Errorf("fence %d was given twice", h.Fence())
				}
				if a, ok := h.(*allocation); ok {
					if _, taken := used.LoadOrStore(a.Resource(), true); taken {
						w.Errorf("%s is used twice", a.Resource())
					}
				}
				runtime.Gosched() // so that others may come in
				if a, ok := h.(*allocation); ok {
					used.Delete(a.Resource())
				}
				inside.Add(-1)
				if err := h.Release(w.Within(patience)); err != nil {
					w.Errorf("release: %v", err)
				}
			}
		})
	}
	users.Wait()
	w.idle(k.of)
}

func leave(w *world, k kind) {
	w.cfg.Lease = 2 * patience // what would be left stays
	two := k.open(w, thing, 1)
	waiting := w.waiting(k.of, thing)
	h := must(w, two[0].acquire(wish{}))
	ctx, cancel := context.WithCancelCause(w.Within(patience))
	q := testkit.Begin(ctx, two[1].acquire(wish{}))
	w.Await("the claim stands in line", func() bool { return waiting() == 1 })
	next := queue(w, two[0].acquire(wish{}), waiting, 2)

	cancel(errLeft)
	q.Fails(w, berth.ErrNotAcquired, context.Canceled, errLeft)
	w.refused(q.Err, berth.ReasonCancelled)
	w.Await("the claim has left the line", func() bool { return waiting() == 1 })

	_, err := two[1].acquire(wish{maxWait: 2 * time.Second})(w.Within(patience))
	w.refused(err, berth.ReasonTimedOut)
	require.ErrorIs(w, err, berth.ErrBusy)
	w.Await("its claim has left the line", func() bool { return waiting() == 1 })

	release(w, h)
	release(w, next.Wait(w))
	w.Await("nothing is left", func() bool {
		n := w.reader().Look(k.of, thing)
		return n.Held+n.Waiting == 0
	})
	w.idle(k.of)
}

func runOut(w *world, k kind) {
	two := k.open(w, thing, 1)
	for _, of := range []wish{{lease: short, noRenew: true}, {maxHold: short}} {
		h := must(w, there(two[0].acquire(of)))
		next := testkit.Begin(w.Within(patience), two[1].acquire(wish{})).Wait(w)
		// Its holder knew before another could have it.
		require.ErrorIs(w, h.Err(), berth.ErrExpired)
		w.ended(h, berth.ErrExpired)
		require.ErrorIs(w, h.Release(w.Within(patience)), berth.ErrExpired)
		require.Greater(w, next.Fence(), h.Fence())
		require.NoError(w, next.Err(), "the late release has ended the successor")
		release(w, next)
	}
}

func detach(w *world, k kind) {
	two := k.open(w, thing, 1)
	h := afterAWait(w, two[0].acquire(wish{}), two[1].acquire(wish{}), w.waiting(k.of, thing))
	text, err := must(w, h.Detach).MarshalText()
	require.NoError(w, err)
	var read berth.Token
	require.NoError(w, read.UnmarshalText(text))

	resumed, err := two[1].resume(w.Within(patience), read)
	require.NoError(w, err)
	w.ended(h, berth.ErrReleased)
	require.Equal(w, h.Fence(), resumed.Fence())
	require.Equal(w, resumed.Fence(), one(w, w.reader().Holders(k.of, thing)).Fence)
	release(w, resumed)
	w.idle(k.of)
	_, err = two[0].resume(w.Within(patience), read)
	require.Error(w, err)
}

func force(w *world, k kind) {
	two := k.open(w, thing, 1)
	h := must(w, two[0].acquire(wish{}))
	q := queue(w, two[0].acquire(wish{}), w.waiting(k.of, thing), 1)
	target := berth.Target{Kind: k.of, Name: thing, Claim: h.ID()}
	ended, err := two[1].Operator().Release(w.Within(patience), target)
	require.NoError(w, err)
	require.Equal(w, 1, ended)
	w.ended(h, berth.ErrReleased)
	release(w, q.Wait(w))
	_, err = two[1].Operator().Release(w.Within(patience), target)
	require.ErrorIs(w, err, berth.ErrNotHeld)
}

// listings of names in several slots of a Cluster.
func listings(w *world, k kind) {
	w.cfg.Label = "a label"
	names := numbered(12)
	held := map[string]berth.Hold{}
	var two [2]face
	for i, name := range names {
		two = k.open(w, name, 1)
		of := wish{meta: map[string]string{"of": name}}
		// Who has waited is told at once of what others do to its holds.
		held[name] = afterAWait(w, two[i%2].acquire(of), two[(i+1)%2].acquire(wish{}), w.waiting(k.of, name))
	}
	q := queue(w, two[0].acquire(wish{}), w.waiting(k.of, names[11]), 1)
	listed := map[string]bool{} // one that moves meanwhile, as others make names, may be listed twice
	for _, n := range w.reader().Names(k.of) {
		listed[n.Name] = true
		require.Equal(w, 1, n.Holders)
		require.Equal(w, n.Name == names[11], n.Waiting == 1)
		holder := one(w, w.reader().Holders(k.of, n.Name))
		require.Equal(w, []any{held[n.Name].ID(), "a label", n.Name}, []any{holder.ID, holder.Label, holder.Meta["of"]})
	}
	require.ElementsMatch(w, names, slices.Collect(maps.Keys(listed)))
	require.Equal(w, two[0].ID(), one(w, w.reader().Waiters(k.of, names[11])).Node)

	many, err := two[0].Operator().Release(w.Within(patience), berth.Target{Node: two[1].ID()})
	require.NoError(w, err)
	require.Equal(w, 6, many)
	release(w, q.Wait(w))
	many, err = two[1].Operator().Release(w.Within(patience), berth.Target{All: true})
	require.NoError(w, err)
	require.Equal(w, 6, many)
	for _, h := range held {
		w.ended(h, berth.ErrReleased)
	}
}

// idle wants nobody to hold the thing or to wait for it.
func (w *world) idle(of keyspace.Kind) {
	w.Helper()
	n := w.reader().Look(of, thing)
	require.Equal(w, [3]int{}, [3]int{n.Held, n.Holders, n.Waiting})
	if n.Pool != nil {
		require.Equal(w, n.Capacity, n.Pool.Free)
	}
}
