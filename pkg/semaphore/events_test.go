package semaphore_test

import (
	"context"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/zaplog"
	"github.com/berth-go/berth/pkg/semaphore"
)

// promised are the kinds that docs/generated/events.md says a semaphore sends, and the
// fields that each fills.
func promised(t *testing.T) map[observe.Kind][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/generated/events.md")
	require.NoError(t, err)
	kinds := make(map[observe.Kind][]string)
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(line, "|")
		if len(columns) < 7 || !strings.HasPrefix(strings.TrimSpace(columns[5]), "semaphore") {
			continue
		}
		var fields []string
		for _, field := range strings.Split(columns[3], ",") {
			if field = strings.TrimSpace(field); field != "Resource" {
				fields = append(fields, field)
			}
		}
		kinds[observe.Kind(strings.Trim(columns[1], " `"))] = fields
	}
	require.Greater(t, len(kinds), 20)
	require.Contains(t, kinds, observe.Panicked)
	delete(kinds, observe.Panicked) // nothing that is known makes a node panic; the tests of guard, swarm and watch do
	return kinds
}

// handed has a process wait for what another one holds, and get it.
func handed(w *world, n *proc) *semaphore.Permit {
	p := w.node().take(1, nil)
	q := n.queue(1, nil)
	w.Advance(time.Second)
	release(w.T, p)
	return q.Granted(w.Now())
}

// took has a process hold for a second.
func took(w *world, n *proc) *semaphore.Permit {
	p := n.take(1, nil)
	w.Advance(time.Second)
	return p
}

// away cuts a process off meanwhile.
func away(n *proc, meanwhile func()) {
	n.Cut()
	meanwhile()
	n.Mend()
}

// all are the holds of the tests' semaphore.
var all = berth.Target{Kind: keyspace.Sem, Name: gpu}

// scenarios make a process, whose events are looked at, send each kind at least
// once, in a way that leaves no promised field zero.
var scenarios = map[observe.Kind]func(w *world, n *proc){
	"queued": func(w *world, n *proc) {
		n.take(1, nil)
		w.node().queue(1, nil)
		n.queue(1, &semaphore.AcquireOptions{Weight: 1, Attrs: map[string]any{"a": 1}})
	},
	"granted": func(w *world, n *proc) { handed(w, n) },
	"refused": func(w *world, n *proc) {
		n.connect()
		n.take(1, nil)
		n.Delay(func() time.Duration { return ms })
		require.Error(w.T, testkit.Second(n.gpu(1).TryAcquire(context.Background(), nil)))
	},
	"timed_out": func(_ *world, n *proc) {
		n.take(1, nil)
		<-n.queue(1, &semaphore.AcquireOptions{MaxWait: time.Second}).Done
	},
	"cancelled": func(w *world, n *proc) {
		n.take(1, nil)
		q := n.queue(1, nil)
		w.Advance(time.Second)
		q.Cancel(nil)
		<-q.Done
	},
	"failed": func(w *world, n *proc) {
		away(n, func() { require.Error(w.T, testkit.Second(n.gpu(1).TryAcquire(context.Background(), nil))) })
	},
	"restored": func(w *world, n *proc) {
		n.take(1, nil)
		n.queue(1, nil)
		n.queue(1, nil)
		w.Do("FLUSHALL")
		w.node().take(1, nil)
		w.Advance(lease)
	},
	"cleanup_failed": func(w *world, n *proc) {
		n.take(1, nil)
		q := n.queue(1, nil)
		away(n, func() {
			q.Cancel(nil)
			<-q.Done
			w.Advance(time.Minute)
		})
	},
	"unavailable": func(w *world, n *proc) {
		handed(w, n)
		away(n, func() { w.Advance(lease) })
	},
	"draining": func(w *world, n *proc) {
		n.connect()
		w.drains("*", "drain")
		w.Advance(heard)
	},
	"notice_failed": func(w *world, n *proc) {
		n.connect()
		away(n, func() { w.Advance(time.Minute) })
	},
	"deaf": func(w *world, n *proc) {
		n.OnCommand(refuse("SUBSCRIBE", "NOPERM this user has no permissions to run the 'subscribe' command"))
		p := w.node().take(1, nil)
		q := n.queue(1, nil)
		w.Advance(lease)
		release(w.T, p)
		<-q.Done
		require.Len(w.T, n.Told(observe.Deaf), 1)
	},
	"held_long": func(w *world, n *proc) {
		n.take(1, nil)
		w.Advance(10 * time.Minute)
	},
	"detached": func(w *world, n *proc) { detach(w.T, took(w, n)) },
	"resumed": func(w *world, n *proc) {
		require.NoError(w.T, testkit.Second(n.Resume(context.Background(), detach(w.T, w.node().take(1, nil)))))
	},
	"released": func(w *world, n *proc) {
		p := handed(w, n)
		w.Advance(time.Second)
		release(w.T, p)
	},
	"released_by_other": func(w *world, n *proc) {
		p := took(w, n)
		require.NoError(w.T, w.node().end(p.ID()))
		<-p.Done()
	},
	"wanted": func(w *world, n *proc) {
		p := took(w, n)
		w.node().want(all, 1)
		w.Advance(lease)
		require.True(w.T, wanted(p))
	},
	"wanted_back": func(w *world, n *proc) {
		w.node().take(1, nil)
		n.want(all, 1)
	},
	"lost": func(w *world, n *proc) {
		p := n.take(1, nil)
		w.Do("FLUSHALL")
		<-p.Done()
	},
	"expired": func(_ *world, n *proc) { <-n.take(1, &semaphore.AcquireOptions{NoRenew: true}).Done() },
	"release_failed": func(w *world, n *proc) {
		p := n.take(1, &semaphore.AcquireOptions{Lease: time.Minute}) // outlasts the retries
		w.Advance(lease)
		away(n, func() { require.Error(w.T, p.Release(context.Background())) })
	},
	"renew_refused": func(w *world, n *proc) {
		n.take(1, nil)
		w.Do("SET", stateKey, "f4 and more")
		w.Advance(lease / 2)
	},
	"released_again": func(w *world, n *proc) {
		p := n.take(1, &semaphore.AcquireOptions{Lease: berth.Forever})
		w.Advance(time.Second)
		older := w.Snapshot()
		release(w.T, p)
		// The subscription that this begins is a sign, too: its answers must not be lost below.
		w.Advance(time.Second)
		older() // as a server has it that restarts from an older snapshot
		n.Break()
		w.Advance(2 * lease)
	},
	"connections_broken": func(w *world, n *proc) {
		n.take(1, nil)
		n.refused(readonly)
		w.Advance(lease)
		n.OnCommand(nil)
	},
	"force_released": func(w *world, n *proc) { require.NoError(w.T, n.end(w.node().take(1, nil).ID())) },
	"swept": func(w *world, n *proc) {
		w.acquireScript("dead", "dead.1", 1, semaphore.CapacityStored)
		<-n.queue(1, nil).Done
	},
	"heartbeat": func(w *world, n *proc) {
		n.take(1, nil)
		w.Advance(lease)
	},
	"repeated": func(_ *world, n *proc) {
		n.Once("thin_acquire", link.LoseReply)
		n.take(1, nil)
	},
	"subscribed": func(_ *world, n *proc) {
		n.take(1, nil)
		n.queue(1, nil)
	},
	"paused": func(_ *world, n *proc) { n.pause(time.Minute) },
	"unpaused": func(_ *world, n *proc) {
		n.take(1, nil)
		n.queue(1, nil)
		n.unpause()
	},
	"capacity_differs": func(w *world, n *proc) {
		w.node().take(1, nil)
		require.Error(w.T, testkit.Second(n.gpu(2).TryAcquire(context.Background(), nil)))
	},
	"resized": func(w *world, n *proc) {
		n.take(1, nil)
		require.NoError(w.T, n.resize(2))
	},
}

