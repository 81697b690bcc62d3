package qlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestACrashedWaiterAtTheHeadCostsAtMostItsOwnLease(t *testing.T) {
	for name, test := range map[string]struct {
		dead     qlock.Config
		released time.Duration // when the holder releases
		at       time.Duration // when the next is granted, at the earliest
	}{
		// The lock is handed to the one that died, and stays with it until its lease ends.
		"just before the release":           {released: time.Second, at: lease},
		"with a shorter lease":              {dead: qlock.Config{Lease: 900 * ms}, released: 100 * ms, at: 900 * ms},
		"long before":                       {released: 10 * time.Second, at: 10 * time.Second},
		"with a longer lease, for so long":  {dead: qlock.Config{Lease: 30 * time.Second}, released: 10 * time.Second, at: 30 * time.Second},
		"with a longer lease, and released": {dead: qlock.Config{Lease: 30 * time.Second}, released: 31 * time.Second, at: 31 * time.Second},
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

func TestACrashedHoldersLockIsGrantedWhenItsLeaseEnds(t *testing.T) {
	for name, test := range map[string]struct {
		holder, waiter qlock.Config
		opts           qlock.LockOptions
		alive          time.Duration // how long the holder lives
	}{
		"at once":                            {},
		"after some renewals":                {alive: 13 * time.Second},
		"with a short lease":                 {opts: qlock.LockOptions{Lease: 200 * ms}, alive: 5 * time.Second},
		"with a long lease":                  {opts: qlock.LockOptions{Lease: 20 * time.Second}, alive: 15 * time.Second},
		"with a fixed lease":                 {opts: qlock.LockOptions{Lease: 20 * time.Second, NoRenew: true}, alive: 5 * time.Second},
		"of a client with a longer lease":    {holder: qlock.Config{Lease: 20 * time.Second}, alive: 5 * time.Second},
		"and the waiter's heartbeats rarely": {waiter: qlock.Config{Lease: time.Hour}, alive: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.node(test.holder), w.node(test.waiter)
				l := a.take(&test.opts)
				q := b.queue(nil)
				w.Advance(test.alive)
				a.Die()
				left, ok := w.LeftOf(l.ID())
				require.True(t, ok)
				next := q.GrantedBy(w.Now() + left)
				require.Greater(t, next.Fence(), l.Fence())
				require.Error(t, l.Err(), "it had heard before")
				release(t, next)
			})
		})
	}
}

func TestTheNextIsGrantedThoughTheHolderAndTheFirstInLineCrashed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, c := w.node(), w.node(), w.node()
		a.take(nil)
		b.queue(nil)
		next := c.queue(nil)
		a.Die()
		b.Die()
		next.GrantedBy(lease)
	})
}

func TestAfterAFlushTheLineStandsAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		nodes := []*node{w.node(), w.node(), w.node()}
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

func TestAfterAFlushANewClaimStandsBehindTheOldOnes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		a.take(nil)
		first, second := a.queue(nil), a.queue(nil)
		w.Advance(10 * ms)
		w.Do("FLUSHALL")
		lucky := b.queue(nil).Granted(10 * ms) // in that moment only
		late := b.queue(nil)
		w.Until(3 * time.Second)
		w.grantedIn(lucky, first, second, late)
	})
}
