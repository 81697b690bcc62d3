package semaphore_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// heard is how long a process takes to hear of a notice, at the most.
const heard = 5 * time.Second

// drains has the processes of a label drain, or not any more.
func (w *world) drains(label, word string) {
	w.T.Helper()
	w.Notice("l:"+label, 0, word)
}

// refusesDraining has every call that could get something be refused, with nothing sent.
func (n *proc) refusesDraining(token berth.Token) {
	t, ctx := n.w.T, context.Background()
	t.Helper()
	n.Reset()
	for _, acquire := range []func() error{
		func() error { _, err := n.gpu(9).Acquire(ctx, nil); return err },
		func() error { _, err := n.gpu(9).TryAcquire(ctx, nil); return err },
		func() error { return n.gpu(9).Do(ctx, nil, func(context.Context) error { return nil }) },
		func() error { _, err := n.Resume(ctx, token); return err },
	} {
		err := acquire()
		require.ErrorIs(t, err, berth.ErrDraining)
		require.NotErrorIs(t, err, berth.ErrBusy)
	}
	require.Empty(t, n.Scripts())
}

func TestAProcessThatDrainsGetsNothingNew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n, other := w.node(node.Config{Label: "worker/7"}), w.node(node.Config{Label: "web/1"})
		p, detached := n.take(2, nil), n.take(2, &semaphore.AcquireOptions{Lease: time.Hour, NoRenew: true})
		token, err := detached.Detach(ctx)
		require.NoError(t, err)
		waits, behind := n.queue(2, nil), other.queue(2, nil)
		w.Advance(time.Second)
		w.drains("worker*", "drain")
		w.Advance(heard)
		require.True(t, n.Draining())
		require.False(t, other.Draining())
		require.ErrorIs(t, waits.Err, berth.ErrDraining)
		n.refusesDraining(token)
		require.Equal(t, "drain l:worker*", n.Told(observe.Draining)[0].Detail)
		require.Equal(t, 1, w.stats().Waiting, "its wait has left the line")

		require.NoError(t, p.Err(), "what it holds goes on")
		require.NoError(t, p.Release(ctx))
		synctest.Wait()
		require.False(t, behind.Pending())

		w.drains("worker*", "stop")
		w.Advance(heard)
		require.False(t, n.Draining())
		q, err := n.Resume(ctx, token)
		require.NoError(t, err)
		require.NoError(t, q.Release(ctx))
		require.Equal(t, "stop l:worker*", n.Told(observe.Draining)[1].Detail)
	})
}

func TestWhoStartsLaterIsNotDrained(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		idle := w.node(node.Config{Label: "w"})
		w.Advance(time.Second)
		w.drains("w", "drain")
		w.Advance(time.Minute)
		w.node(node.Config{Label: "w"}).take(1, nil)
		_, err := idle.gpu(1).TryAcquire(context.Background(), nil)
		require.ErrorIs(t, err, berth.ErrDraining, "its first claim, but it was there before")
	})
}

// The walk of a drain ends waits by force. A process that has not heard of the drain by then asks.
func TestAWaitThatWasEndedForADrainSaysSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{Label: "w"})
		w.node().take(1, nil)
		q := n.queue(1, nil)
		w.Advance(time.Second)
		w.drains("w", "drain")
		ended, err := w.node().Operator().Release(context.Background(), berth.Target{Node: n.ID()})
		require.NoError(t, err)
		require.Equal(t, 1, ended)
		synctest.Wait()
		q.Refused(w.Now(), berth.ReasonDraining)
	})
}

func TestAnAcquireUnderWayEndsWithTheDrain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{Label: "w"})
		n.connect()
		w.Advance(time.Second)
		n.OnCommand(func(c link.Command) link.Fate {
			if asks(c, "acquire") {
				return link.Refuse(readonly)
			}
			return link.Pass
		})
		q := n.queue(1, nil)
		w.drains("w", "drain")
		w.Advance(heard + time.Second)
		require.False(t, q.Pending())
		require.ErrorIs(t, q.Err, berth.ErrDraining)
		require.Zero(t, w.stats().Held)
	})
}

