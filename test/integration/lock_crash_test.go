package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/qlock"
)

// The scenarios are those of semaphores; this one shows that locks have them too.
func TestACrashCostsALockAtMostALease(t *testing.T) {
	b := sharedLocks(t)
	client := b.locker(qlock.Config{Lease: crashLease})
	c := b.crash(door, client.Node())
	holder, waiter := b.spawn(crashLease), b.spawn(crashLease)
	holder.acquire(door, 1)
	waiter.queue(door, 1, 1)
	w := b.lockQueue(client, nil, 2)
	c.kill(holder, waiter)
	l := w.got(b)
	c.inTime(l.ID(), 0)
	b.unlock(l)
	b.idle(door)
}

// Processes that lock the same names in opposite orders, some of which are killed
// while they do: nobody ever waits for ever, and nothing is left.
func TestLocksOfSeveralNamesNeverDeadlock(t *testing.T) {
	const lease, rounds = 2 * time.Second, 20
	b := sharedLocks(t)
	orders := [][]string{{"a", "b"}, {"b", "a"}, {"c", "a", "b"}, {"b", "c", "a"}}
	var crew, doomed []*child
	var ends []<-chan answer
	for _, names := range orders {
		crew, doomed = append(crew, b.spawn(lease)), append(doomed, b.spawn(lease))
		doomed[len(doomed)-1].send(order{Do: "pairs", Names: names, Count: 1 << 20})
		ends = append(ends, crew[len(crew)-1].send(order{Do: "pairs", Names: names, Count: rounds}))
	}
	for _, c := range doomed {
		b.pass(200 * time.Millisecond)
		c.kill()
	}
	for i, c := range crew {
		require.Empty(t, c.hear(ends[i]).Err, "%q", orders[i])
	}
	for _, name := range []string{"a", "b", "c"} {
		b.await(fmt.Sprint("nobody holds ", name), func() bool {
			v := b.look(name)
			for _, at := range v.holds {
				if at > v.now {
					return false
				}
			}
			return len(v.alive) == 0 || len(v.holds) == 0
		})
	}
}
