package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
)

// The scenarios are those of semaphores; this one shows that locks have them too.
func TestACrashCostsALockAtMostALease(t *testing.T) {
	w := sharedLocks(t)
	client := w.locker(node.Config{Lease: crashLease})
	c := w.crash(door, client.ID())
	holder, waiter := w.spawn(crashLease), w.spawn(crashLease)
	holder.acquire(door, 1)
	waiter.queue(door, 1, 1)
	q := w.lockQueue(client, nil, 2)
	c.kill(holder, waiter)
	l := q.Wait(w)
	c.inTime(l.ID(), 0)
	w.unlock(l)
	w.idle(door)
}

// Processes that lock the same names in opposite orders, some of which are killed
// while they do: nobody ever waits for ever, and nothing is left.
func TestLocksOfSeveralNamesNeverDeadlock(t *testing.T) {
	const lease, rounds = 2 * time.Second, 20
	w := sharedLocks(t)
	w.Relies(lease)
	orders := [][]string{{"a", "b"}, {"b", "a"}, {"c", "a", "b"}, {"b", "c", "a"}}
	var crew, doomed []*child
	var ends []<-chan answer
	for _, names := range orders {
		crew, doomed = append(crew, w.spawn(lease)), append(doomed, w.spawn(lease))
		doomed[len(doomed)-1].send(order{Do: "pairs", Names: names, Count: 1 << 20})
		ends = append(ends, crew[len(crew)-1].send(order{Do: "pairs", Names: names, Count: rounds}))
	}
	for _, c := range doomed {
		w.pass(200 * time.Millisecond)
		c.kill()
	}
	for i, c := range crew {
		require.Empty(t, c.hear(ends[i]).Err, "%q", orders[i])
	}
	for _, name := range []string{"a", "b", "c"} {
		w.Await(fmt.Sprint("nobody holds ", name), func() bool {
			v := w.look(name)
			for _, at := range v.holds {
				if at > v.now {
					return false
				}
			}
			return len(v.alive) == 0 || len(v.holds) == 0
		})
	}
}
