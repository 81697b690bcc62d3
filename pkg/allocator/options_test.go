package allocator_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// requireInvalid fails unless the error names the field.
func requireInvalid(t *testing.T, field string, err error, what ...any) {
	t.Helper()
	require.ErrorIs(t, err, berth.ErrInvalidConfig, what...)
	var invalid *berth.ConfigError
	require.ErrorAs(t, err, &invalid, what...)
	require.Equal(t, field, invalid.Field, what...)
	require.NotEmpty(t, invalid.Problem, what...)
	require.NotErrorIs(t, err, berth.ErrNotAcquired, what...)
}

// badOption has a value that cannot be, and the field that the error names.
type badOption struct {
	field string
	opts  allocator.AllocateOptions
}

var badOptions = []badOption{
	{"Priority", allocator.AllocateOptions{Priority: 128}},
	{"Priority", allocator.AllocateOptions{Priority: -129}},
	{"Lease", allocator.AllocateOptions{Lease: 19 * ms}},
	{"Lease", allocator.AllocateOptions{Lease: -ms}},
	{"Lease", allocator.AllocateOptions{Lease: math.MinInt64}},
	{"Lease", allocator.AllocateOptions{Lease: 20*ms + 1}},
	{"MaxHold", allocator.AllocateOptions{MaxHold: 19 * ms}},
	{"MaxHold", allocator.AllocateOptions{MaxHold: -ms}},
	{"MaxHold", allocator.AllocateOptions{MaxHold: time.Second + time.Microsecond}},
	{"MaxWait", allocator.AllocateOptions{MaxWait: -1}},
	{"Bind", allocator.AllocateOptions{Bind: strings.Repeat("x", 513)}},
	{"BindFor", allocator.AllocateOptions{Bind: "b", BindFor: -ms}},
	{"BindFor", allocator.AllocateOptions{Bind: "b", BindFor: ms + 1}},
	{"BindFor", allocator.AllocateOptions{BindFor: time.Hour}},
	{"Meta", allocator.AllocateOptions{Meta: map[string]string{"key": strings.Repeat("x", 16<<10-2)}}},
}

// allocates are the calls of a pool that take options, by name.
func allocates(p *allocator.Pool[string]) map[string]func(context.Context, *allocator.AllocateOptions) error {
	ran := func(context.Context, *allocator.Allocation[string]) error { return errMine }
	return map[string]func(context.Context, *allocator.AllocateOptions) error{
		"Allocate":    func(ctx context.Context, o *allocator.AllocateOptions) error { return second(p.Allocate(ctx, o)) },
		"TryAllocate": func(ctx context.Context, o *allocator.AllocateOptions) error { return second(p.TryAllocate(ctx, o)) },
		"AllocateHealthy": func(ctx context.Context, o *allocator.AllocateOptions) error {
			return second(p.AllocateHealthy(ctx, o))
		},
		"Do":        func(ctx context.Context, o *allocator.AllocateOptions) error { return p.Do(ctx, o, ran) },
		"TryDo":     func(ctx context.Context, o *allocator.AllocateOptions) error { return p.TryDo(ctx, o, ran) },
		"DoHealthy": func(ctx context.Context, o *allocator.AllocateOptions) error { return p.DoHealthy(ctx, o, ran) },
	}
}

func TestABadOptionIsNamedAndNothingIsSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node().connect()
		for call, do := range allocates(n.Pool) {
			for _, bad := range badOptions {
				requireInvalid(t, bad.field, do(ctx, &bad.opts), call)
			}
			owned := berth.WithOwner(ctx, strings.Repeat("x", 513))
			requireInvalid(t, "owner", do(owned, nil), call)
		}
		require.Empty(t, n.Counts(), "nothing is sent")
		require.Empty(t, w.Keys(), "nothing is written")
		require.Empty(t, n.Kinds(), "nothing is told")
	})
}

