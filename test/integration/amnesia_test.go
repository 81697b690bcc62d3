package integration

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// queueOf is a line of waiters of several nodes behind the holder of another one.
type queueOf struct {
	*world
	crew    []*user
	holder  berth.Hold
	waits   []*holding
	order   []string // the claims in line before anything happened
	tickets map[string]int64
	asked   atomic.Int64 // how often somebody has asked for the resources of a pool
}

func (w *world) queueOf(nodes, many int) *queueOf {
	w.Helper()
	q := &queueOf{world: w, tickets: map[string]int64{}}
	from := poolConfig{RefreshEvery: time.Hour, Source: func(context.Context) ([]string, error) {
		q.asked.Add(1)
		return []string{"r0"}, nil
	}}
	q.holder = w.hold(w.useFrom(w.server.Client(w.T), node.Config{Lease: safe}, from), terms{})
	for range nodes {
		q.crew = append(q.crew, w.useFrom(w.server.Client(w.T), node.Config{Lease: safe}, from))
	}
	for i := range many {
		q.waits = append(q.waits, w.holdLater(w.Within(2*patience), q.crew[i%nodes], terms{Priority: i / nodes % 2}))
	}
	w.Await("all wait", func() bool { return w.waiting(w.name()) == many })
	v := w.whole(w.name())
	q.order = v.inLine()
	for claim, r := range v.records {
		q.tickets[claim] = r.Ticket
	}
	return q
}

// lost waits until the holder knows, and checks what it is told.
func (q *queueOf) lost() {
	q.Helper()
	q.ended(q.holder, berth.ErrLost)
}

// standsAgain waits until the line is the old one, but for whoever was the first to ask after the
// loss: it may have been granted before the others stood again.
func (q *queueOf) standsAgain() {
	q.Helper()
	start := time.Now()
	_, first := firstOf(q.Patient, q.waits)
	q.order = slices.DeleteFunc(q.order, func(claim string) bool { return claim == first.ID() })
	q.Await("all others stand in line again", func() bool { return q.look(q.name()).waiting() == len(q.order) })
	q.Logf("%d waiters stand again after %v, with a lease of %v", len(q.order), time.Since(start).Round(time.Millisecond), safe)
	v := q.whole(q.name())
	require.Equal(q, q.order, v.inLine(), "the line has another order")
	for _, claim := range q.order {
		require.Equal(q, q.tickets[claim], v.records[claim].Ticket, "a waiter has another ticket")
	}
	last := slices.Max(slices.Collect(maps.Values(q.tickets)))
	require.GreaterOrEqual(q, v.state["ticket"], last, "a newcomer could get an old ticket")
}

// drain lets one after the other in, and checks that they come in the old order.
func (q *queueOf) drain() {
	q.Helper()
	served, fence := drain(q.world, q.waits), q.holder.Fence()
	for i, h := range served {
		require.Greater(q, h.Fence(), fence, "fences fell back")
		fence = h.Fence()
		if i > 0 {
			require.Equal(q, q.order[i-1], h.ID(), "the %dth is out of turn", i)
		}
	}
	require.ErrorIs(q, q.holder.Release(q.Within(patience)), berth.ErrNotHeld)
	q.nothingLeft(q.crew[0]) // but tombstones, of restores that were slow to be answered
}

// amnesias are ways in which a server forgets those who wait, and all else or only them.
var amnesias = map[string]struct {
	all    bool
	strike func(q *queueOf)
}{
	"a flush":                {true, func(q *queueOf) { q.do("FLUSHALL") }},
	"a restart without data": {true, func(q *queueOf) { q.server.Restart(q.T) }},
	"a stand-still longer than the lease": {false, func(q *queueOf) {
		q.server.Stop(q.T)
		q.lost()
		q.pass(safe)
		q.server.Cont(q.T)
	}},
	"a long outage": {true, func(q *queueOf) {
		q.server.Kill(q.T)
		q.lost()
		q.pass(safe / 2)
		q.server.Restart(q.T)
	}},
}

func TestTheLineSurvives(t *testing.T) {
	t.Parallel()
	const nodes = 3
	for what, amnesia := range amnesias {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			overKinds(t, alone, func(w *world) {
				q := w.queueOf(nodes, 30)
				before, begun := q.asked.Load(), time.Now()
				require.LessOrEqual(w, before, int64(1), "several nodes have filled one pool")
				amnesia.strike(q)
				q.lost()
				q.standsAgain()
				// A pool is found empty by a heartbeat, long before the next refresh, and a node asks no more
				// often than once a second.
				asked, took := q.asked.Load()-before, time.Since(begun)
				require.Equal(w, amnesia.all && w.kind == keyspace.Pool, asked > 0)
				require.LessOrEqual(w, asked, 1+nodes*(1+int64(took/time.Second)), "the source is asked all the time")
				q.drain()
			})
		})
	}
	t.Run("several batches of two nodes", func(t *testing.T) {
		q := private(t).queueOf(2, 600)
		q.do("FLUSHALL")
		q.lost()
		q.standsAgain()
		q.drain()
	})
}
