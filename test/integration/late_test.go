package integration

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/scripts/composed"
)

// late is a name in its fat form, a connection that loses and delays calls, and a process on one that is whole.
type late struct {
	*world
	wire  *link.Link
	redis rueidis.Client // over the wire
	other *user
}

func (w *world) late() *late {
	w.Helper()
	l := &late{world: w, wire: link.New(testkit.Script), other: w.use(node.Config{})}
	l.redis = w.over(l.wire)
	h := l.hold(l.other, terms{})
	ctx, leave := context.WithCancel(l.Within(patience))
	q := l.holdLater(ctx, l.other, terms{})
	l.awaitInLine(l.name(), 1, q.Over)
	leave()
	l.Signalled("the claim to leave", q.Done)
	l.Await("it has left the line", func() bool { return l.look(l.name()).waiting() == 0 })
	l.release(h)
	require.False(l, l.look(l.name()).thin)
	return l
}

// script is that of a verb.
func (l *late) script(verb string) string {
	return map[keyspace.Kind]string{keyspace.Sem: "semaphore_", keyspace.Lock: "lock_", keyspace.Pool: "pool_"}[l.kind] + verb
}

// next has the next calls of a script, which are counted from now on, meet these fates.
func (l *late) next(script string, fates ...link.Fate) {
	meets := make(chan link.Fate, len(fates))
	for _, f := range fates {
		meets <- f
	}
	close(meets) // then all pass
	l.wire.Reset()
	l.wire.OnCommand(func(c link.Command) link.Fate {
		if c.Name != script {
			return link.Pass
		}
		return <-meets
	})
}

// deliver gives the server what comes late.
func (l *late) deliver() {
	l.Helper()
	_, err := l.wire.DeliverLate()
	require.NoError(l, err)
}

// allLate are more than a test has attempts.
var allLate = slices.Repeat([]link.Fate{link.Late}, 1000)

// nobody checks that nobody holds or waits.
func (l *late) nobody() {
	l.Helper()
	v := l.whole(l.name())
	require.Empty(l, v.holds, "a ghost holds")
	require.Empty(l, v.alive, "a ghost waits")
}

// lateCalls are calls that nobody hears the answer of, or that come late: each does what it does once.
var lateCalls = map[string]func(l *late){
	"attempts of an acquire hold once": func(l *late) {
		acquire := l.script("acquire")
		u := l.useOn(l.redis, node.Config{})
		l.next(acquire, link.LoseReply, link.Late)
		h := l.hold(u, terms{})
		require.Equal(l, 3, l.wire.Count(acquire))
		v := l.whole(l.name())
		require.Len(l, v.holds, 1)
		require.EqualValues(l, 1, v.state["used"])
		require.Equal(l, v.records[h.ID()].Fence, h.Fence())
		l.release(h)
		l.deliver()
		l.nobody()
	},
	"an acquire that comes after its cancel takes nothing": func(l *late) {
		acquire := l.script("acquire")
		u := l.useOn(l.redis, node.Config{})
		l.next(acquire, allLate...) // also the attempts that follow, where the cancel takes its time
		ctx, cancel := context.WithCancel(l.Within(patience))
		q := l.holdLater(ctx, u, terms{})
		l.Await("the acquire is on its way", func() bool { return l.wire.Count(acquire) > 0 })
		cancel()
		q.Fails(l, context.Canceled)
		l.Await("the cancel has run", func() bool { return len(l.look(l.name()).stones) == 1 })
		l.deliver()
		l.nobody()
		require.Len(l, l.look(l.name()).stones, 1)
	},
	"a release that had run can be repeated":     func(l *late) { l.releasedAgain(link.LoseReply) },
	"a release that had not run can be repeated": func(l *late) { l.releasedAgain(link.Late) },
	"a restore that comes after the cancel brings nothing back": func(l *late) {
		restore := l.script("restore")
		u := l.useOn(l.redis, node.Config{Lease: safe})
		l.hold(l.other, terms{})
		ctx, cancel := context.WithCancel(l.Within(patience))
		q := l.holdLater(ctx, u, terms{})
		l.awaitInLine(l.name(), 1, q.Over)
		l.next(restore, allLate...)
		l.forget(l.name())
		l.Await("the restore is on its way", func() bool { return l.wire.Count(restore) > 0 })
		cancel()
		q.Fails(l, context.Canceled)
		require.NoError(l, u.Close(l.Within(patience))) // with what the cancel has begun
		l.deliver()
		l.nobody()
	},
	// A grant with a limit of its own is confirmed before the caller has it.
	"a confirmation counts once": func(l *late) {
		renew := l.script("renew")
		u := l.useOn(l.redis, node.Config{Lease: time.Hour}) // no heartbeat comes, but one for the subscription
		var h berth.Hold
		for range 2 {
			holds, q := l.hold(l.other, terms{}), l.holdQueue(u, terms{MaxHold: time.Minute}, 1)
			l.next(renew, link.LoseReply, link.Late, link.LoseReply)
			l.release(holds)
			if h = q.Wait(l.world); l.wire.Count(renew) > 0 {
				break
			}
			l.release(h) // the heartbeat for the subscription was on its way, and has confirmed it: there is none the second time
		}
		require.GreaterOrEqual(l, l.wire.Count(renew), 4)
		limit := l.look(l.name()).records[h.ID()].Limit
		l.deliver()
		require.Equal(l, limit, l.look(l.name()).records[h.ID()].Limit, "the maximum hold began anew")
		require.NoError(l, h.Err())
		l.release(h)
	},
}

// releasedAgain repeats a release that has returned an error, as it was not answered.
func (l *late) releasedAgain(f link.Fate) {
	l.Helper()
	u := l.useOn(l.redis, node.Config{Retry: berth.Retry{Attempts: 2}})
	h := l.hold(u, terms{})
	l.next(l.script("release"), f, f)
	require.Error(l, h.Release(l.Within(patience)))
	require.Error(l, h.Err(), "what was to be released is still believed in")
	l.release(h, h)
	l.deliver()
	l.nobody()
}

func TestLateAndUnheardCallsCountOnce(t *testing.T) {
	t.Parallel()
	for what, run := range lateCalls {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			overKinds(t, alone, func(w *world) { // its links know no password
				l := w.late()
				run(l)
				w.tombstones(w.name())
			})
		})
	}
}

// subscribed waits until a node has subscribed to its wake-ups.
func (w *world) subscribed(n *node.Node) {
	w.Helper()
	w.Await("the node has subscribed", func() bool {
		heard, err := w.do("PUBSUB", "NUMSUB", w.space.Wake(n.ID())).ToArray()
		require.NoError(w, err)
		listeners, err := heard[1].AsInt64()
		require.NoError(w, err)
		return listeners == 1
	})
}

// library has the scripts.
var library = composed.Library()

// names are the scripts' names by what EVALSHA and EVAL call them.
var names = func() map[string]string {
	all := map[string]string{}
	for _, s := range library.Scripts() {
		all[s.SHA], all[s.Source()] = s.Name, s.Name
	}
	return all
}()
