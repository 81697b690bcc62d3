package allocator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
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

func TestABoundClaimGetsItsResourceIfThatIsFree(t *testing.T) {
	for _, policy := range []allocator.Policy{allocator.LeastRecent, allocator.MostRecent, allocator.Random} {
		t.Run(policy.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b", "c", "d", "e")
				n := w.nodeOf(allocator.PoolConfig[string]{Policy: policy})
				w.bind("customer", "c", 0)
				for range 3 {
					w.Advance(time.Minute)
					held := n.takes("c", to("customer"))
					w.release(n.take(nil)) // what others take meanwhile
					w.release(n.take(to("another")))
					w.release(held)
				}
				bound, _ := w.binding("customer")
				require.Equal(t, "c", bound)
				w.inspect()
			})
		})
	}
}

func TestAClaimIsBoundToWhatItGets(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c")
		n, other := w.node(), w.node()
		bound, _ := w.binding("customer")
		require.Empty(t, bound)
		held := n.takes("a", to("customer"))
		bound, left := w.binding("customer")
		require.Equal(t, "a", bound)
		require.Equal(t, time.Hour, left, "as the default is")
		w.release(held)
		require.Equal(t, []string{"b", "c", "a"}, w.list())
		other.takes("a", to("customer"))
		other.takes("b", to("another"))
		bound, _ = w.binding("another")
		require.Equal(t, "b", bound)
	})
}

// What the claim is bound to is not to be had: it gets another one at once, and stays
// with that.
func TestAClaimWhoseResourceIsNotToBeHadIsBoundToAnotherOne(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		lose  func(w *world) // while time stands at 0
		at    time.Duration
		again func(w *world) // makes it free again; nil if it cannot be
	}{
		"it is leased": {
			lose:  func(w *world) { w.acquireBound("x", "bound") },
			again: func(w *world) { w.vacate("x") },
		},
		"it rests": {
			lose:  func(w *world) { require.NoError(w.T, w.pool.Rest(ctx, "bound", time.Hour, "", nil)) },
			again: func(w *world) { require.NoError(w.T, w.pool.Rest(ctx, "bound", 0, "", nil)) },
		},
		"it has expired": {
			lose: func(w *world) {
				_, err := w.pool.Add(ctx, []string{"bound"}, &allocator.AddOptions{Expiry: time.Second})
				require.NoError(w.T, err)
			},
			at:    time.Second,
			again: func(w *world) { w.add("bound") },
		},
		"it was removed": {
			lose: func(w *world) {
				_, err := w.pool.Remove(ctx, []string{"bound"})
				require.NoError(w.T, err)
			},
			again: func(w *world) { w.add("bound") },
		},
		"it is leaving": {
			lose: func(w *world) {
				w.acquireBound("x", "bound")
				_, err := w.pool.Remove(ctx, []string{"bound"})
				require.NoError(w.T, err)
			},
			again: func(w *world) {
				w.vacate("x")
				w.add("bound")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "bound", "c")
				w.bind("customer", "bound", 0)
				c.lose(w)
				w.Until(c.at)
				n := w.node()
				held := n.takes("a", to("customer"))
				bound, _ := w.binding("customer")
				require.Equal(t, "a", bound)
				c.again(w)
				w.release(held)
				require.Equal(t, allocator.Free, w.status("bound").State)
				n.takes("a", to("customer"))
				w.inspect()
			})
		})
	}
}

// acquireBound takes one resource for an hour, as occupy does.
func (w *world) acquireBound(node, resource string) {
	w.T.Helper()
	w.bind("for "+node, resource, 0)
	reply := w.acquireScript(node, node+".1", func(r *engine.Record) {
		r.Lease, r.Wait, r.Extra = time.Hour, time.Hour, "o 0 3600000 0 0:for "+node
	})
	require.Equal(w.T, "granted", reply.Status())
	require.Equal(w.T, node+".1", w.holder(resource))
}

