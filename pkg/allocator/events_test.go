package allocator_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
)

// promised are the kinds that docs/generated/events.md says a pool sends, and the fields that
// each fills.
func promised(t *testing.T) map[observe.Kind][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/generated/events.md")
	require.NoError(t, err)
	kinds := make(map[observe.Kind][]string)
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(line, "|")
		if len(columns) < 7 || !strings.Contains(columns[5], "pool") {
			continue
		}
		var fields []string
		for _, field := range strings.Split(columns[3], ",") {
			fields = append(fields, strings.TrimSpace(field))
		}
		kinds[observe.Kind(strings.Trim(columns[1], " `"))] = fields
	}
	require.Greater(t, len(kinds), 25)
	require.Contains(t, kinds, observe.Panicked)
	delete(kinds, observe.Panicked) // nothing that is known makes a node panic; the tests of guard, swarm and watch do
	return kinds
}

// failing is a pool of whose functions one fails.
func failing(change func(*allocator.PoolConfig[string])) allocator.PoolConfig[string] {
	cfg := allocator.PoolConfig[string]{
		Open: func(_ context.Context, key string) (string, error) { return key, nil },
	}
	change(&cfg)
	return cfg
}

// settings are those of the pool whose events are looked at, by the kind.
var settings = map[observe.Kind]allocator.PoolConfig[string]{
	"open_failed": failing(func(cfg *allocator.PoolConfig[string]) {
		cfg.Open = func(context.Context, string) (string, error) { return "", errMine }
	}),
	"close_failed": failing(func(cfg *allocator.PoolConfig[string]) {
		cfg.Close = func(string) error { return errMine }
	}),
	"settings_differ": {Cooldown: time.Minute},
	"refreshed":       {Source: func(context.Context) ([]string, error) { return []string{"x", "y"}, nil }},
	"refresh_failed":  {Source: func(context.Context) ([]string, error) { return nil, errMine }},
	"unhealthy":       {Healthy: func(context.Context, string) error { return errMine }},
}

