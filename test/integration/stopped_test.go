package integration

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// A waiter that is stopped for longer than its wait lease, and whose turn comes
// and goes meanwhile, stands where it stood when it runs again: before those who
// came later. It does not believe the push of its grant, which is older than its lease.
func TestAStoppedWaiterKeepsItsPlace(t *testing.T) {
	w := shared(t)
	s := w.sem(w.node(node.Config{}), "gpu", 1)
	p := w.take(s, nil)
	waiter := w.spawn(safe)
	first := waiter.queue("gpu", 1, 1)
	q := w.queue(s, nil, 2)
	last := w.queue(s, nil, 3)
	waiter.stop()
	require.NoError(t, p.Release(w.Within(patience))) // the push waits in the child's socket
	p = q.Wait(w)                                     // the stopped one was granted, and has lost it
	waiter.signal(syscall.SIGCONT)
	w.Await("the stopped one stands in line again", func() bool { return w.look("gpu").waiting() == 2 })
	require.Empty(t, first, "two hold")
	require.NoError(t, p.Err())
	require.NoError(t, p.Release(w.Within(patience)))
	a := waiter.hear(first)
	require.Empty(t, a.Err)
	require.Greater(t, a.Fence, p.Fence())
	require.False(t, last.Over(), "who came last is in before who was stopped")
	require.Empty(t, waiter.ask(order{Do: "release", Name: "gpu"}).Err)
	require.NoError(t, last.Wait(w).Release(w.Within(patience)))
	w.idle("gpu")
}

// A holder that was stopped for longer than its lease runs again, and does with what it had what it
// likes: it must learn of its loss, and not touch its successor's.
func TestAHolderThatOverranCannotTouchItsSuccessor(t *testing.T) {
	t.Parallel()
	overKinds(t, shared, func(w *world) {
		u := w.use(node.Config{Lease: time.Hour}) // no heartbeat changes anything
		holder := w.spawn(safe)
		old := holder.acquire(w.name(), 1)
		// A fixed lease, which nothing moves but a call of somebody.
		q := w.holdQueue(u, terms{Lease: time.Hour, NoRenew: true}, 1)
		holder.stop()
		h := q.Wait(w)
		require.Greater(w, h.Fence(), old.Fence, "fences do not rise")
		before := w.dumpsOf(w.name())

		calls := []string{"release", "renew", "release", "err", "context"}
		if w.kind == keyspace.Lock {
			calls = append([]string{"extend"}, calls...)
		}
		// The order waits in the pipe, so that it is served as soon as the child runs
		// again, if possible before any timer of its.
		first := holder.send(order{Do: calls[0], Name: w.name(), By: time.Hour})
		holder.signal(syscall.SIGCONT)
		require.Subset(w, holder.hear(first).Is, []string{"lost", "not held"})
		for _, next := range calls[1:] {
			require.Contains(w, holder.ask(order{Do: next, Name: w.name(), By: time.Hour}).Is, "not held", next)
		}
		require.Equal(w, before, w.dumpsOf(w.name()), "it has changed something")
		require.NoError(w, h.Err())
		w.release(h)
		w.idle(w.name())
	})
}