func TestABoundClaimGetsItsResourceFromAHolderWhoseLeaseRanOut(t *testing.T) {
	ctx := context.Background()
	for name, lose := range map[string]func(w *world){
		"a lease": func(w *world) {
			w.bind("for x", "bound", 0)
			w.acquireScript("x", "x.1", func(r *engine.Record) { r.Extra = "o 0 3600000 0 0:for x" })
			require.Equal(w.T, "x.1", w.holder("bound"))
		},
		"a rest": func(w *world) { require.NoError(w.T, w.pool.Rest(ctx, "bound", lease, "", nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "bound", "c")
				w.bind("customer", "bound", 0)
				lose(w)
				n := w.node()
				w.Until(lease)
				require.NotContains(t, w.list(), "bound", "nobody has swept it")
				n.Fresh()
				n.takes("bound", to("customer"))
				require.Equal(t, map[string]int{"pool_acquire": 1}, n.Scripts())
				w.inspect()
			})
		})
	}
}

func TestABindingEndsExactlyWhenItShould(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		lasts, ends time.Duration
	}{"a second": {time.Second, time.Second}, "the default": {0, time.Hour}} {
		for by, begin := range map[string]func(w *world, n *proc){
			"Bind": func(w *world, _ *proc) { w.bind("customer", "b", c.lasts) },
			"an allocation": func(w *world, n *proc) {
				w.bind("customer", "b", ms)
				held := n.takes("b", &allocator.AllocateOptions{Bind: "customer", BindFor: c.lasts})
				w.release(held)
			},
		} {
			t.Run(name+" from "+by, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.add("a", "b")
					begin(w, w.node())
					bound, left := w.binding("customer")
					require.Equal(t, "b", bound)
					require.Equal(t, c.ends, left)
					w.Until(c.ends - ms)
					bound, left = w.binding("customer")
					require.Equal(t, "b", bound)
					require.Equal(t, ms, left)
					w.Until(c.ends)
					bound, left = w.binding("customer")
					require.Empty(t, bound)
					require.Zero(t, left)
					require.Empty(t, testkit.Collect(t, w.ops().Bindings(ctx, proxies)))
					n := w.node()
					before := w.list()[0]
					n.takes(before, to("customer"))
				})
			})
		}
	}
}

func TestEachGrantCountsItsBindingAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		w.bind("customer", "b", time.Second)
		n := w.node()
		for range 10 {
			w.Advance(900 * ms)
			w.release(n.takes("b", &allocator.AllocateOptions{Bind: "customer", BindFor: time.Second}))
		}
		w.Advance(time.Second)
		_, err := w.ops().Sweep(t.Context(), proxies)
		require.NoError(t, err)
		require.NotContains(t, w.Dump(), "customer", "it has been dropped")
		w.inspect()
	})
}

func TestABindingWithoutEndLasts(t *testing.T) {
	for by, begin := range map[string]func(w *world, n *proc){
		"Bind": func(w *world, _ *proc) { w.bind("customer", "b", berth.Forever) },
		"an allocation": func(w *world, n *proc) {
			w.bind("customer", "b", time.Minute) // a shorter one before has an end in the line
			w.release(n.takes("b", &allocator.AllocateOptions{Bind: "customer", BindFor: berth.Forever}))
		},
	} {
		t.Run(by, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b")
				begin(w, w.node())
				w.Until(3 * time.Hour)
				_, err := w.ops().Sweep(t.Context(), proxies)
				require.NoError(t, err)
				bound, left := w.binding("customer")
				require.Equal(t, "b", bound)
				require.Equal(t, berth.Forever, left)
				require.Equal(t, []allocator.Binding{{Name: "customer", Resource: "b", Left: berth.Forever}},
					testkit.Collect(t, w.ops().Bindings(t.Context(), proxies)))
				w.node().takes("b", to("customer"))
				w.inspect()
			})
		})
	}
}