// scenarios make a process, whose events are looked at, send each kind at least
// once, in a way that leaves no promised field zero. One resource is in the pool.
var scenarios = map[observe.Kind]func(w *world, n *proc){
	"queued": func(w *world, n *proc) {
		n.take(nil)
		w.node().queue(nil)
		n.queue(nil)
	},
	"granted": func(w *world, n *proc) {
		a := w.node().take(nil)
		q := n.queue(nil)
		w.Advance(time.Second)
		w.release(a)
		<-q.Done
	},
	"refused": func(w *world, n *proc) {
		n.connect()
		n.take(nil)
		n.Delay(func() time.Duration { return ms })
		_, err := n.TryAllocate(context.Background(), nil)
		require.Error(w.T, err)
	},
	"timed_out": func(_ *world, n *proc) {
		n.take(nil)
		<-n.queue(&allocator.AllocateOptions{MaxWait: time.Second}).Done
	},
	"cancelled": func(w *world, n *proc) {
		n.take(nil)
		q := n.queue(nil)
		w.Advance(time.Second)
		q.Cancel(nil)
		<-q.Done
	},
	"failed": func(w *world, n *proc) {
		n.Cut()
		_, err := n.TryAllocate(context.Background(), nil)
		require.Error(w.T, err)
		n.Mend()
	},
	"restored": func(w *world, n *proc) {
		n.take(nil)
		n.queue(nil)
		n.queue(nil)
		w.Do("FLUSHALL")
		w.Advance(lease)
	},
	"cleanup_failed": func(w *world, n *proc) {
		n.take(nil)
		q := n.queue(nil)
		n.Cut()
		q.Cancel(nil)
		<-q.Done
		w.Advance(time.Minute)
		n.Mend()
	},
	"unavailable": func(w *world, n *proc) {
		a := w.node().take(nil)
		q := n.queue(nil)
		w.Advance(time.Second)
		w.release(a)
		<-q.Done
		n.Cut()
		w.Advance(lease)
		n.Mend()
	},
	"draining": func(w *world, n *proc) {
		n.connect()
		w.Notice("l:*", 0, "drain")
		w.Advance(5 * time.Second)
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
		a := w.node().take(nil)
		q := n.queue(nil)
		w.release(a)
		<-q.Done
	},
	"held_long": func(w *world, n *proc) {
		n.take(&allocator.AllocateOptions{Lease: berth.Forever}) // which is renewed less often
		w.Advance(10 * time.Minute)
	},
	"detached": func(w *world, n *proc) {
		a := n.take(nil)
		w.Advance(time.Second)
		detach(w.T, a)
	},
	"resumed": func(w *world, n *proc) {
		_, err := n.Resume(context.Background(), detach(w.T, w.node().take(nil)))
		require.NoError(w.T, err)
	},
	"wanted": func(w *world, n *proc) {
		n.take(nil)
		w.Advance(time.Second)
		w.want(1, berth.Target{Name: proxies})
		w.Advance(lease)
	},
	"wanted_back": func(w *world, n *proc) {
		w.node().take(nil)
		require.NoError(w.T, second(n.ops().Want(context.Background(), berth.Target{Name: proxies})))
	},
	"released": func(w *world, n *proc) {
		a := w.node().take(nil)
		q := n.queue(nil)
		w.Advance(time.Second)
		w.release(a)
		<-q.Done
		w.Advance(time.Second)
		w.release(q.Got)
	},
	"released_by_other": func(w *world, n *proc) {
		a := n.take(nil)
		w.Advance(time.Second)
		require.NoError(w.T, w.node().force(a.ID()))
		<-a.Done()
	},
	"lost": func(w *world, n *proc) {
		a := n.take(nil)
		w.Do("FLUSHALL")
		<-a.Done()
	},
	"expired": func(_ *world, n *proc) { <-n.take(&allocator.AllocateOptions{NoRenew: true}).Done() },
	"release_failed": func(w *world, n *proc) {
		a := n.take(&allocator.AllocateOptions{Lease: time.Minute}) // outlasts the retries
		w.Advance(lease)
		n.Cut()
		require.Error(w.T, a.Release(context.Background()))
		n.Mend()
	},
	"force_released": func(w *world, n *proc) {
		a := w.node().take(nil)
		require.NoError(w.T, n.force(a.ID()))
	},
	"swept": func(w *world, n *proc) {
		w.acquireScript("dead", "dead.1")
		<-n.queue(nil).Done
	},
	"heartbeat": func(w *world, n *proc) {
		n.take(nil)
		w.Advance(lease)
	},
	"repeated": func(_ *world, n *proc) {
		n.Once("pool_acquire", link.LoseReply)
		n.take(nil)
	},
	"subscribed": func(_ *world, n *proc) {
		n.take(nil)
		n.queue(nil)
	},
	"rested": func(w *world, n *proc) {
		require.NoError(w.T, n.Rest(context.Background(), "a", time.Minute, "mine", nil))
	},
	"paused": func(w *world, n *proc) {
		require.NoError(w.T, n.node.Operator().Pause(context.Background(), keyspace.Pool, proxies, time.Minute, "migration"))
	},
	"unpaused": func(w *world, n *proc) {
		n.take(nil)
		n.queue(nil)
		require.NoError(w.T, n.node.Operator().Unpause(context.Background(), keyspace.Pool, proxies))
	},
	"settings_differ": func(w *world, n *proc) {
		w.set("", allocator.Settings{Cooldown: time.Second})
		n.take(nil)
	},
	"settings_changed": func(w *world, n *proc) {
		require.NoError(w.T, n.ops().Set(context.Background(), proxies, "a", allocator.Settings{Cooldown: time.Second}))
	},
	"swapped": func(w *world, n *proc) {
		w.add("b")
		require.NoError(w.T, n.take(nil).Swap(context.Background()))
	},
	"damaged": func(w *world, n *proc) {
		w.damage("a")
		_, err := n.TryAllocate(context.Background(), nil)
		require.ErrorIs(w.T, err, berth.ErrBusy)
		synctest.Wait()
	},
	"open_failed": func(w *world, n *proc) {
		_, err := n.TryAllocate(context.Background(), nil)
		require.ErrorIs(w.T, err, errMine)
	},
	"close_failed": func(w *world, n *proc) {
		w.release(n.take(nil))
		_, err := n.Clear(context.Background())
		require.NoError(w.T, err)
	},
	"renew_refused": func(w *world, n *proc) {
		n.take(nil)
		w.SetCount("fmt", 3)
		w.Advance(lease / 2)
	},
	"released_again": func(w *world, n *proc) {
		a := n.take(&allocator.AllocateOptions{Lease: berth.Forever})
		w.Advance(time.Second)
		keys := []string{stateKey, lineKey, itemsKey, freeKey, bindingsKey}
		for _, key := range keys {
			w.Do("COPY", key, "snapshot of "+key)
		}
		w.release(a)
		// The subscription that this begins is a sign, too: its answers must not be lost below.
		w.Advance(time.Second)
		for _, key := range keys { // as a server has it that restarts from an older snapshot
			w.Do("DEL", key)
			w.Do("COPY", "snapshot of "+key, key)
			w.Do("DEL", "snapshot of "+key)
		}
		n.Break()
		w.Advance(2 * lease)
	},
	"connections_broken": func(w *world, n *proc) {
		n.take(nil)
		n.OnCommand(func(c link.Command) link.Fate {
			if strings.Contains(c.Name, "_") { // a script
				return link.Refuse("READONLY You can't write against a read only replica.")
			}
			return link.Pass
		})
		w.Advance(lease)
		n.OnCommand(nil)
	},
	"refreshed":       func(w *world, _ *proc) { w.Advance(0) },
	"refresh_failed":  func(w *world, _ *proc) { w.Advance(0) },
	"health_progress": checkHealth,
	"health_checked":  checkHealth,
	"unhealthy":       checkHealth,
}

