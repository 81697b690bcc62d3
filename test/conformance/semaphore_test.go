package conformance

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
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
		{name: "semaphore/release by id", run: semReleaseByID},
		{name: "semaphore/listings", run: semListings},
	}
}

func semOrder(b *bed) {
	const waiters = 10
	sems := b.sem(semaphore.Config{Lease: long}, 1)
	first := must(b, acquire(sems[0], nil))
	fence := first.Fence()
	var line []*pending[*semaphore.Permit]
	for i := range waiters {
		line = append(line, queue(b, acquire(sems[i%2], nil), b.semWaiting(sems[0]), i+1))
	}
	release(b, first)
	for i, w := range line {
		p := w.wait(b)
		for _, later := range line[i+1:] {
			require.True(b, later.waits(), "waiter %d was passed", i)
		}
		require.Greater(b, p.Fence(), fence)
		fence = p.Fence()
		release(b, p)
	}
}

func semWeights(b *bed) {
	sems := b.sem(semaphore.Config{Lease: long}, 4)
	heavy := &semaphore.AcquireOptions{Weight: 3}
	p := must(b, acquire(sems[0], heavy))
	require.Equal(b, 3, p.Weight())
	first := queue(b, acquire(sems[1], heavy), b.semWaiting(sems[0]), 1)
	// It would fit, and does not pass the one ahead.
	second := queue(b, acquire(sems[0], nil), b.semWaiting(sems[0]), 2)
	_, err := sems[1].TryAcquire(b.within(patience), nil)
	b.refused(err, berth.ReasonQueuedAhead)
	_, err = sems[1].Acquire(b.within(patience), &semaphore.AcquireOptions{Weight: 5})
	b.refused(err, berth.ReasonTooHeavy)

	release(b, p)
	release(b, first.wait(b), second.wait(b))
	require.Equal(b, semaphore.Stats{Name: "sem", Capacity: 4}, must(b, sems[0].Stats))
}

func semCapacity(b *bed) {
	const goroutines, rounds, capacity = 20, 5, 3
	sems := b.sem(semaphore.Config{Lease: long}, capacity)
	var inside atomic.Int64
	var fences sync.Map
	var users sync.WaitGroup
	for i := range goroutines {
		users.Go(func() {
			for range rounds {
				err := sems[i%2].Do(b.within(patience), nil, func(ctx context.Context) error {
					if now := inside.Add(1); now > capacity {
						b.Errorf("%d are inside", now)
					}
					defer inside.Add(-1)
					runtime.Gosched() // so that others may come in
					if _, twice := fences.LoadOrStore(sems[i%2].Fence(ctx), true); twice {
						b.Errorf("fence %d was given twice", sems[i%2].Fence(ctx))
					}
					return nil
				})
				if err != nil {
					b.Errorf("do: %v", err)
				}
			}
		})
	}
	users.Wait()
	require.Equal(b, semaphore.Stats{Name: "sem", Capacity: capacity}, must(b, sems[0].Stats))
}

func semHandOff(b *bed) {
	sems := b.sem(semaphore.Config{Lease: 2 * patience}, 1)
	p := must(b, acquire(sems[0], nil))
	w := queue(b, acquire(sems[1], nil), b.semWaiting(sems[0]), 1)
	released := time.Now()
	release(b, p)
	release(b, w.wait(b))
	// Without the wake-up the next heartbeat would bring it, a third of a lease later.
	require.Less(b, time.Since(released), patience/3)
}

func semCancel(b *bed) {
	sems := b.sem(semaphore.Config{Lease: long}, 1)
	p := must(b, acquire(sems[0], nil))
	ctx, cancel := context.WithCancelCause(b.within(patience))
	w := begin(ctx, acquire(sems[1], nil))
	b.await("the claim stands in line", func() bool { return b.semWaiting(sems[0])() == 1 })
	next := queue(b, acquire(sems[0], nil), b.semWaiting(sems[0]), 2)

	cancel(errLeft)
	w.fails(b, berth.ErrNotAcquired, context.Canceled, errLeft)
	b.refused(w.err, berth.ReasonCancelled)
	b.await("the claim has left the line", func() bool { return b.semWaiting(sems[0])() == 1 })

	timed := &semaphore.AcquireOptions{MaxWait: 2 * time.Second}
	_, err := sems[1].Acquire(b.within(patience), timed)
	b.refused(err, berth.ReasonTimedOut)
	require.ErrorIs(b, err, berth.ErrBusy)

	release(b, p)
	release(b, next.wait(b))
	b.await("nothing is left", func() bool {
		return must(b, sems[0].Stats) == semaphore.Stats{Name: "sem", Capacity: 1}
	})
}