func TestBindingsAreMadeListedAndEnded(t *testing.T) {
	ctx := context.Background()
	inWorld(t, func(t *testing.T, w *world) {
		require.NoError(t, w.pool.Unbind(ctx, "nobody"))
		require.ErrorIs(t, w.pool.Bind(ctx, "one", "a", nil), berth.ErrAbsent)
		require.Empty(t, w.Keys())
		w.add("a", "\xff|\n")
		names := []string{"one", "|", "a b", "ü\xff", strings.Repeat("n", 512)}
		for i, name := range names {
			w.bind(name, []string{"a", "\xff|\n"}[i%2], time.Minute)
		}
		w.bind("|", "a", time.Second)
		w.bind("one", "\xff|\n", berth.Forever) // in place of another one
		got := make(map[string]allocator.Binding)
		for _, b := range testkit.Collect(t, w.ops().Bindings(ctx, proxies)) {
			got[b.Name] = b
		}
		require.Equal(t, map[string]allocator.Binding{
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

		_, err := w.pool.Remove(ctx, []string{"\xff|\n"})
		require.NoError(t, err)
		bound, left := w.binding("ü\xff")
		require.Empty(t, bound, "its resource is gone")
		require.Zero(t, left)
		require.Len(t, testkit.Collect(t, w.ops().Bindings(ctx, proxies)), 4)
		for _, err := range w.ops().Bindings(ctx, proxies) {
			require.NoError(t, err)
			break // an iterator that went on would panic
		}
		w.inspect()
		for _, err := range []error{
			w.pool.Bind(ctx, "", "a", nil), w.pool.Bind(ctx, strings.Repeat("n", 513), "a", nil), w.pool.Bind(ctx, "n", "", nil),
			w.pool.Bind(ctx, "n", "a", &allocator.BindOptions{BindFor: -1}), w.pool.Unbind(ctx, ""),
			w.pool.Bind(ctx, "n", "a", &allocator.BindOptions{BindFor: time.Microsecond}),
		} {
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
		}
	})
}

// Two come free in one script. The first in line gets the one that came back first,
// unless it is bound to the other.
func TestABoundClaimThatWaitsGetsItsResourceAtTheHandOff(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		binds         []string // of those who wait
		first, second string
		bound         string // to what customer is bound then
	}{
		"nobody is bound":                      {[]string{"", ""}, "a", "b", "b"},
		"the first is":                         {[]string{"customer", ""}, "b", "a", "b"},
		"the second is":                        {[]string{"", "customer"}, "a", "b", "b"},
		"the first of two to the same":         {[]string{"customer", "customer"}, "b", "a", "a"},
		"the second to what the first has got": {[]string{"", "other"}, "a", "b", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b")
				w.acquireScript("x", "x.1")
				w.acquireScript("y", "y.1")
				w.bind("customer", "b", 0)
				w.bind("other", "a", 0)
				w.Until(time.Second)
				n, m := w.node(), w.node()
				first := n.queue(to(c.binds[0]))
				second := m.queue(to(c.binds[1]))
				first.getsIn(lease, c.first)
				second.getsIn(lease, c.second)
				bound, _ := w.binding("customer")
				require.Equal(t, c.bound, bound)
				if c.binds[1] == "other" {
					bound, left := w.binding("other")
					require.Equal(t, "b", bound)
					require.Equal(t, time.Hour, left, "from the grant on")
				}
				w.inspect()
				_, err := w.ops().Sweep(ctx, proxies)
				require.NoError(t, err)
			})
		})
	}
}

// A binding is a wish and no claim: who waits does not wait for its resource.
func TestABoundClaimThatWaitsTakesWhatComesFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		w.occupy("x")
		w.occupy("y")
		w.bind("customer", "b", 0)
		n := w.node()
		q := n.queue(to("customer"))
		w.vacate("x")
		q.gets(0, "a")
		bound, _ := w.binding("customer")
		require.Equal(t, "a", bound)
	})
}

// What an operator has bound for longer than a grant asks for stays so.
func TestAGrantShortensNoBinding(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		w.bind("customer", "b", berth.Forever)
		for range 3 {
			w.release(n.takes("b", to("customer")))
			bound, left := w.binding("customer")
			require.Equal(t, "b", bound)
			require.Equal(t, berth.Forever, left)
		}
		w.bind("customer", "b", 2*time.Hour)
		b := n.takes("b", to("customer"))
		_, left := w.binding("customer")
		require.Equal(t, 2*time.Hour, left, "an operator may shorten it")
		w.release(b)
		w.Advance(90 * time.Minute)
		w.release(n.takes("b", to("customer")))
		_, left = w.binding("customer")
		require.Equal(t, time.Hour, left, "and a grant lengthens it")
		held := n.takes("b", &allocator.AllocateOptions{Bind: "customer", BindFor: berth.Forever})
		w.release(n.takes("a", to("customer")))
		bound, left := w.binding("customer")
		require.Equal(t, "a", bound, "another resource has a binding of its own")
		require.Equal(t, time.Hour, left)
		w.release(held)
		w.inspect()
	})
}
