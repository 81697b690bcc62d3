package conformance

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/semaphore"
)

func semaphoreTests() []test {
	return []test{
		{name: "semaphore/first come, first served", run: semOrder},
		{name: "semaphore/weights", run: semWeights},
		{name: "semaphore/never above the capacity", run: semCapacity},
		{name: "semaphore/a release hands on at once", run: semHandOff},
		{name: "semaphore/a cancelled wait leaves nothing", run: semCancel},
		{name: "semaphore/a lease that is not renewed is handed on", run: semExpiry},
		{name: "semaphore/resize", run: semResize},
		{name: "semaphore/detach and resume", run: semDetach},
		{name: "semaphore/release by an operator", run: semForce},
		{name: "semaphore/listings", run: semListings},
	}
}

func semOrder(w *world) {
	const waiters = 10
	sems := w.sem("sem", 1)
	first := must(w, acquire(sems[0], nil))
	fence := first.Fence()
	var line []*testkit.Call[*semaphore.Permit]
	for i := range waiters {
		line = append(line, queue(w, acquire(sems[i%2], nil), w.waiting(keyspace.Sem, "sem"), i+1))
	}
	release(w, first)
	for i, q := range line {
		p := q.Wait(w)
		for _, later := range line[i+1:] {
			require.False(w, later.Over(), "waiter %d was passed", i)
		}
		require.Greater(w, p.Fence(), fence)
		fence = p.Fence()
		release(w, p)
	}
}

func semWeights(w *world) {
	sems := w.sem("sem", 4)
	heavy := &semaphore.AcquireOptions{Weight: 3}
	p := must(w, acquire(sems[0], heavy))
	require.Equal(w, 3, p.Weight())
	first := queue(w, acquire(sems[1], heavy), w.waiting(keyspace.Sem, "sem"), 1)
	// It would fit, and does not pass the one ahead.
	second := queue(w, acquire(sems[0], nil), w.waiting(keyspace.Sem, "sem"), 2)
	_, err := sems[1].TryAcquire(w.Within(patience), nil)
	w.refused(err, berth.ReasonQueuedAhead)
	_, err = sems[1].Acquire(w.Within(patience), &semaphore.AcquireOptions{Weight: 5})
	w.refused(err, berth.ReasonTooHeavy)

	release(w, p)
	release(w, first.Wait(w), second.Wait(w))
	require.Equal(w, [4]int{4}, w.semaphore())
}

func semCapacity(w *world) {
	const goroutines, rounds, capacity = 20, 5, 3
	sems := w.sem("sem", capacity)
	var inside atomic.Int64
	var fences sync.Map
	var users sync.WaitGroup
	for i := range goroutines {
		users.Go(func() {
			for range rounds {
				err := sems[i%2].Do(w.Within(patience), nil, func(ctx context.Context) error {
					if now := inside.Add(1); now > capacity {
						w.Errorf("%d are inside", now)
					}
					defer inside.Add(-1)
					runtime.Gosched() // so that others may come in
					if _, twice := fences.LoadOrStore(sems[i%2].Fence(ctx), true); twice {
						w.Errorf("fence %d was given twice", sems[i%2].Fence(ctx))
					}
					return nil
				})
				if err != nil {
					w.Errorf("do: %v", err)
				}
			}
		})
	}
	users.Wait()
	require.Equal(w, [4]int{capacity}, w.semaphore())
}

func semHandOff(w *world) {
	w.cfg.Lease = 2 * patience
	sems := w.sem("sem", 1)
	p := must(w, acquire(sems[0], nil))
	q := queue(w, acquire(sems[1], nil), w.waiting(keyspace.Sem, "sem"), 1)
	released := time.Now()
	release(w, p)
	release(w, q.Wait(w))
	// Without the wake-up the next heartbeat would bring it, a third of a lease later.
	require.Less(w, time.Since(released), patience/3)
}

func semCancel(w *world) {
	sems := w.sem("sem", 1)
	p := must(w, acquire(sems[0], nil))
	ctx, cancel := context.WithCancelCause(w.Within(patience))
	q := testkit.Begin(ctx, acquire(sems[1], nil))
	w.Await("the claim stands in line", func() bool { return w.waiting(keyspace.Sem, "sem")() == 1 })
	next := queue(w, acquire(sems[0], nil), w.waiting(keyspace.Sem, "sem"), 2)

	cancel(errLeft)
	q.Fails(w, berth.ErrNotAcquired, context.Canceled, errLeft)
	w.refused(q.Err, berth.ReasonCancelled)
	w.Await("the claim has left the line", func() bool { return w.waiting(keyspace.Sem, "sem")() == 1 })

	timed := &semaphore.AcquireOptions{MaxWait: 2 * time.Second}
	_, err := sems[1].Acquire(w.Within(patience), timed)
	w.refused(err, berth.ReasonTimedOut)
	require.ErrorIs(w, err, berth.ErrBusy)

	release(w, p)
	release(w, next.Wait(w))
	w.Await("nothing is left", func() bool {
		return w.semaphore() == [4]int{1}
	})
}

