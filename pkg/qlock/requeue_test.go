package qlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestAClaimGoesToTheEndOfTheLineOnceEachPeriod(t *testing.T) {
	for _, access := range []qlock.Access{qlock.Queued, qlock.Random} {
		t.Run(access.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.node(), w.node()
				held := a.take(nil)
				moves := b.queue(&qlock.LockOptions{RequeueEvery: 10 * time.Second, Access: access})
				id := w.line(a)[0]
				second, third := a.queue(nil), a.queue(nil)
				others := w.line(a)[1:]
				w.Until(10*time.Second - ms)
				require.Equal(t, 0, slices.Index(w.line(a), id))
				require.Empty(t, b.Told(observe.Requeued))
				w.Until(10 * time.Second)
				require.Equal(t, append(slices.Clone(others), id), w.line(a))
				require.Equal(t, 1, b.Count("lock_requeue"))
				w.Until(20*time.Second - ms)
				require.Equal(t, 1, b.Count("lock_requeue"), "once each period")
				fourth := a.queue(nil)
				require.Equal(t, 2, slices.Index(w.line(a), id))
				w.Until(20 * time.Second)
				require.Equal(t, 3, slices.Index(w.line(a), id))
				events := b.Told(observe.Requeued)
				require.Len(t, events, 2)
				for i, e := range events {
					require.Equal(t, id, e.Claim)
					require.Equal(t, door, e.Name)
					require.Equal(t, 2+i, e.Ahead)
					require.Equal(t, time.Duration(i+1)*10*time.Second, e.Waited)
				}
				w.Until(29 * time.Second)
				fence := held.Fence()
				for _, next := range []*wait{second, third, fourth, moves} {
					release(t, held)
					held = next.Granted(29 * time.Second)
					require.Greater(t, held.Fence(), fence)
					fence = held.Fence()
				}
				w.Until(time.Minute)
				require.Equal(t, 2, b.Count("lock_requeue"), "not once it is granted")
				require.NoError(t, held.Err())
				release(t, held)
				w.RequireIdle()
			})
		})
	}
}

func TestAClaimGoesToTheEndOfItsPriority(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(nil)
		moves := b.queue(&qlock.LockOptions{RequeueEvery: 10 * time.Second, Priority: 5})
		high := a.queue(&qlock.LockOptions{Priority: 5})
		low := a.queue(nil)
		lifo := a.queue(&qlock.LockOptions{Access: qlock.LIFO, Priority: 5})
		w.Until(15 * time.Second)
		w.grantedIn(held, high, moves, lifo, low)
	})
}

func TestAClaimThatWaitsAloneKeepsItsTurn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(nil)
		q := b.queue(&qlock.LockOptions{RequeueEvery: 20 * ms})
		w.Until(time.Second + 10*ms)
		require.Equal(t, 50, b.Count("lock_requeue"))
		require.Len(t, w.line(a), 1)
		release(t, held)
		release(t, q.Granted(time.Second+10*ms))
		w.RequireIdle()
	})
}

func TestAClaimThatIsNotTheFirstGoesToTheEndToo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(nil)
		first := a.queue(nil)
		moves := b.queue(&qlock.LockOptions{RequeueEvery: 10 * time.Second})
		last := a.queue(nil)
		w.Until(15 * time.Second)
		w.grantedIn(held, first, last, moves)
	})
}

// The script alone: a call moves the claim only from the ticket that it names.
func TestARequeueIsReplayedByTheTicketItNames(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.ask(claim{node: "h", id: "h.1", lease: time.Minute, wait: time.Minute})
		queued := w.ask(claim{node: "q", id: "q.1", wait: time.Minute})
		w.ask(claim{node: "q", id: "q.2", wait: time.Minute})
		w.Advance(time.Second)
		requeue := func(id, node, ticket string) (status string, newTicket int64, place string) {
			r := w.Call("lock_requeue", "60000", "berth:wake:", door, node, id, ticket, line.Lane(0))
			if r.Len() < 3 {
				return r.Status(), 0, ""
			}
			return r.Status(), r.Int(1), r.Str(7)
		}
		status, ticket, place := requeue("q.1", "q", queued.Str(1))
		require.Equal(t, "queued", status)
		require.Equal(t, w.Began.Add(time.Second).UnixMilli(), ticket)
		require.Equal(t, fmt.Sprintf("%013d", ticket), w.place("q.1"))
		require.Equal(t, "254 "+w.place("q.1"), place)
		for range 3 {
			again, sameTicket, samePlace := requeue("q.1", "q", queued.Str(1))
			require.Equal(t, []any{"queued", ticket, place}, []any{again, sameTicket, samePlace})
		}
		before := w.Dump()
		for _, test := range [][2]string{{"q.1", "another"}, {"q.9", "q"}, {"h.1", "h"}} {
			status, _, _ := requeue(test[0], test[1], queued.Str(1))
			require.Equal(t, "not_waiting", status, test)
		}
		require.Equal(t, before, w.Dump())
		w.Advance(time.Minute)
		before = w.Dump()
		status, _, _ = requeue("q.1", "q", queued.Str(1))
		require.Equal(t, "not_waiting", status, "what has expired is not revived")
		require.Equal(t, before, w.Dump())
	})
}

// The place that a claim has since it was requeued is the one that it has again
// after a flush.
func TestAfterAFlushARequeuedClaimStandsWhereItStood(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, c := w.node(), w.node(), w.node()
		a.take(nil)
		moves := b.queue(&qlock.LockOptions{RequeueEvery: 10 * time.Second})
		id := w.line(a)[0]
		early := a.queue(nil)
		w.Until(11 * time.Second)
		late := a.queue(nil)
		before := w.line(a)
		require.Equal(t, id, before[1])
		w.Do("FLUSHALL")
		held := c.take(&qlock.LockOptions{NoRenew: true, Lease: time.Hour})
		w.Until(14 * time.Second)
		require.Equal(t, before, w.line(a))
		w.grantedIn(held, early, moves, late)
	})
}

// The holder has died, and nobody sweeps: the requeue itself finds the lock free,
// and hands it to whoever is first by then.
func TestARequeueHandsOnWhatHasExpired(t *testing.T) {
	for name, test := range map[string]struct {
		others int
		want   string
	}{"to the one that waits behind": {1, "q.2"}, "to the claim itself where nobody does": {0, "q.1"}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.ask(claim{node: "h", id: "h.1", lease: time.Second})
				queued := w.ask(claim{node: "q", id: "q.1", wait: time.Minute})
				for range test.others {
					w.ask(claim{node: "q", id: "q.2", wait: time.Minute})
				}
				w.Advance(2 * time.Second)
				r := w.Call("lock_requeue", "60000", "berth:wake:", door, "q", "q.1", queued.Str(1), line.Lane(0))
				require.Equal(t, "queued", r.Status())
				info, err := w.node().look(context.Background(), door)
				require.NoError(t, err)
				require.Equal(t, test.want, info.entries[0].ID)
				require.Equal(t, test.others, info.waiting)
			})
		})
	}
}
