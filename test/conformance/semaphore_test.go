package conformance

import (
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/semaphore"
)

func semaphoreTests() []test {
	return []test{
		{name: "semaphore/weights", run: semWeights},
		{name: "semaphore/resize", run: semResize},
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
