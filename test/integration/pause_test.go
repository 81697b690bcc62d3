package integration

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// A process that is stopped for longer than its lease knows nothing of it until
// it runs again. Its next call, whichever that is, must tell.
func TestAStoppedHolderLearnsOfItsLoss(t *testing.T) {
	w := shared(t)
	client, holder := w.node(node.Config{}), w.spawn(safe)
	calls := []string{"err", "context", "renew", "release"} // each is the first of a semaphore of its own
	old, waits := map[string]answer{}, map[string]*taking{}
	for _, call := range calls {
		old[call] = holder.acquire(call, 1)
		waits[call] = w.queue(w.sem(client, call, 1), nil, 1)
	}
	holder.stop()
	permits, first := map[string]*semaphore.Permit{}, map[string]<-chan answer{}
	for _, call := range calls {
		permits[call] = waits[call].Wait(w)
		require.Greater(t, permits[call].Fence(), old[call].Fence, "fences do not rise")
		// The orders wait in the pipe, so that they are served as soon as the child runs
		// again, if possible before any timer of its.
		first[call] = holder.send(order{Do: call, Name: call})
	}
	holder.signal(syscall.SIGCONT)
	for _, call := range calls {
		a := holder.hear(first[call])
		t.Logf("%s after the pause: %s", call, a.Err)
		require.Contains(t, a.Is, "lost")
		require.Contains(t, a.Is, "not held")
		for _, next := range calls {
			require.Contains(t, holder.ask(order{Do: next, Name: call}).Is, "not held", next)
		}
		p := permits[call]
		require.NoError(t, p.Err(), "the stopped holder has touched what another holds")
		claim, _ := w.holder(call)
		require.Equal(t, p.ID(), claim)
		require.NoError(t, p.Release(w.Within(patience)))
		w.idle(call)
	}
}

// A waiter that is stopped for longer than its wait lease, and whose turn comes
// and goes meanwhile, stands where it stood when it runs again: before those who
// came later.
func TestAStoppedWaiterKeepsItsPlace(t *testing.T) {
	const lease = safe
	w := shared(t)
	s := w.sem(w.node(node.Config{}), "gpu", 1)
	p := w.take(s, nil)
	waiter := w.spawn(lease)
	first := waiter.queue("gpu", 1, 1)
	q := w.queue(s, nil, 2)
	last := w.queue(s, nil, 3)
	waiter.stop()
	require.NoError(t, p.Release(w.Within(patience)))
	p = q.Wait(w) // the stopped one was granted, and has lost it
	waiter.signal(syscall.SIGCONT)
	w.Await("the stopped one stands in line again", func() bool { return w.look("gpu").waiting() == 2 })
	require.NoError(t, p.Release(w.Within(patience)))
	a := waiter.hear(first)
	require.Empty(t, a.Err)
	require.Greater(t, a.Fence, p.Fence())
	require.False(t, last.Over(), "who came last is in before who was stopped")
	require.Empty(t, waiter.ask(order{Do: "release", Name: "gpu"}).Err)
	require.NoError(t, last.Wait(w).Release(w.Within(patience)))
	w.idle("gpu")
}

// A waiter that was stopped and granted meanwhile must not believe a push that is
// older than its lease.
func TestAStoppedWaiterDoesNotBelieveAnOldPush(t *testing.T) {
	const lease = safe
	w := shared(t)
	s := w.sem(w.node(node.Config{}), "gpu", 1)
	p := w.take(s, nil)
	waiter := w.spawn(lease)
	granted := waiter.queue("gpu", 1, 1)
	waiter.stop()
	require.NoError(t, p.Release(w.Within(patience))) // the push waits in the child's socket
	p = w.take(s, nil)
	waiter.signal(syscall.SIGCONT)
	w.Await("the stopped one stands in line again", func() bool { return w.look("gpu").waiting() == 1 })
	require.Empty(t, granted, "two hold")
	require.NoError(t, p.Err())
	require.NoError(t, p.Release(w.Within(patience)))
	a := waiter.hear(granted)
	require.Empty(t, a.Err)
	require.Greater(t, a.Fence, p.Fence())
}
