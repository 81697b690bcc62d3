package integration

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/semaphore"
)

// A process that is stopped for longer than its lease knows nothing of it until
// it runs again. Its next call, whichever that is, must tell.
func TestAStoppedHolderLearnsOfItsLoss(t *testing.T) {
	b := shared(t)
	client, holder := b.client(semaphore.Config{}), b.spawn(safe)
	calls := []string{"err", "context", "renew", "release"} // each is the first of a semaphore of its own
	old, waits := map[string]answer{}, map[string]*taking{}
	for _, call := range calls {
		old[call] = holder.acquire(call, 1)
		waits[call] = b.queue(b.sem(client, call, 1), nil, 1)
	}
	holder.stop()
	permits, first := map[string]*semaphore.Permit{}, map[string]<-chan answer{}
	for _, call := range calls {
		permits[call] = waits[call].got(b)
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
		claim, _ := b.holder(call)
		require.Equal(t, p.ID(), claim)
		require.NoError(t, p.Release(b.within(patience)))
		b.idle(call)
	}
}

// A waiter that is stopped for longer than its wait lease, and whose turn comes
// and goes meanwhile, stands where it stood when it runs again: before those who
// came later.
func TestAStoppedWaiterKeepsItsPlace(t *testing.T) {
	const lease = safe
	b := shared(t)
	s := b.sem(b.client(semaphore.Config{}), "gpu", 1)
	p := b.take(s, nil)
	waiter := b.spawn(lease)
	first := waiter.queue("gpu", 1, 1)
	w := b.queue(s, nil, 2)
	last := b.queue(s, nil, 3)
	waiter.stop()
	require.NoError(t, p.Release(b.within(patience)))
	p = w.got(b) // the stopped one was granted, and has lost it
	waiter.signal(syscall.SIGCONT)
	b.await("the stopped one stands in line again", func() bool { return b.look("gpu").waiting() == 2 })
	require.NoError(t, p.Release(b.within(patience)))
	a := waiter.hear(first)
	require.Empty(t, a.Err)
	require.Greater(t, a.Fence, p.Fence())
	require.False(t, last.over(), "who came last is in before who was stopped")
	require.Empty(t, waiter.ask(order{Do: "release", Name: "gpu"}).Err)
	require.NoError(t, last.got(b).Release(b.within(patience)))
	b.idle("gpu")
}

// A waiter that was stopped and granted meanwhile must not believe a push that is
// older than its lease.
func TestAStoppedWaiterDoesNotBelieveAnOldPush(t *testing.T) {
	const lease = safe
	b := shared(t)
	s := b.sem(b.client(semaphore.Config{}), "gpu", 1)
	p := b.take(s, nil)
	waiter := b.spawn(lease)
	granted := waiter.queue("gpu", 1, 1)
	waiter.stop()
	require.NoError(t, p.Release(b.within(patience))) // the push waits in the child's socket
	p = b.take(s, nil)
	waiter.signal(syscall.SIGCONT)
	b.await("the stopped one stands in line again", func() bool { return b.look("gpu").waiting() == 1 })
	require.Empty(t, granted, "two hold")
	require.NoError(t, p.Err())
	require.NoError(t, p.Release(b.within(patience)))
	a := waiter.hear(granted)
	require.Empty(t, a.Err)
	require.Greater(t, a.Fence, p.Fence())
}