func TestEveryEventThatTheDocsPromiseIsSentWithItsFields(t *testing.T) {
	t.Parallel()
	for kind, fields := range promised(t) {
		t.Run(string(kind), func(t *testing.T) {
			require.Contains(t, scenarios, kind)
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				w.Advance(time.Second)
				scenarios[kind](w, n)
				synctest.Wait()
				told := n.Told(kind)
				require.NotEmpty(t, told)
				checkEvent(t, n, told[len(told)-1], fields)
			})
		})
	}
}

// checkEvent looks at the fields that are promised of a kind, and of all.
func checkEvent(t *testing.T, n *proc, e observe.Event, fields []string) {
	t.Helper()
	require.Equal(t, "berth", e.Namespace)
	require.Equal(t, n.ID(), e.Node)
	require.False(t, e.At.IsZero())
	switch e.Kind {
	case observe.Subscribed, observe.Deaf, observe.Heartbeat, observe.Draining, observe.NoticeFailed, observe.ConnectionsBroken:
		require.Equal(t, "node", e.Primitive)
	case observe.Repeated:
		require.Equal(t, "sem", e.Primitive)
	default:
		require.Equal(t, "sem", e.Primitive)
		require.Equal(t, gpu, e.Name)
	}
	for _, field := range fields {
		if e.Kind == observe.Heartbeat && (field == "Late" || field == "Err") {
			continue // only where it was late, or not answered
		}
		if e.Kind == observe.ConnectionsBroken && field == "Count" {
			continue // 0 where the server does not tell
		}
		require.False(t, reflect.ValueOf(e).FieldByName(field).IsZero(), "%s of %+v", field, e)
	}
}

