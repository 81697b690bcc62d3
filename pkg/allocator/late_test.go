package allocator_test

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
)

// methods are those of v but for some.
func methods(v any, but ...string) (names []string) {
	for m := range reflect.TypeOf(v).Methods() {
		if !slices.Contains(but, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

// calls are all of a pool's that return an error, but Close.
func calls(p *allocator.Pool[string]) map[string]func(ctx context.Context) error {
	some := []string{"a"}
	all := map[string]func(ctx context.Context) error{
		"Add":         func(ctx context.Context) error { return change(p.Add(ctx, some, nil)) },
		"Bind":        func(ctx context.Context) error { return p.Bind(ctx, "b", "a", nil) },
		"Binding":     func(ctx context.Context) error { return second(p.Binding(ctx, "b")) },
		"CheckHealth": func(ctx context.Context) error { return second(p.CheckHealth(ctx, 1)) },
		"Clear":       func(ctx context.Context) error { return change(p.Clear(ctx)) },
		"FreeInOrder": func(ctx context.Context) error { return last(p.FreeInOrder(ctx)) },
		"Refresh":     func(ctx context.Context) error { return change(p.Refresh(ctx)) },
		"Remove":      func(ctx context.Context) error { return change(p.Remove(ctx, some)) },
		"Replace":     func(ctx context.Context) error { return change(p.Replace(ctx, some, nil)) },
		"Rest":        func(ctx context.Context) error { return p.Rest(ctx, "a", time.Second, "", nil) },
		"Resume": func(ctx context.Context) error {
			return second(p.Resume(ctx, berth.Token{Kind: "pool", Namespace: "berth", Name: proxies, Claim: "c", Node: "n"}))
		},
		"Unbind": func(ctx context.Context) error { return p.Unbind(ctx, "b") },
	}
	for name, allocate := range allocates(p) {
		all[name] = func(ctx context.Context) error { return allocate(ctx, nil) }
	}
	return all
}

func TestEachCallOfAPoolThatCannotBeSaysWhy(t *testing.T) {
	type row struct {
		field string
		pool  func(n *node.Node) *allocator.Pool[string]
	}
	inEach(t, map[string]row{
		"a bad default": {"Defaults.Lease", func(n *node.Node) *allocator.Pool[string] {
			return allocator.New(n, "other", allocator.Config[string]{Defaults: allocator.AllocateOptions{Lease: ms}})
		}},
		"no node": {"node", func(*node.Node) *allocator.Pool[string] {
			return allocator.New(nil, "other", allocator.Config[string]{})
		}},
		"a bad name": {"name", func(n *node.Node) *allocator.Pool[string] {
			return allocator.New(n, "a}b", allocator.Config[string]{})
		}},
		"a second one of a name": {"name", func(n *node.Node) *allocator.Pool[string] {
			return allocator.New(n, proxies, allocator.Config[string]{Source: slowly(0, "a")})
		}},
	}, func(t *testing.T, w *world, c row) {
		w.add("a")
		n := w.node()
		held := n.take(nil)
		n.connect()
		ctx, bad := t.Context(), c.pool(n.node)
		all := calls(bad)
		require.ElementsMatch(t, methods(bad, "Close", "Fence", "Name", "Wanted"), slices.Collect(maps.Keys(all)))
		why := bad.Unbind(ctx, "b")
		requireInvalid(t, c.field, why)
		for name, call := range all {
			require.Same(t, why, call(ctx), name)
		}
		require.Zero(t, bad.Fence(held.Context()))
		require.Nil(t, bad.Wanted(held.Context()))
		require.NotEmpty(t, bad.Name())
		require.NoError(t, bad.Close(ctx))
		require.Empty(t, n.Counts(), "nothing is sent")
		switch _, err := n.node.Check(ctx); c.field {
		case "node", "name": // it is another node, a stranger may have chosen it, the first pool may be closed in a moment
			require.NoError(t, err)
		default:
			require.Same(t, why, err)
		}
		require.NoError(t, held.Err(), "another pool of the node goes on")
	})
}

func TestEachCallOfAnOperatorWithoutANodeSaysWhy(t *testing.T) {
	t.Parallel()
	ctx, o := t.Context(), allocator.NewOperator(nil)
	all := map[string]error{
		"Bindings": last(o.Bindings(ctx, proxies)), "Inspect": second(o.Inspect(ctx, proxies)), "Resource": second(o.Resource(ctx, proxies, "a")),
		"Resources": last(o.Resources(ctx, proxies)), "Set": o.Set(ctx, proxies, "", allocator.Settings{Reset: true}),
		"Settings": second(o.Settings(ctx, proxies)),
	}
	require.ElementsMatch(t, methods(o, "InspectAtOnce"), slices.Collect(maps.Keys(all)))
	requireInvalid(t, "node", all["Set"])
	for name, err := range all {
		require.Same(t, all["Set"], err, name)
	}
}