func checkHealth(w *world, n *proc) {
	_, err := n.CheckHealth(context.Background(), 2)
	require.NoError(w.T, err)
}

func TestEveryEventThatTheDocsPromiseIsSentWithItsFields(t *testing.T) {
	t.Parallel()
	for kind, fields := range promised(t) {
		t.Run(string(kind), func(t *testing.T) {
			require.Contains(t, scenarios, kind)
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.nodeOf(settings[kind])
				w.Advance(time.Second)
				scenarios[kind](w, n)
				synctest.Wait()
				events := n.Events()
				require.NotEmpty(t, n.Told(kind))
				for i := len(events) - 1; i >= 0; i-- {
					if e := events[i]; e.Kind == kind {
						checkEvent(t, n, e, fields)
						return
					}
				}
			})
		})
	}
}

// checkEvent looks at the fields that are promised of a kind, and of all.
func checkEvent(t *testing.T, n *proc, e observe.Event, fields []string) {
	t.Helper()
	require.Equal(t, "berth", e.Namespace)
	require.Equal(t, n.node.ID(), e.Node)
	require.False(t, e.At.IsZero())
	switch e.Kind {
	case observe.Subscribed, observe.Deaf, observe.Heartbeat, observe.Draining, observe.NoticeFailed, observe.ConnectionsBroken:
		require.Equal(t, "node", e.Primitive)
	case observe.Repeated:
		require.Equal(t, "pool", e.Primitive)
	default:
		require.Equal(t, "pool", e.Primitive)
		require.Equal(t, proxies, e.Name)
	}
	if e.Resource != "" && e.Kind != observe.Swapped {
		require.Equal(t, "a", e.Resource)
	}
	for _, field := range fields {
		if e.Kind == observe.HealthChecked && field == "Err" {
			continue // only where the run was cut short
		}
		if e.Kind == observe.Heartbeat && (field == "Late" || field == "Err") {
			continue // only where it was late, or not answered
		}
		if e.Kind == observe.ConnectionsBroken && field == "Count" {
			continue // 0 where the server does not tell
		}
		require.False(t, reflect.ValueOf(e).FieldByName(field).IsZero(), "%s of %+v", field, e)
	}
}

func TestARunThatIsCutShortTellsWhy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c")
		ctx, cancel := context.WithCancelCause(context.Background())
		n := w.nodeOf(allocator.PoolConfig[string]{Healthy: func(context.Context, string) error {
			cancel(errMine)
			return nil
		}})
		_, err := n.CheckHealth(ctx, 1)
		require.ErrorIs(t, err, errMine)
		events := n.Events()
		last := events[len(events)-1]
		for i := range events {
			if events[i].Kind == observe.HealthChecked {
				last = events[i]
			}
		}
		require.Equal(t, observe.HealthChecked, last.Kind)
		require.ErrorIs(t, last.Err, errMine)
	})
}