// Every claim that was sent ends its acquire with one event, and every hold with one: that, testkit looks at in all
// tests. What the call and its context say comes with each.
func TestEveryClaimAndEveryHoldEndsWithOneEvent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		attrs := map[string]any{"request": 7}
		n, opts := w.node(), &semaphore.AcquireOptions{Attrs: attrs}
		owned := berth.WithOwner(context.Background(), "me")
		p := w.got(n.gpu(1).Acquire(owned, opts))
		require.Error(t, testkit.Second(n.gpu(1).TryAcquire(owned, opts)))
		q, gone := n.queueOn(owned, n.gpu(1), opts), n.queueOn(owned, n.gpu(1), opts)
		gone.Cancel(nil)
		<-gone.Done
		release(t, p)
		release(t, p)
		<-q.Done
		w.Do("FLUSHALL")
		<-q.Got.Done()
		n.Shut()
		ends := make(map[observe.Kind]int)
		for _, e := range n.Events() {
			if e.Claim != "" {
				require.Equal(t, "me", e.Owner, e.Kind)
				require.Equal(t, attrs, e.Attrs, e.Kind)
				ends[e.Kind]++
			}
		}
		for kind, want := range map[observe.Kind]int{"granted": 2, "refused": 1, "cancelled": 1, "released": 1, "lost": 1} {
			require.Equal(t, want, ends[kind], kind)
		}
	})
}

// traced is where a context has its trace in these tests.
type traced struct{}

func TestAnEventHasTheValuesOfTheCallThatCausedIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		call := func(trace string) context.Context { return context.WithValue(context.Background(), traced{}, trace) }
		ctx, leave := context.WithCancel(call("acquire"))
		p := w.got(n.gpu(1).Acquire(ctx, nil))
		leave()
		require.NoError(t, p.Context().Err())
		q := n.queueOn(call("wait"), n.gpu(1), nil)
		require.NoError(t, p.Release(call("release")))
		<-q.Done
		left := n.queueOn(call("left"), n.gpu(1), nil)
		left.Cancel(nil)
		<-left.Done
		w.Do("FLUSHALL")
		<-q.Got.Done()
		last := w.got(n.gpu(1).Acquire(call("last"), nil))
		require.NoError(t, n.Close(call("close")))
		require.Error(t, last.Err())
		for kind, want := range map[observe.Kind][]any{
			observe.Granted: {"acquire", "wait", "last"}, observe.Queued: {"wait", "left"}, observe.Released: {"release", "close"},
			observe.Cancelled: {"left"}, // a context that has ended
			observe.Lost:      {"wait"}, // of the call that acquired it
		} {
			var traces []any
			for _, e := range n.Told(kind) {
				traces = append(traces, e.Context.Value(traced{}))
				require.Nil(t, e.Context.Done())
			}
			require.Equal(t, want, traces, kind)
		}
	})
}

const readonly = "READONLY You can't write against a read only replica."

// refused has the server refuse every script of the node.
func (n *proc) refused(answer string) {
	n.OnCommand(func(c link.Command) link.Fate {
		if strings.Contains(c.Name, "_") { // a script
			return link.Refuse(answer)
		}
		return link.Pass
	})
}

// A refusal that passes by itself is silence: a wait without a bound goes on, and has its place afterwards. Which
// refusals pass is for pkg/scriptkit to test.
func TestWaitsOutlastWhatPasses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		holder, n, late := w.node(), w.node(node.Config{Retry: berth.Retry{Attempts: 3}}), w.node()
		p := holder.take(1, nil)
		held := w.got(n.on("other").Acquire(t.Context(), &semaphore.AcquireOptions{Lease: berth.Forever}))
		first := n.queue(1, nil)
		n.refused("NOAUTH no password")
		second := n.queue(1, nil) // it has not been answered yet
		err := testkit.Second(n.gpu(1).TryAcquire(t.Context(), nil))
		require.ErrorIs(t, err, berth.ErrUnavailable)
		require.NotErrorIs(t, err, berth.ErrBusy)
		require.ErrorIs(t, held.Renew(t.Context()), berth.ErrUnavailable)
		w.Advance(time.Minute)
		last := late.queue(1, nil)
		testkit.RequirePending(t, first, second)
		n.OnCommand(nil)
		w.Advance(lease)
		require.NoError(t, held.Renew(t.Context()))
		for _, next := range []*wait{first, last, second} {
			release(t, p)
			p = next.GrantedBy(w.Now())
		}
	})
}

// An observer still gets an event for each hold that is lost, and for each claim that is silent. Which lines are
// written is proved by internal/line; here they know how many hold and wait.
func TestAnOutageOfManyClaimsIsAFewLines(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const holds, waits = 20, 40
		core, log := observer.New(zap.WarnLevel)
		n := w.node(node.Config{Logger: zaplog.New(zap.New(core))})
		for range holds {
			n.take(holds, nil)
		}
		for range waits {
			n.queue(holds, nil)
		}
		w.Advance(lease)
		away(n, func() { w.Advance(time.Minute) })
		require.Len(t, n.Told(observe.Lost), holds)
		require.GreaterOrEqual(t, len(n.Told(observe.Unavailable)), holds+waits)
		kinds := make(map[string]int)
		for _, entry := range log.TakeAll() {
			kinds[entry.Message]++
		}
		require.Equal(t, map[string]int{"unavailable": 1, "lost": 1, "notice_failed": 1}, kinds)
	})
}