// change is what a call did, or nothing.
func change(_ allocator.Change, err error) error { return err }

func TestABadArgumentIsNamedAndNothingIsSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeWith(node.Config{Namespace: "berth"}, allocator.Config[string]{}).connect()
		long := strings.Repeat("x", 1025)
		ok, ops := []string{"a"}, n.ops()
		resume := func(kind keyspace.Kind, namespace, name, claim, node string) error {
			return second(n.Resume(ctx, berth.Token{Kind: kind, Namespace: namespace, Name: name, Claim: claim, Node: node}))
		}
		for name, c := range map[string]struct {
			field string
			err   error
		}{
			"add the empty key":           {"resource", change(n.Add(ctx, []string{"a", ""}, nil))},
			"add a long key":              {"resource", change(n.Add(ctx, []string{"a", long}, nil))},
			"add with a negative":         {"Expiry", change(n.Add(ctx, ok, &allocator.AddOptions{Expiry: -ms}))},
			"add with a fraction":         {"Expiry", change(n.Add(ctx, ok, &allocator.AddOptions{Expiry: ms + 1}))},
			"add for ever":                {"Expiry", change(n.Add(ctx, ok, &allocator.AddOptions{Expiry: berth.Forever}))},
			"add with a wrong MaxSharers": {"MaxSharers", change(n.Add(ctx, ok, &allocator.AddOptions{MaxSharers: 101}))},
			"remove the empty key":        {"resource", change(n.Remove(ctx, []string{"a", ""}))},
			"remove a long key":           {"resource", change(n.Remove(ctx, []string{long}))},
			"replace by nothing":          {"resources", change(n.Replace(ctx, nil, nil))},
			"replace by the empty key":    {"resource", change(n.Replace(ctx, []string{""}, nil))},
			"replace by a long key":       {"resource", change(n.Replace(ctx, []string{"a", long}, nil))},
			"replace with a negative":     {"Expiry", change(n.Replace(ctx, ok, &allocator.AddOptions{Expiry: -1}))},
			"replace for ever":            {"Expiry", change(n.Replace(ctx, ok, &allocator.AddOptions{Expiry: berth.Forever}))},
			"rest the empty key":          {"resource", n.Rest(ctx, "", time.Second, "", nil)},
			"rest a long key":             {"resource", n.Rest(ctx, long, time.Second, "", nil)},
			"rest for less than 0":        {"d", n.Rest(ctx, "a", -1, "", nil)},
			"rest for a long reason":      {"reason", n.Rest(ctx, "a", time.Second, strings.Repeat("x", 513), nil)},
			"bind no name":                {"name", n.Bind(ctx, "", "a", nil)},
			"bind a long name":            {"name", n.Bind(ctx, strings.Repeat("x", 513), "a", nil)},
			"bind to no resource":         {"resource", n.Bind(ctx, "b", "", nil)},
			"bind to a long one":          {"resource", n.Bind(ctx, "b", long, nil)},
			"bind for less than 0":        {"BindFor", n.Bind(ctx, "b", "a", &allocator.BindOptions{BindFor: -ms})},
			"bind for a fraction":         {"BindFor", n.Bind(ctx, "b", "a", &allocator.BindOptions{BindFor: ms + 1})},
			"unbind no name":              {"name", n.Unbind(ctx, "")},
			"unbind a long name":          {"name", n.Unbind(ctx, strings.Repeat("x", 513))},
			"refresh without a Source":    {"Source", change(n.Refresh(ctx))},
			"the binding of no name":      {"name", second(n.Binding(ctx, ""))},
			"look at the empty key":       {"resource", second(n.ops().Resource(ctx, proxies, ""))},
			"look at a long key":          {"resource", second(n.ops().Resource(ctx, proxies, long))},
			"check with no workers":       {"workers", second(n.CheckHealth(ctx, 0))},
			"Inspect of a bad name":       {"name", second(ops.Inspect(ctx, "a}b"))},
			"Resource of a bad name":      {"name", second(ops.Resource(ctx, "a}b", "a"))},
			"Resources of a bad name":     {"name", last(ops.Resources(ctx, "a}b"))},
			"Bindings of a bad name":      {"name", last(ops.Bindings(ctx, "a}b"))},
			"Sweep of a bad name":         {"name", second(ops.Sweep(ctx, proxies, "a}b"))},
			"Release of a bad name":       {"name", second(ops.Release(ctx, berth.Target{Name: "a}b"}))},
			"resume another kind":         {"token.Kind", resume("sem", "berth", proxies, "c", "n")},
			"resume of another namespace": {"token.Namespace", resume("pool", "other", proxies, "c", "n")},
			"resume of another name":      {"token.Name", resume("pool", "berth", "other", "c", "n")},
			"resume no claim":             {"token", resume("pool", "berth", proxies, "", "n")},
			"resume of no node":           {"token", resume("pool", "berth", proxies, "c", "")},
		} {
			requireInvalid(t, c.field, c.err, name)
		}
		for _, target := range []berth.Target{{}, {Claim: "x.1"}, {Name: proxies, All: true}} {
			requireInvalid(t, "Target", second(ops.Release(ctx, target)), target)
		}
		require.Empty(t, n.Counts(), "nothing is sent")
		require.Empty(t, w.Keys(), "nothing is written")
		require.Empty(t, n.Kinds(), "nothing is told")
	})
}