// Every claim that was sent ends its acquire with one event, and every hold with
// one.
func TestEveryClaimAndEveryHoldEndsWithOneEvent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		attrs := map[string]any{"request": 7}
		n := w.nodeOf(allocator.PoolConfig[string]{Open: func(_ context.Context, key string) (string, error) {
			if key == "b" {
				return "", errMine
			}
			return key, nil
		}, FailureRest: time.Hour})
		opts := &allocator.AllocateOptions{Attrs: attrs}
		owned := berth.WithOwner(ctx, "me")
		a, err := n.Allocate(owned, opts)
		require.NoError(t, err)
		_, err = n.TryAllocate(owned, opts)
		require.ErrorIs(t, err, errMine, "it was granted, and not opened")
		_, err = n.TryAllocate(owned, opts)
		require.ErrorIs(t, err, berth.ErrBusy)
		q := n.queueOn(owned, opts)
		gone := n.queueOn(owned, opts)
		gone.Cancel(nil)
		<-gone.Done
		_, err = n.Allocate(owned, &allocator.AllocateOptions{Attrs: attrs, MaxWait: time.Second})
		require.ErrorIs(t, err, berth.ErrBusy)
		w.release(a)
		w.release(a)
		<-q.Done
		held := q.Got
		require.NoError(t, w.node().force(held.ID()))
		<-held.Done()
		require.Error(t, held.Release(ctx))
		short, err := n.Allocate(owned, &allocator.AllocateOptions{Attrs: attrs, NoRenew: true})
		require.NoError(t, err)
		<-short.Done()
		w.Advance(lease)
		lost, err := n.Allocate(owned, opts)
		require.NoError(t, err)
		w.Do("FLUSHALL")
		<-lost.Done()
		require.Error(t, lost.Release(ctx))
		n.Shut()

		begins := map[observe.Kind]int{"granted": 1, "refused": 1, "cancelled": 1, "timed_out": 1, "failed": 1}
		ends := map[observe.Kind]int{"released": 1, "lost": 1, "expired": 1, "released_by_other": 1}
		began, granted, ended := make(map[string]int), make(map[string]int), make(map[string]int)
		for _, e := range n.Events() {
			if e.Claim == "" {
				continue
			}
			began[e.Claim] += begins[e.Kind]
			ended[e.Claim] += ends[e.Kind]
			if e.Kind == observe.Granted {
				granted[e.Claim]++
			}
			require.Equal(t, "me", e.Owner, e.Kind)
			require.Equal(t, attrs, e.Attrs, e.Kind)
			if ends[e.Kind] > 0 || e.Kind == observe.Granted {
				require.Contains(t, []string{"a", "b"}, e.Resource, e.Kind)
			}
		}
		require.Len(t, began, 8)
		for claim, n := range began {
			require.Equal(t, 1, n, claim)
			require.Equal(t, granted[claim], ended[claim], claim)
		}
		require.Len(t, granted, 5)
	})
}

// Each event tells of the resource that the hold had then, and of its owner.
func TestTheEventsOfAHoldThatIsSwappedTellOfWhatItHad(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		attrs := map[string]any{"request": 7}
		a, err := n.Allocate(berth.WithOwner(context.Background(), "me"), &allocator.AllocateOptions{Attrs: attrs})
		require.NoError(t, err)
		_ = a.Rest(time.Minute, "blocked")
		require.NoError(t, a.Swap(context.Background()))
		_ = a.Rest(time.Hour, "done")
		w.release(a)
		got := make(map[string]int)
		for _, e := range n.Events() {
			got[fmt.Sprint(e.Kind, " ", e.Resource, " ", e.Detail, " ", e.Left)]++
			require.Equal(t, a.ID(), e.Claim, e.Kind)
			require.Equal(t, "me", e.Owner, e.Kind)
			require.Equal(t, attrs, e.Attrs, e.Kind)
		}
		require.Equal(t, map[string]int{
			"granted a  0s": 1, "rested a blocked 1m0s": 1, "swapped b a 0s": 1, "rested b done 1h0m0s": 1, "released b  0s": 1,
		}, got)
	})
}
