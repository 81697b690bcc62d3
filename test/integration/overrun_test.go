package integration

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

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