func semExpiry(w *world) {
	sems := w.sem("sem", 1)
	fixed := &semaphore.AcquireOptions{Lease: short, NoRenew: true}
	p := must(w, there(acquire(sems[0], fixed)))
	q := testkit.Begin(w.Within(patience), acquire(sems[1], nil))
	next := q.Wait(w)
	// Its holder knew before another could have it.
	require.ErrorIs(w, p.Err(), berth.ErrExpired)
	w.ended(p, berth.ErrExpired)
	require.ErrorIs(w, p.Release(w.Within(patience)), berth.ErrExpired)
	require.Greater(w, next.Fence(), p.Fence())
	require.NoError(w, next.Err(), "the late release has ended the successor")
	release(w, next)
}

func semResize(w *world) {
	sems := w.sem("sem", 1)
	p := must(w, acquire(sems[0], nil))
	q := queue(w, acquire(sems[1], nil), w.waiting(keyspace.Sem, "sem"), 1)
	require.NoError(w, semaphore.NewOperator(sems[0].Node).Resize(w.Within(patience), "sem", 2, nil))
	second := q.Wait(w) // grown, it goes to the one that waits

	heavy := queue(w, acquire(sems[1], &semaphore.AcquireOptions{Weight: 2}), w.waiting(keyspace.Sem, "sem"), 1)
	require.NoError(w, semaphore.NewOperator(sems[1].Node).Resize(w.Within(patience), "sem", 1, nil))
	heavy.Fails(w, berth.ErrNotAcquired)
	w.refused(heavy.Err, berth.ReasonTooHeavy)
	require.NoError(w, p.Err(), "what is held stays held")
	release(w, p)
	_, err := sems[0].TryAcquire(w.Within(patience), nil)
	w.refused(err, berth.ReasonFull)
	release(w, second)
	release(w, must(w, acquire(sems[0], nil)))
}

func semDetach(w *world) {
	sems := w.sem("sem", 1)
	p := afterAWait(w, acquire(sems[0], nil), acquire(sems[1], nil), w.waiting(keyspace.Sem, "sem"))
	token := must(w, p.Detach)
	text, err := token.MarshalText()
	require.NoError(w, err)
	var read berth.Token
	require.NoError(w, read.UnmarshalText(text))

	resumed, err := sems[1].Resume(w.Within(patience), read)
	require.NoError(w, err)
	w.ended(p, berth.ErrReleased)
	require.Equal(w, p.Fence(), resumed.Fence())
	require.Equal(w, 1, w.semaphore()[1])
	release(w, resumed)
	require.Equal(w, 0, w.semaphore()[1])
	_, err = sems[0].Resume(w.Within(patience), read)
	require.Error(w, err)
}

func semForce(w *world) {
	sems := w.sem("sem", 1)
	p := must(w, acquire(sems[0], nil))
	q := queue(w, acquire(sems[0], nil), w.waiting(keyspace.Sem, "sem"), 1)
	target := berth.Target{Kind: keyspace.Sem, Name: "sem", Claim: p.ID()}
	ended, err := sems[1].Operator().Release(w.Within(patience), target)
	require.NoError(w, err)
	require.Equal(w, 1, ended)
	w.ended(p, berth.ErrReleased)
	release(w, q.Wait(w))
	_, err = sems[1].Operator().Release(w.Within(patience), target)
	require.ErrorIs(w, err, berth.ErrNotHeld)
}

func semListings(w *world) {
	w.cfg.Label = "a label"
	names := numbered(12)
	var held []*semaphore.Permit
	for i, name := range names {
		held = append(held, must(w, acquire(w.sem(name, 2)[i%2], &semaphore.AcquireOptions{Weight: 1 + i%2, Meta: map[string]string{"of": name}})))
	}
	var listed []string
	for _, n := range w.reader().Names(keyspace.Sem) {
		listed = append(listed, n.Name)
		i := slices.Index(names, n.Name)
		require.Equal(w, []int{2, 1 + i%2, 1, 0}, []int{n.Capacity, n.Held, n.Holders, n.Waiting})
	}
	require.ElementsMatch(w, names, listed)

	sem := w.sem(names[1], 2)[0]
	q := queue(w, acquire(sem, &semaphore.AcquireOptions{Priority: 5}), w.waiting(keyspace.Sem, sem.Name()), 1)
	holder := one(w, w.reader().Holders(keyspace.Sem, sem.Name()))
	require.Equal(w, held[1].ID(), holder.ID)
	require.Equal(w, "a label", holder.Label)
	require.Equal(w, 2, holder.Weight)
	require.Equal(w, map[string]string{"of": names[1]}, holder.Meta)
	waiter := one(w, w.reader().Waiters(keyspace.Sem, sem.Name()))
	require.Equal(w, sem.ID(), waiter.Node)
	require.Equal(w, 5, waiter.Priority)
	release(w, held...)
	release(w, q.Wait(w))
	require.Empty(w, w.reader().Names(keyspace.Sem))
}
