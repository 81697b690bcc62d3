package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// asked is what a hold shows of the options that it goes by.
type asked struct {
	lease, maxHold time.Duration
	noRenew        bool
	job, bound     string
	bindFor        time.Duration
}

// askedBy allocates, and returns by which options the hold goes.
func askedBy(n *proc, opts *allocator.AllocateOptions) asked {
	n.w.T.Helper()
	ctx := context.Background()
	a := n.take(opts)
	holders := n.w.Holders()
	require.Len(n.w.T, holders, 1)
	h := holders[0]
	require.Equal(n.w.T, h.Lease, a.Lease())
	seen := asked{lease: h.Lease, maxHold: h.MaxHold, noRenew: h.NoRenew, job: h.Meta["job"]}
	for _, b := range testkit.Collect(n.w.T, n.ops().Bindings(ctx, proxies)) {
		seen.bound, seen.bindFor = b.Name, b.Left
		require.NoError(n.w.T, n.Unbind(ctx, b.Name))
	}
	n.w.release(a)
	return seen
}

// ofPool is what the pools of these tests say.
var ofPool = allocator.AllocateOptions{
	Lease: 3 * lease, NoRenew: true, MaxHold: time.Hour, Meta: map[string]string{"job": "pool"}, Bind: "pool", BindFor: 2 * time.Hour,
}

func TestACallGoesByItsOwnOptionsThenThePools(t *testing.T) {
	type (
		options = allocator.AllocateOptions
		row     struct {
			pool options
			call *options
			want asked
		}
	)
	all := asked{3 * lease, time.Hour, true, "pool", "pool", 2 * time.Hour}
	inEach(t, map[string]row{
		"nobody says anything":     {want: asked{lease: lease}},
		"the pool":                 {pool: ofPool, want: all},
		"a call that says nothing": {ofPool, &options{}, all},
		"the call, then the pool": {
			ofPool, &options{Lease: 2 * lease, Bind: "call"},
			asked{2 * lease, time.Hour, true, "pool", "call", 2 * time.Hour},
		},
		"a call that says all": {
			ofPool,
			&options{
				Lease: 2 * lease, MaxHold: time.Minute, Meta: map[string]string{"job": "call"}, Bind: "call", BindFor: time.Minute,
			},
			asked{2 * lease, time.Minute, true, "call", "call", time.Minute},
		},
		"no metadata and no bound of the hold, for a call": {
			ofPool, &options{MaxHold: berth.Forever, Meta: map[string]string{}},
			asked{3 * lease, 0, true, "", "pool", 2 * time.Hour},
		},
		"no defaults, and something": {
			ofPool, &options{NoDefaults: true, Bind: "call"}, asked{lease: lease, bound: "call", bindFor: time.Hour},
		},
		"a BindFor of the defaults, and no Bind": {options{BindFor: time.Minute}, &options{}, asked{lease: lease}},
		"a BindFor of the call, and the Bind of the defaults": {
			options{Bind: "pool"}, &options{BindFor: time.Minute}, asked{lease: lease, bound: "pool", bindFor: time.Minute},
		},
	}, func(t *testing.T, w *world, c row) {
		w.add("a")
		n := w.nodeOf(allocator.Config[string]{Defaults: c.pool})
		require.Equal(t, c.want, askedBy(n, c.call))
		w.requireIdle()
	})
}

