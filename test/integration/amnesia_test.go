package integration

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// queueOf is a line of waiters of several nodes behind holders of another one.
type queueOf struct {
	*world
	lease    time.Duration
	capacity int
	holders  []*semaphore.Permit
	waits    []*taking
	order    []string // the claims in line before anything happened
	tickets  map[string]int64
	fence    int64 // the highest before anything happened
}

func (w *world) queueOf(nodes, many, capacity int, lease time.Duration) *queueOf {
	w.Helper()
	q := &queueOf{world: w, lease: lease, capacity: capacity, tickets: map[string]int64{}}
	cfg := node.Config{Lease: lease}
	holder := w.sem(w.node(cfg), "gpu", capacity)
	for range capacity {
		p := w.take(holder, nil)
		q.holders, q.fence = append(q.holders, p), p.Fence()
	}
	for range nodes {
		s := w.sem(w.node(cfg), "gpu", capacity)
		for range many / nodes {
			q.waits = append(q.waits, w.begin(s, nil))
		}
	}
	w.Await("all wait", func() bool { return w.waiting("gpu") == len(q.waits) })
	v := w.whole("gpu")
	q.order = v.inLine()
	for claim, r := range v.records {
		q.tickets[claim] = r.Ticket
	}
	return q
}

// standsAgain waits until all who do not hold stand in line, and checks that the
// line is the old one.
func (q *queueOf) standsAgain() {
	q.Helper()
	var v view
	start := time.Now()
	q.Await("all stand in line again", func() bool {
		v = q.look("gpu")
		return len(v.holds)+len(v.alive) == len(q.waits) && len(v.holds) == q.capacity
	})
	q.Logf("%d waiters stand again after %v, with a lease of %v", len(q.waits), time.Since(start).Round(time.Millisecond), q.lease)
	v = q.whole("gpu")
	var still []string
	for _, claim := range q.order {
		if _, waits := v.alive[claim]; waits {
			still = append(still, claim)
		}
	}
	require.Equal(q, still, v.inLine(), "the line has another order")
	for _, claim := range still {
		if v.records[claim].Ticket != q.tickets[claim] {
			require.Fail(q, "a waiter has another ticket")
		}
	}
	for claim := range v.holds {
		require.Contains(q, q.order, claim, "somebody else holds")
		require.Greater(q, v.records[claim].Fence, q.fence, "fences fell back")
	}
	require.GreaterOrEqual(q, v.state["ticket"], q.tickets[still[len(still)-1]], "a newcomer could get an old ticket")
}

// drain lets one after the other in, and checks that they come in the old order,
// save for as many as the capacity, who may have been first after the loss.
func (q *queueOf) drain() {
	q.Helper()
	entries := q.drainPermits(q.waits)
	for _, p := range q.holders {
		require.ErrorIs(q, p.Release(q.Within(patience)), berth.ErrNotHeld)
	}
	slices.SortFunc(entries, func(a, b *semaphore.Permit) int { return cmp.Compare(a.Fence(), b.Fence()) })
	place := map[string]int{}
	for i, claim := range q.order {
		place[claim] = i
	}
	for i := q.capacity + 1; i < len(entries); i++ {
		if place[entries[i].ID()] < place[entries[i-1].ID()] {
			require.Fail(q, "out of turn")
		}
	}
	q.tombstones("gpu") // of restores that were slow to be answered
}

// drainPermits lets one after the other in.
func (w *world) drainPermits(waits []*taking) (served []*semaphore.Permit) {
	w.Helper()
	var all sync.WaitGroup
	for _, q := range waits {
		all.Go(func() {
			<-q.Done
			if q.Err == nil {
				q.Err = q.Got.Release(w.Within(patience))
			}
		})
	}
	all.Wait()
	for _, q := range waits {
		require.NoError(w, q.Err)
		served = append(served, q.Got)
	}
	return served
}

// lost waits until the holders know, and checks what they are told.
func (q *queueOf) lost() {
	q.Helper()
	for _, p := range q.holders {
		q.Signalled("the holder to hear", p.Done())
		require.ErrorIs(q, p.Err(), berth.ErrLost)
	}
}

type amnesia struct {
	name   string
	strike func(q *queueOf)
}

// amnesias are ways in which a server forgets those who wait.
var amnesias = []amnesia{
	{"a flush", func(q *queueOf) { q.do("FLUSHALL") }},
	{"a stand-still longer than the lease", func(q *queueOf) {
		q.server.Stop(q.T)
		q.lost()
		q.pass(q.lease)
		q.server.Cont(q.T)
	}},
	{"a restart without data", func(q *queueOf) { q.server.Restart(q.T) }},
	{"a long outage", func(q *queueOf) {
		q.server.Kill(q.T)
		q.lost()
		q.pass(q.lease / 2)
		q.server.Restart(q.T)
	}},
}

func TestTheLineSurvives(t *testing.T) {
	t.Parallel()
	for _, line := range []struct {
		name                  string
		nodes, many, capacity int
		amnesias              []amnesia
	}{{"a few of three nodes", 3, 30, 2, amnesias}, {"several batches of two nodes", 2, 600, 5, amnesias[:1]}} {
		for _, amnesia := range line.amnesias {
			t.Run(amnesia.name+", "+line.name, func(t *testing.T) {
				q := private(t).queueOf(line.nodes, line.many, line.capacity, safe)
				amnesia.strike(q)
				q.standsAgain()
				q.lost()
				q.drain()
			})
		}
	}
}

// pass lets time go by: what is under test is what happens in it.
func (w *world) pass(d time.Duration) {
	w.Helper()
	<-time.After(d)
}
