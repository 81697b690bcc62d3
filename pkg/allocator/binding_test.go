package allocator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
)

// bind binds a name to a resource, or fails.
func (w *world) bind(name, resource string, lasts time.Duration) {
	w.T.Helper()
	require.NoError(w.T, w.pool.Bind(context.Background(), name, resource, &allocator.BindOptions{BindFor: lasts}))
}

// binding is the resource that a name is bound to, and how long.
func (w *world) binding(name string) (string, time.Duration) {
	w.T.Helper()
	b, err := w.pool.Binding(context.Background(), name)
	require.NoError(w.T, err)
	require.Equal(w.T, name, b.Name)
	return b.Resource, b.Left
}

func to(name string) *allocator.AllocateOptions { return &allocator.AllocateOptions{Bind: name} }

// What an operator has bound for longer than a grant asks for stays so.
func TestEachGrantCountsItsBindingAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		w.bind("customer", "b", time.Second)
		n := w.node()
		for range 10 {
			w.Advance(900 * ms)
			w.release(n.takes("b", &allocator.AllocateOptions{Bind: "customer", BindFor: time.Second}))
		}
		for _, longer := range []time.Duration{berth.Forever, 2 * time.Hour} {
			w.bind("customer", "b", longer)
			w.release(n.takes("b", to("customer")))
			_, left := w.binding("customer")
			require.Equal(t, longer, left)
		}
		held := n.takes("b", to("customer"))
		w.release(n.takes("a", to("customer")))
		bound, left := w.binding("customer")
		require.Equal(t, "a", bound)
		require.Equal(t, time.Hour, left, "another resource has a binding of its own")
		w.set("", allocator.Settings{BindFor: time.Minute})
		w.bind("customer", "b", 0)
		_, left = w.binding("customer")
		require.Equal(t, time.Minute, left, "as the settings say")
		w.release(held)
		w.Advance(time.Minute)
		n.takes("a", to("customer"))
		w.inspect()
	})
}

func TestBindingsAreMadeListedAndEnded(t *testing.T) {
	ctx := context.Background()
	inWorld(t, func(t *testing.T, w *world) {
		require.NoError(t, w.pool.Unbind(ctx, "nobody"))
		require.ErrorIs(t, w.pool.Bind(ctx, "one", "a", nil), berth.ErrAbsent)
		require.Empty(t, w.Keys())
		w.add("a", "\xff|\n")
		for i, name := range []string{"one", "|", "a b", "ü\xff", strings.Repeat("n", 512)} {
			w.bind(name, []string{"a", "\xff|\n"}[i%2], time.Minute)
		}
		w.bind("|", "a", time.Second)
		w.bind("one", "\xff|\n", berth.Forever) // in place of another one
		got := make(map[string]berth.Binding)
		for _, b := range testkit.Collect(t, w.ops().Bindings(ctx, proxies)) {
			got[b.Name] = b
		}
		require.Equal(t, map[string]berth.Binding{
			"one":                    {Name: "one", Resource: "\xff|\n", Left: berth.Forever},
			"|":                      {Name: "|", Resource: "a", Left: time.Second},
			"a b":                    {Name: "a b", Resource: "a", Left: time.Minute},
			"ü\xff":                  {Name: "ü\xff", Resource: "\xff|\n", Left: time.Minute},
			strings.Repeat("n", 512): {Name: strings.Repeat("n", 512), Resource: "a", Left: time.Minute},
		}, got)
		for range 2 {
			require.NoError(t, w.pool.Unbind(ctx, "one"))
			bound, _ := w.binding("one")
			require.Empty(t, bound)
		}
		w.inspect()
		w.node().takes("a", to("one"))

		w.remove("\xff|\n")
		bound, left := w.binding("ü\xff")
		require.Empty(t, bound, "its resource is gone")
		require.Zero(t, left)
		require.Len(t, testkit.Collect(t, w.ops().Bindings(ctx, proxies)), 4)
		for _, err := range w.ops().Bindings(ctx, proxies) {
			require.NoError(t, err)
			break // an iterator that went on would panic
		}
		w.inspect()
	})
}

// However it was made.
func TestABindingEndsExactlyWhenItShould(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		sweep := func() { require.NoError(t, second(w.ops().Sweep(t.Context(), proxies))) }
		w.bind("by Bind", "b", time.Second)
		w.bind("by a grant", "b", ms) // an earlier end is in the line
		w.release(n.takes("b", &allocator.AllocateOptions{Bind: "by a grant", BindFor: time.Second}))
		w.bind("for ever", "b", berth.Forever)
		w.Until(time.Second - ms)
		sweep()
		for _, name := range []string{"by Bind", "by a grant"} {
			bound, left := w.binding(name)
			require.Equal(t, "b", bound, name)
			require.Equal(t, ms, left, name)
		}
		w.Until(time.Second)
		bound, left := w.binding("by Bind")
		require.Empty(t, bound)
		require.Zero(t, left)
		require.Equal(t, []berth.Binding{
			{Name: "for ever", Resource: "b", Left: berth.Forever},
		}, testkit.Collect(t, w.ops().Bindings(t.Context(), proxies)))
		w.release(n.takes("a", to("by a grant")))
		w.Advance(3 * time.Hour)
		sweep()
		n.takes("b", to("for ever"))
	})
}

// Under each policy, whatever others take meanwhile. A resource that somebody else has it does not wait for: it is
// bound to another one then.
func TestABoundClaimGetsItsResourceIfThatIsFree(t *testing.T) {
	inEach(t, map[string]allocator.Policy{
		"least recent": allocator.LeastRecent, "most recent": allocator.MostRecent, "random": allocator.Random,
	}, func(t *testing.T, w *world, policy allocator.Policy) {
		w.add("a", "b", "c", "d", "e")
		n := w.nodeOf(allocator.Config[string]{Policy: policy})
		w.bind("customer", "c", 0)
		for range 3 {
			w.Advance(time.Minute)
			held := n.takes("c", to("customer"))
			w.release(n.take(nil)) // what others take meanwhile
			w.release(n.take(to("another")))
			w.release(held)
		}
		held := n.takes("c", to("customer"))
		next := n.take(to("customer"))
		w.release(held)
		bound, left := w.binding("customer")
		require.Equal(t, next.Resource(), bound)
		require.Equal(t, time.Hour, left, "as the default is")
		w.inspect()
	})
}
