package qlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestACrashedWaiterAtTheHeadCostsAtMostItsOwnLease(t *testing.T) {
	for name, test := range map[string]struct {
		dead     node.Config
		released time.Duration // when the holder releases
		at       time.Duration // when the next is granted, at the earliest
	}{
		// The lock is handed to the one that died, and stays with it until its lease ends.
		"just before the release":           {released: time.Second, at: lease},
		"with a shorter lease":              {dead: node.Config{Lease: 900 * ms}, released: 100 * ms, at: 900 * ms},
		"long before":                       {released: 10 * time.Second, at: 10 * time.Second},
		"with a longer lease, for so long":  {dead: node.Config{Lease: 30 * time.Second}, released: 10 * time.Second, at: 30 * time.Second},
		"with a longer lease, and released": {dead: node.Config{Lease: 30 * time.Second}, released: 31 * time.Second, at: 31 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b, c := w.node(), w.node(test.dead), w.node()
				held := a.take(nil)
				b.queue(nil)
				next := c.queue(nil)
				b.Die()
				w.Until(test.released)
				testkit.RequirePending(w.T, next)
				release(t, held)
				l := next.GrantedBy(test.at)
				b.Shut()
				release(t, l)
				w.RequireIdle()
			})
		})
	}
}

// Nobody has swept when the lock is released: the release itself passes who died.
func TestAReleasePassesWaitersThatHaveDied(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.ask(claim{node: "h", id: "h.1", lease: time.Minute, wait: time.Minute})
		w.ask(claim{node: "q", id: "q.1", wait: time.Second})
		w.ask(claim{node: "q", id: "q.2", wait: 2*time.Second + ms})
		w.ask(claim{node: "q", id: "q.3", wait: time.Minute})
		w.Advance(2 * time.Second)
		require.Equal(t, []string{"q.2", "q.3"}, w.serve("h.1"))
	})
}

func TestAfterAFlushTheLineStandsAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := []*proc{w.node(), w.node(), w.node()}
		held := nodes[0].take(nil)
		waits := make(map[string]*wait)
		accesses := []qlock.Access{qlock.Queued, qlock.Random, qlock.LIFO, qlock.Queued}
		for i := range 12 {
			q := nodes[i%3].queue(&qlock.LockOptions{Priority: i % 2, Access: accesses[i%4]})
			for _, id := range w.line(nodes[0]) {
				if waits[id] == nil {
					waits[id] = q
				}
			}
			w.Advance(10 * ms)
		}
		before := w.line(nodes[0])
		require.Len(t, before, 12)
		ended := w.Watch(held)
		w.Until(5 * time.Second)
		w.Do("FLUSHALL")
		w.Advance(lease / 3)
		e := <-ended
		require.ErrorIs(t, e.Cause, berth.ErrLost)
		require.LessOrEqual(t, e.At, 5*time.Second+lease/3)

		// One of them found a free lock in that moment; the others stand as they stood.
		entries, after := w.held(nodes[0])
		require.Len(t, entries, 1)
		lucky := waits[entries[0]]
		require.NotNil(t, lucky)
		want := slices.DeleteFunc(slices.Clone(before), func(id string) bool { return id == entries[0] })
		require.Equal(t, want, after)
		<-lucky.Done
		l := lucky.Got
		for _, id := range want {
			release(t, l)
			l = waits[id].Granted(w.Now())
		}
		late := nodes[1].queue(nil)
		release(t, l)
		release(t, late.Granted(w.Now()))
		w.RequireIdle()
	})
}
