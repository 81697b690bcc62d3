package integration

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/semaphore"
)

// A process that is stopped for longer than its lease knows nothing of it until
// it runs again. Its next call, whichever that is, must tell.
func TestAStoppedHolderLearnsOfItsLoss(t *testing.T) {
	const lease = 500 * time.Millisecond
	for _, call := range []string{"err", "context", "renew", "release"} {
		t.Run("from "+call, func(t *testing.T) {
			b := shared(t)
			s := b.sem(b.client(semaphore.Config{Lease: lease}), "gpu", 1)
			holder := b.spawn(lease)
			old := holder.acquire("gpu", 1)
			w := b.queue(s, nil, 1)
			holder.stop()
			p := w.got(b)
			require.Greater(t, p.Fence(), old.Fence, "fences do not rise")

			// The order waits in the pipe, so that it is served as soon as the
			// child runs again, if possible before any timer of its.
			first := holder.send(order{Do: call, Name: "gpu"})
			holder.signal(syscall.SIGCONT)
			a := holder.hear(first)
			t.Logf("%s after the pause: %s", call, a.Err)
			require.Contains(t, a.Is, "lost")
			require.Contains(t, a.Is, "not held")
			for _, next := range []string{"context", "err", "renew", "release"} {
				require.Contains(t, holder.ask(order{Do: next, Name: "gpu"}).Is, "not held", next)
			}
			require.NoError(t, p.Err(), "the stopped holder has touched what another holds")
			claim, _ := b.holder("gpu")
			require.Equal(t, p.ID(), claim)
			require.NoError(t, p.Release(b.within(patience)))
			b.idle("gpu")
		})
	}
}

// A waiter that is stopped for longer than its wait lease, and whose turn comes
// and goes meanwhile, stands where it stood when it runs again: before those who
// came later.
func TestAStoppedWaiterKeepsItsPlace(t *testing.T) {
	const lease = 2 * time.Second
	b := shared(t)
	s := b.sem(b.client(semaphore.Config{Lease: lease}), "gpu", 1)
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
	const lease = 500 * time.Millisecond
	b := shared(t)
	s := b.sem(b.client(semaphore.Config{Lease: lease}), "gpu", 1)
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