func semExpiry(b *bed) {
	sems := b.sem(semaphore.Config{Lease: long}, 1)
	fixed := &semaphore.AcquireOptions{Lease: short, NoRenew: true}
	p := must(b, acquire(sems[0], fixed))
	w := begin(b.within(patience), acquire(sems[1], nil))
	next := w.wait(b)
	// Its holder knew before another could have it.
	require.ErrorIs(b, p.Err(), berth.ErrExpired)
	b.ended(p, berth.ErrExpired)
	require.ErrorIs(b, p.Release(b.within(patience)), berth.ErrExpired)
	require.Greater(b, next.Fence(), p.Fence())
	require.NoError(b, next.Err(), "the late release has ended the successor")
	release(b, next)
}

func semResize(b *bed) {
	sems := b.sem(semaphore.Config{Lease: long}, 1)
	p := must(b, acquire(sems[0], nil))
	w := queue(b, acquire(sems[1], nil), b.semWaiting(sems[0]), 1)
	require.NoError(b, sems[0].Resize(b.within(patience), 2, nil))
	second := w.wait(b) // grown, it goes to the one that waits

	heavy := queue(b, acquire(sems[1], &semaphore.AcquireOptions{Weight: 2}), b.semWaiting(sems[0]), 1)
	require.NoError(b, sems[1].Resize(b.within(patience), 1, nil))
	heavy.fails(b, berth.ErrNotAcquired)
	b.refused(heavy.err, berth.ReasonTooHeavy)
	require.NoError(b, p.Err(), "what is held stays held")
	release(b, p)
	_, err := sems[0].TryAcquire(b.within(patience), nil)
	b.refused(err, berth.ReasonFull)
	release(b, second)
	release(b, must(b, acquire(sems[0], nil)))
}

func semDetach(b *bed) {
	clients := b.sems(semaphore.Config{Lease: long})
	sem, err := clients[0].Semaphore("sem", 1)
	require.NoError(b, err)
	other, err := clients[1].Semaphore("sem", 1)
	require.NoError(b, err)
	p := afterAWait(b, acquire(sem, nil), acquire(other, nil), b.semWaiting(sem))
	token := must(b, p.Detach)
	text, err := token.MarshalText()
	require.NoError(b, err)
	var read berth.Token
	require.NoError(b, read.UnmarshalText(text))

	resumed, err := clients[1].Resume(b.within(patience), read)
	require.NoError(b, err)
	b.ended(p, berth.ErrReleased)
	require.Equal(b, p.Fence(), resumed.Fence())
	require.Equal(b, 1, must(b, sem.Stats).Held)
	release(b, resumed)
	require.Equal(b, 0, must(b, sem.Stats).Held)
	_, err = clients[0].Resume(b.within(patience), read)
	require.Error(b, err)
}

func semReleaseByID(b *bed) {
	clients := b.sems(semaphore.Config{Lease: long})
	var sems [2]*semaphore.Semaphore
	for i, c := range clients {
		var err error
		sems[i], err = c.Semaphore("sem", 1)
		require.NoError(b, err)
	}
	p := must(b, acquire(sems[0], nil))
	w := queue(b, acquire(sems[0], nil), b.semWaiting(sems[1]), 1)
	require.NoError(b, clients[1].ReleaseByID(b.within(patience), "sem", p.ID()))
	b.ended(p, berth.ErrReleased)
	release(b, w.wait(b))
	require.ErrorIs(b, clients[1].ReleaseByID(b.within(patience), "sem", p.ID()), berth.ErrNotHeld)
}

func semListings(b *bed) {
	clients := b.sems(semaphore.Config{Lease: long, Label: "a label"})
	names := numbered(12)
	var held []*semaphore.Permit
	for i, name := range names {
		sem, err := clients[i%2].Semaphore(name, 2)
		require.NoError(b, err)
		held = append(held, must(b, acquire(sem, &semaphore.AcquireOptions{Weight: 1 + i%2, Meta: map[string]string{"of": name}})))
	}
	var listed []string
	for _, stats := range all(b, clients[0].Stats(b.within(patience))) {
		listed = append(listed, stats.Name)
	}
	require.ElementsMatch(b, names, listed)
	top, err := clients[0].Top(b.within(patience), 6)
	require.NoError(b, err)
	require.Len(b, top, 6)
	for _, stats := range top {
		require.InDelta(b, 1, stats.Share(), 0)
	}

	sem, err := clients[0].Semaphore(names[1], 2)
	require.NoError(b, err)
	w := queue(b, acquire(sem, &semaphore.AcquireOptions{Priority: 5}), b.semWaiting(sem), 1)
	holder := one(b, sem.Holders(b.within(patience)))
	require.Equal(b, held[1].ID(), holder.ID)
	require.Equal(b, "a label", holder.Label)
	require.Equal(b, 2, holder.Weight)
	require.Equal(b, map[string]string{"of": names[1]}, holder.Meta)
	waiter := one(b, sem.Waiters(b.within(patience)))
	require.Equal(b, clients[0].Node(), waiter.Node)
	require.Equal(b, 5, waiter.Priority)
	release(b, held...)
	release(b, w.wait(b))
	require.Empty(b, all(b, clients[1].Stats(b.within(patience))))
}
