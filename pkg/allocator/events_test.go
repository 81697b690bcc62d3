package allocator_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// promised are the kinds that docs/generated/events.md says a pool sends, and the fields that each fills: those that
// only a pool sends, or tells the resource with, and of a release without what the pool knew of the hold. The tests of
// semaphores are about the others, which are the same for all.
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
		if slices.Contains(fields, "Resource") || !strings.Contains(columns[5], "semaphore") {
			kinds[observe.Kind(strings.Trim(columns[1], " `"))] = fields
		}
	}
	kinds[observe.ReleasedAgain] = []string{"Fence"}
	require.Greater(t, len(kinds), 20)
	return kinds
}

// settings are those of the pool whose events are looked at, by the kind.
var settings = map[observe.Kind]allocator.Config[string]{
	"open_failed": {Open: func(context.Context, string) (string, error) { return "", errMine }},
	"close_failed": {
		Open:  func(_ context.Context, key string) (string, error) { return key, nil },
		Close: func(string) error { return errMine },
	},
	"settings_differ": {Cooldown: time.Minute},
	"refreshed":       {Source: func(context.Context) ([]string, error) { return []string{"x", "y"}, nil }},
	"refresh_failed":  {Source: func(context.Context) ([]string, error) { return nil, errMine }},
	"unhealthy":       {Healthy: func(context.Context, string) error { return errMine }},
}

// scenarios make a process, whose events are looked at, send each kind at least
// once, in a way that leaves no promised field zero. One resource is in the pool.
var scenarios = map[observe.Kind]func(w *world, n *proc){
	"granted": func(w *world, n *proc) {
		a := w.node().take(nil)
		q := n.queue(nil)
		w.Advance(time.Second)
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
		require.NoError(w.T, second(n.Resume(context.Background(), detach(w.T, w.node().take(nil)))))
	},
	"wanted": func(w *world, n *proc) {
		n.take(nil)
		w.Advance(time.Second)
		w.want(1, berth.Target{Name: proxies})
		w.Advance(lease)
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
	"rested": func(w *world, n *proc) {
		require.NoError(w.T, n.Rest(context.Background(), "a", time.Minute, "mine", nil))
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
		require.ErrorIs(w.T, second(n.TryAllocate(context.Background(), nil)), berth.ErrBusy)
		synctest.Wait()
	},
	"open_failed": func(w *world, n *proc) {
		require.ErrorIs(w.T, second(n.TryAllocate(context.Background(), nil)), errMine)
	},
	"close_failed": func(w *world, n *proc) {
		w.release(n.take(nil))
		require.NoError(w.T, change(n.Clear(context.Background())))
	},
	"renew_refused": func(w *world, n *proc) {
		n.take(nil)
		w.SetCount("fmt", 4)
		w.Advance(lease / 2)
	},
	"refreshed":       func(w *world, _ *proc) { w.Advance(0) },
	"refresh_failed":  func(w *world, _ *proc) { w.Advance(0) },
	"health_progress": checkHealth,
	"health_checked":  checkHealth,
	"unhealthy":       checkHealth,
}

func checkHealth(w *world, n *proc) {
	require.NoError(w.T, second(n.CheckHealth(context.Background(), 2)))
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
	require.Equal(t, []string{"berth", n.node.ID(), "pool", proxies}, []string{e.Namespace, e.Node, e.Primitive, e.Name})
	require.False(t, e.At.IsZero())
	if e.Resource != "" && e.Kind != observe.Swapped {
		require.Equal(t, "a", e.Resource)
	}
	for _, field := range fields {
		if e.Kind == observe.HealthChecked && field == "Err" {
			continue // only where the run was cut short
		}
		require.False(t, reflect.ValueOf(e).FieldByName(field).IsZero(), "%s of %+v", field, e)
	}
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