func TestABadConfigIsNamed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		for _, name := range []string{"", "a{b", "a}b", "a\nb", "\xff", strings.Repeat("x", 513)} {
			p := allocator.New(n.node, name, allocator.Config[string]{})
			requireInvalid(t, "name", second(p.TryAllocate(t.Context(), nil)), name)
		}
		requireInvalid(t, "Open", second(allocator.New(n.node, "other", allocator.Config[int]{}).TryAllocate(t.Context(), nil)))
		for _, bad := range []struct {
			field string
			cfg   allocator.Config[string]
		}{
			{"Policy", allocator.Config[string]{Policy: -1}},
			{"Policy", allocator.Config[string]{Policy: allocator.Random + 1}},
			{"Policy", allocator.Config[string]{Policy: allocator.MostRecent, Shared: true}},
			{"Strict", allocator.Config[string]{Strict: true}},
			{"BindFor", allocator.Config[string]{BindFor: -time.Second}},
			{"MaxLease", allocator.Config[string]{MaxLease: 19 * ms}},
			{"MaxHold", allocator.Config[string]{MaxHold: ms / 2}},
			{"Cooldown", allocator.Config[string]{Cooldown: ms + 1}},
			{"Cooldown", allocator.Config[string]{Cooldown: time.Second, Shared: true}},
			{"Cooldown", allocator.Config[string]{Cooldown: berth.Forever}},
			{"Expiry", allocator.Config[string]{Expiry: time.Hour}},
			{"AllowEmpty", allocator.Config[string]{AllowEmpty: true}},
			{"Close", allocator.Config[string]{Close: func(string) error { return nil }}},
			{"OpenTimeout", allocator.Config[string]{OpenTimeout: -1}},
			{"MaxSharers", allocator.Config[string]{MaxSharers: -1}},
			{"MaxSharers", allocator.Config[string]{MaxSharers: 101}},
			{"MaxSharers", allocator.Config[string]{MaxSharers: 2, Shared: true}},
			{"RefreshEvery", allocator.Config[string]{RefreshEvery: -time.Second}},
			{"RefreshEvery", allocator.Config[string]{RefreshEvery: 19 * ms}},
			{"RefreshEvery", allocator.Config[string]{RefreshEvery: time.Second + 1}},
			{"RefreshEvery", allocator.Config[string]{RefreshEvery: berth.Forever}},
			{"Expiry", allocator.Config[string]{Expiry: -time.Second}},
			{"Expiry", allocator.Config[string]{Expiry: ms + 1}},
			{"Expiry", allocator.Config[string]{Expiry: berth.Forever}},
		} {
			requireInvalid(t, bad.field, second(allocator.New(n.node, "other", bad.cfg).TryAllocate(t.Context(), nil)))
		}
		require.Empty(t, w.Keys())
	})
}

func TestTheFurthestValuesAreTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.Config[string]{MaxSharers: 100, RefreshEvery: 20 * ms, FailureRest: -1})
		must(n.Add(ctx, []string{"a"}, &allocator.AddOptions{Expiry: 1000000 * time.Hour}))(t)
		for name, opts := range map[string]allocator.AllocateOptions{
			"the highest priority":  {Priority: 127},
			"the lowest priority":   {Priority: -128},
			"the shortest lease":    {Lease: 20 * ms},
			"no end":                {Lease: berth.Forever, MaxHold: berth.Forever},
			"the shortest hold":     {MaxHold: 20 * ms},
			"an instant of waiting": {MaxWait: 1},
			"much metadata":         {Meta: map[string]string{"key": strings.Repeat("x", 16<<10-3)}},
			"a long binding":        {Bind: strings.Repeat("\xff", 512), BindFor: berth.Forever},
			"a short binding":       {Bind: " ", BindFor: ms},
		} {
			a, err := n.Allocate(ctx, &opts)
			require.NoError(t, err, name)
			w.release(a)
		}
		require.NoError(t, n.Rest(ctx, "a", 1, strings.Repeat("x", 512), nil), "it is rounded up to a millisecond")
		w.Advance(ms)
		w.release(n.takes("a", nil))
		require.NoError(t, n.Bind(ctx, "b", "a", &allocator.BindOptions{BindFor: berth.Forever}))
		b := must(n.Binding(ctx, "b"))(t)
		require.Equal(t, berth.Binding{Name: "b", Resource: "a", Left: berth.Forever}, b)
		w.requireIdle()
	})
}

func TestTheDefaultsOfAPool(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := must(node.New(w.Redis, node.Config{}))(t)
		defer func() { require.NoError(t, n.Close(ctx)) }()
		p := allocator.New(n, proxies, allocator.Config[string]{})
		require.Equal(t, proxies, p.Name())
		require.Empty(t, w.Keys(), "no call does I/O")
		require.NoError(t, change(p.Add(ctx, []string{"a"}, nil)))
		a := must(p.Allocate(ctx, &allocator.AllocateOptions{Bind: "b"}))(t)
		require.Equal(t, []string{"a", "a"}, []string{a.Resource(), a.Value()})
		b := must(p.Binding(ctx, "b"))(t)
		require.Equal(t, berth.Binding{Name: "b", Resource: "a", Left: time.Hour}, b)
		require.ErrorIs(t, second(p.TryAllocate(ctx, nil)), berth.ErrBusy, "one holder of each")
		w.Advance(2 * time.Minute)
		require.NoError(t, a.Err(), "it renews, and has no maximum")
		h := w.Holders()[0]
		require.NotEmpty(t, h.Label)
		require.Equal(t, 10*time.Second, h.Lease)
		require.False(t, h.NoRenew)
		require.Zero(t, h.MaxHold)
		require.Empty(t, h.Owner)
		require.Empty(t, h.Meta)
		require.Equal(t, "a", h.Resource)
		require.NoError(t, a.Release(ctx))
		require.Equal(t, allocator.ResourceInfo{Resource: "a", MaxSharers: 1, State: allocator.Free}, w.status("a"), "no cooldown, no expiry")
		require.Equal(t, time.Duration(-1), w.Expiry(), "while there are resources")
		require.NoError(t, change(p.Remove(ctx, []string{"a"})))
		require.GreaterOrEqual(t, w.Expiry()-w.Now(), time.Minute, "the linger")
	})
}
