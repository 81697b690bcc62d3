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

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
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

// scenarios make a process, whose events are looked at, send each kind at least
// once, in a way that leaves no promised field zero.
var scenarios = map[observe.Kind]func(w *world, n *proc){
	"queued": func(w *world, n *proc) {
		n.take(1, nil)
		w.node().queue(1, nil)
		n.queue(1, &semaphore.AcquireOptions{Weight: 1, Attrs: map[string]any{"a": 1}})
	},
	"granted": func(w *world, n *proc) {
		p := w.node().take(1, nil)
		q := n.queue(1, nil)
		w.Advance(time.Second)
		require.NoError(w.T, p.Release(context.Background()))
		<-q.Done
	},
	"refused": func(w *world, n *proc) {
		n.connect()
		n.take(1, nil)
		n.Delay(func() time.Duration { return ms })
		_, err := n.gpu(1).TryAcquire(context.Background(), nil)
		require.Error(w.T, err)
	},
	"timed_out": func(w *world, n *proc) {
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
		n.Cut()
		_, err := n.gpu(1).TryAcquire(context.Background(), nil)
		require.Error(w.T, err)
		n.Mend()
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
		n.Cut()
		q.Cancel(nil)
		<-q.Done
		w.Advance(time.Minute)
		n.Mend()
	},
	"unavailable": func(w *world, n *proc) {
		p := w.node().take(1, nil)
		q := n.queue(1, nil)
		w.Advance(time.Second)
		require.NoError(w.T, p.Release(context.Background()))
		<-q.Done
		n.Cut()
		w.Advance(lease)
		n.Mend()
	},
	"draining": func(w *world, n *proc) {
		n.connect()
		w.drains("*", "drain")
		w.Advance(heard)
	},
	"notice_failed": func(w *world, n *proc) {
		n.connect()
		n.Cut()
		w.Advance(time.Minute)
		n.Mend()
	},
	"deaf": func(w *world, n *proc) {
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "SUBSCRIBE" {
				return link.Refuse("NOPERM this user has no permissions to run the 'subscribe' command")
			}
			return link.Pass
		})
		p := w.node().take(1, nil)
		q := n.queue(1, nil)
		w.Advance(lease)
		require.NoError(w.T, p.Release(context.Background()))
		<-q.Done
		require.Len(w.T, n.Told(observe.Deaf), 1)
	},
	"held_long": func(w *world, n *proc) {
		n.take(1, nil)
		w.Advance(10 * time.Minute)
	},
	"detached": func(w *world, n *proc) {
		p := n.take(1, nil)
		w.Advance(time.Second)
		detach(w.T, p)
	},
	"resumed": func(w *world, n *proc) {
		_, err := n.Resume(context.Background(), detach(w.T, w.node().take(1, nil)))
		require.NoError(w.T, err)
	},
	"released": func(w *world, n *proc) {
		p := w.node().take(1, nil)
		q := n.queue(1, nil)
		w.Advance(time.Second)
		require.NoError(w.T, p.Release(context.Background()))
		<-q.Done
		w.Advance(time.Second)
		require.NoError(w.T, q.Got.Release(context.Background()))
	},
	"released_by_other": func(w *world, n *proc) {
		p := n.take(1, nil)
		w.Advance(time.Second)
		require.NoError(w.T, w.node().end(p.ID()))
		<-p.Done()
	},
	"wanted": func(w *world, n *proc) {
		p := n.take(1, nil)
		w.Advance(time.Second)
		require.NoError(w.T, testkit.Second(w.node().Operator().Want(context.Background(), berth.Target{Kind: keyspace.Sem, Name: gpu})))
		w.Advance(lease)
		require.True(w.T, wanted(p))
	},
	"wanted_back": func(w *world, n *proc) {
		w.node().take(1, nil)
		require.NoError(w.T, testkit.Second(n.Operator().Want(context.Background(), berth.Target{Kind: keyspace.Sem, Name: gpu})))
	},
	"lost": func(w *world, n *proc) {
		p := n.take(1, nil)
		w.Do("FLUSHALL")
		<-p.Done()
	},
	"expired": func(w *world, n *proc) {
		<-n.take(1, &semaphore.AcquireOptions{NoRenew: true}).Done()
	},
	"release_failed": func(w *world, n *proc) {
		p := n.take(1, &semaphore.AcquireOptions{Lease: time.Minute}) // outlasts the retries
		w.Advance(lease)
		n.Cut()
		require.Error(w.T, p.Release(context.Background()))
		n.Mend()
	},
	"renew_refused": func(w *world, n *proc) {
		n.take(1, nil)
		w.Do("SET", stateKey, "f3 and more")
		w.Advance(lease / 2)
	},
	"released_again": func(w *world, n *proc) {
		p := n.take(1, &semaphore.AcquireOptions{Lease: berth.Forever})
		w.Advance(time.Second)
		for _, key := range []string{stateKey, lineKey} {
			w.Do("COPY", key, "snapshot of "+key)
		}
		require.NoError(w.T, p.Release(context.Background()))
		// The subscription that this begins is a sign, too: its answers must not be lost below.
		w.Advance(time.Second)
		for _, key := range []string{stateKey, lineKey} { // as a server has it that restarts from an older snapshot
			w.Do("COPY", "snapshot of "+key, key, "REPLACE")
			w.Do("DEL", "snapshot of "+key)
		}
		n.Break()
		w.Advance(2 * lease)
	},
	"connections_broken": func(w *world, n *proc) {
		n.take(1, nil)
		n.refused(readonly)
		w.Advance(lease)
		n.OnCommand(nil)
	},
	"force_released": func(w *world, n *proc) {
		p := w.node().take(1, nil)
		require.NoError(w.T, n.end(p.ID()))
	},
	"swept": func(w *world, n *proc) {
		w.acquireScript("dead", "dead.1", 1, semaphore.CapacityStored)
		<-n.queue(1, nil).Done
	},
	"heartbeat": func(w *world, n *proc) {
		n.take(1, nil)
		w.Advance(lease)
	},
	"repeated": func(w *world, n *proc) {
		n.Once("thin_acquire", link.LoseReply)
		n.take(1, nil)
	},
	"subscribed": func(w *world, n *proc) {
		n.take(1, nil)
		n.queue(1, nil)
	},
	"paused": func(w *world, n *proc) {
		require.NoError(w.T, n.Operator().Pause(context.Background(), keyspace.Sem, gpu, time.Minute, "migration"))
	},
	"unpaused": func(w *world, n *proc) {
		n.take(1, nil)
		n.queue(1, nil)
		require.NoError(w.T, n.Operator().Unpause(context.Background(), keyspace.Sem, gpu))
	},
	"capacity_differs": func(w *world, n *proc) {
		w.node().take(1, nil)
		_, err := n.gpu(2).TryAcquire(context.Background(), nil)
		require.Error(w.T, err)
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

// Every claim that was sent ends its acquire with one event, and every hold with
// one.
func TestEveryClaimAndEveryHoldEndsWithOneEvent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		attrs := map[string]any{"request": 7}
		n := w.node()
		opts := &semaphore.AcquireOptions{Attrs: attrs}
		owned := berth.WithOwner(ctx, "me")
		p, err := n.gpu(1).Acquire(owned, opts)
		require.NoError(t, err)
		_, err = n.gpu(1).TryAcquire(owned, opts)
		require.Error(t, err)
		q := n.queueOn(owned, n.gpu(1), opts)
		gone := n.queueOn(owned, n.gpu(1), opts)
		gone.Cancel(nil)
		<-gone.Done
		require.NoError(t, p.Release(ctx))
		require.NoError(t, p.Release(ctx))
		<-q.Done
		w.Do("FLUSHALL")
		<-q.Got.Done()
		require.Error(t, q.Got.Release(ctx))
		n.Shut()

		begins := map[observe.Kind]int{"granted": 1, "refused": 1, "cancelled": 1, "timed_out": 1, "failed": 1}
		ends := map[observe.Kind]int{"released": 1, "lost": 1, "expired": 1, "released_by_other": 1}
		began, ended := make(map[string]int), make(map[string]int)
		for _, e := range n.Events() {
			if e.Claim == "" {
				continue
			}
			began[e.Claim] += begins[e.Kind]
			ended[e.Claim] += ends[e.Kind]
			require.Equal(t, "me", e.Owner, e.Kind)
			require.Equal(t, attrs, e.Attrs, e.Kind)
		}
		require.Len(t, began, 4)
		for claim, n := range began {
			require.Equal(t, 1, n, claim)
		}
		require.Equal(t, 1, ended[p.ID()])
		require.Equal(t, 1, ended[q.Got.ID()])
	})
}

func TestHeartbeatsThatAreNotAnsweredHaveAnEventOfTheirOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(1, nil)
		w.Advance(lease)
		n.Cut()
		w.Advance(lease / 2)
		n.Mend()
		answered, unanswered := 0, 0
		for _, e := range n.Told(observe.Heartbeat) {
			require.Equal(t, 1, e.Count)
			if e.Err == nil {
				answered++
			} else {
				require.ErrorIs(t, e.Err, berth.ErrUnavailable)
				unanswered++
			}
		}
		require.GreaterOrEqual(t, answered, 2)
		require.Positive(t, unanswered)
	})
}