func TestTheFirstClaimOfANodeReadsTheNotice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(200, nil)
		require.Equal(t, 1, n.Counts()["HLEN"])
		for range 100 {
			n.take(200, nil)
		}
		require.Equal(t, 1, n.Counts()["HLEN"], "once in its life; the others are read in the background")
	})
}

// Of a notice that somebody has filled a node reads what is about itself, and no more than that again.
func TestOfANoticeWithTooManyFieldsAPatternIsNotHeard(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const key = "berth:notice:{all}:state"
		told := func(field string) {
			w.Do("HSET", key, field, strconv.FormatInt(time.Now().UnixMilli()+1, 10)+" call 0 drain")
		}
		n := w.node()
		n.take(9, nil)
		told("l:nobody*")
		w.Advance(6 * time.Second)
		n.Fresh()
		w.Advance(5 * time.Second)
		require.LessOrEqual(t, n.Counts()["HSCAN"], 2, "one trip a read")
		require.Equal(t, n.Counts()["HLEN"], n.Counts()["HSCAN"])
		for i := range 10_000 {
			w.Do("HSET", key, "x:"+strconv.Itoa(i), "forged")
		}
		told("l:*")
		w.Advance(6 * time.Second)
		n.Reset()
		w.Advance(time.Minute)
		require.False(t, n.Draining())
		require.NotZero(t, n.Counts()["HLEN"])
		require.Zero(t, n.Counts()["HSCAN"])
		require.Zero(t, n.Counts()["HGETALL"])
		failed := n.Told(observe.NoticeFailed)
		require.Len(t, failed, 1)
		require.ErrorContains(t, failed[0].Err, "10002 fields")
		report, err := n.Check(context.Background())
		require.NoError(t, err)
		require.Len(t, report.Warnings, 3, "the embedded server does not know INFO")
		require.Contains(t, report.Warnings[2], "berth: what operators say to all has 10002 fields")

		told("n:" + n.ID())
		w.Advance(6 * time.Second)
		require.True(t, n.Draining())
		w.Do("HDEL", key, "x:1", "x:2", "n:"+n.ID())
		w.Advance(6 * time.Second)
		require.NotZero(t, n.Counts()["HSCAN"], "it is read whole again")
	})
}

// A text that Berth cannot have written crosses the wire once a minute, on the connection of the heartbeats.
func TestOfANoticeWithAHugeTextThatIsNotReadAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const key = "berth:notice:{all}:state"
		n := w.node()
		n.take(9, nil)
		huge := strings.Repeat("x", 100<<10)
		w.Do("HSET", key, "l:nobody*", huge)
		w.Advance(6 * time.Second)
		n.Reset()
		w.Advance(50 * time.Second)
		require.Zero(t, n.Counts()["HSCAN"])
		require.NotZero(t, n.Counts()["HMGET"])
		failed := n.Told(observe.NoticeFailed)
		require.Len(t, failed, 1)
		require.ErrorIs(t, failed[0].Err, state.ErrDamaged)

		node := "n:" + n.ID()
		w.Do("HSET", key, node, huge)
		w.Do("HDEL", key, "l:nobody*")
		asked := 0
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "HMGET" && slices.Contains(c.Args, node) {
				asked++
			}
			return link.Pass
		})
		w.Advance(50 * time.Second)
		n.OnCommand(nil)
		require.Equal(t, 1, asked)
		w.Do("HSET", key, node, strconv.FormatInt(time.Now().UnixMilli()+1, 10)+" call 0 drain")
		w.Advance(20 * time.Second)
		require.True(t, n.Draining(), "it is read again")
	})
}

// No acquire waits for a notice that cannot be read; the observer is told.
func TestANoticeThatCannotBeReadStopsNoAcquire(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Do("SET", "berth:notice:{all}:state", "somebody else's")
		n := w.node()
		n.take(9, nil)
		n.take(9, nil)
		require.Len(t, n.Told(observe.NoticeFailed), 1)
	})
}