func TestAWaitGoesByTheDefaults(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.Config[string]{
			Defaults: allocator.AllocateOptions{MaxWait: time.Second, Priority: 5, Attrs: map[string]any{"of": "pool"}},
		})
		says := allocator.AllocateOptions{MaxWait: 3 * time.Second, Priority: 127, Attrs: map[string]any{"of": "call"}}
		first, second := n.queue(nil), n.queue(&says)
		forever := n.queue(&allocator.AllocateOptions{MaxWait: berth.Forever})
		without := n.queue(&allocator.AllocateOptions{NoDefaults: true, Priority: -128})
		var priorities []int
		for _, waiter := range w.Waiters() {
			priorities = append(priorities, waiter.Priority)
		}
		require.Equal(t, []int{127, 5, 5, -128}, priorities)
		first.Refused(time.Second, berth.ReasonTimedOut)
		second.Refused(3*time.Second, berth.ReasonTimedOut)
		w.Advance(time.Minute)
		testkit.RequirePending(t, forever, without)
		var of []any
		for _, event := range n.Told("queued") {
			of = append(of, event.Attrs["of"])
		}
		require.Equal(t, []any{"pool", "call", "pool", nil}, of)
		for _, wait := range []*wait{forever, without} {
			wait.Cancel(nil)
			<-wait.Done
		}
		w.requireIdle()
	})
}

// All waits of an AllocateHealthy together are bounded by the MaxWait of the defaults.
func TestAllocateHealthyGoesByTheDefaults(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.nodeOf(allocator.Config[string]{
			Healthy: func(context.Context, string) error { return errMine }, FailureRest: 400 * ms,
			Defaults: allocator.AllocateOptions{MaxWait: time.Second},
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.ErrorIs(t, second(n.AllocateHealthy(ctx, nil)), berth.ErrBusy)
		require.Equal(t, time.Second, w.Now())
	})
}

func TestTheMaxWaitOfTheDefaultsIsNoneOfATry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.Config[string]{
			Source: slowly(3*time.Second, "a"), Defaults: allocator.AllocateOptions{MaxWait: 20 * ms, Lease: 2 * lease},
		})
		requireInvalid(t, "MaxWait", second(n.TryAllocate(t.Context(), &allocator.AllocateOptions{MaxWait: time.Second})))
		n.Fresh()
		a, err := n.TryAllocate(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, w.Now())
		require.Equal(t, 2*lease, a.Lease(), "the other defaults count")
		require.Zero(t, n.Waiting())
		require.Empty(t, n.Told(observe.Queued), "it waits for the Source, and not in line")
		require.Len(t, n.Told(observe.Refused), 1)
		require.Len(t, n.Told(observe.Granted), 1)
	})
}

func TestBadDefaultsAreNamed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		bad := append(badOptions[:len(badOptions):len(badOptions)], badOption{"NoDefaults", allocator.AllocateOptions{NoDefaults: true}})
		for _, bad := range bad {
			if bad.opts.BindFor == time.Hour {
				continue // a call may bring the Bind
			}
			for _, shared := range []bool{false, true} {
				p := allocator.New(n.node, "other", allocator.Config[string]{Defaults: bad.opts, Shared: shared})
				requireInvalid(t, "Defaults."+bad.field, second(p.TryAllocate(t.Context(), nil)))
			}
		}
		require.Empty(t, w.Keys())
	})
}

// A pool that is Shared takes the options that its calls take.
func TestASharedPoolGoesByDefaultsToo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.nodeOf(allocator.Config[string]{Shared: true, Defaults: allocator.AllocateOptions{Bind: "me", MaxHold: time.Hour}})
		first := n.take(nil)
		require.Equal(t, first.Resource(), n.take(nil).Resource(), "it is bound")
		require.NotEqual(t, first.Resource(), n.take(&allocator.AllocateOptions{NoDefaults: true}).Resource(), "it is the other's turn")
	})
}

func TestTheMapsOfTheDefaultsAreThePoolsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ofPool := allocator.AllocateOptions{Meta: map[string]string{"job": "1"}, Attrs: map[string]any{"job": "1"}}
		n := w.nodeOf(allocator.Config[string]{Defaults: ofPool})
		w.add("a")
		ofPool.Meta["job"], ofPool.Attrs["job"] = "2", "2"
		require.Equal(t, "1", askedBy(n, nil).job)
		require.Equal(t, map[string]any{"job": "1"}, n.Told(observe.Granted)[0].Attrs)
	})
}
