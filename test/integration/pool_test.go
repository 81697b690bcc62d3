package integration

import (
	"context"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// proxies is the pool of tests that need only one.
const proxies = "proxies"

type (
	poolConfig = allocator.PoolConfig[string]
	allocation = allocator.Allocation[string]
)

// pool is a pool as one node sees it, with the calls for operators.
type pool struct {
	*allocator.Pool[string]
	node *node.Node
	ops  *allocator.Operator
}

// proxies is the pool as the node sees it.
func (w *world) proxies(n *node.Node, cfg poolConfig) *pool { return poolOf(n, proxies, cfg) }

func poolOf(n *node.Node, name string, cfg poolConfig) *pool {
	return &pool{allocator.New(n, name, cfg), n, allocator.NewOperator(n)}
}

// pool is the pool on a node and a connection of its own.
func (w *world) pool(cfg node.Config) *pool {
	w.Helper()
	return w.proxies(w.node(cfg), poolConfig{})
}

// add puts resources into the pool.
func (w *world) add(p *pool, resources ...string) {
	w.Helper()
	change, err := p.Add(w.Within(patience), resources, nil)
	require.NoError(w, err)
	require.Len(w, resources, change.Added+change.Kept)
}

// numbered are so many names of resources.
func numbered(many int) []string {
	all := make([]string, many)
	for i := range all {
		all[i] = "r" + strconv.Itoa(i)
	}
	return all
}

// allocate takes a resource, and fails the test if that takes too long.
func (w *world) allocate(p *pool, opts *allocator.AllocateOptions) *allocation {
	w.Helper()
	a, err := p.Allocate(w.Within(patience), opts)
	require.NoError(w, err)
	return a
}

// allocateQueue begins an allocation, and returns when so many wait on the server.
func (w *world) allocateQueue(p *pool, opts *allocator.AllocateOptions, waiting int) *testkit.Call[*allocation] {
	w.Helper()
	q := testkit.Begin(w.Within(2*patience), func(ctx context.Context) (*allocation, error) { return p.Allocate(ctx, opts) })
	w.awaitInLine(proxies, waiting, q.Over)
	return q
}

// inspected checks that the pool is whole, and that nothing of it is lost.
func (w *world) inspected(p *pool) allocator.Inspection {
	w.Helper()
	found, err := p.ops.Inspect(w.Within(patience), p.Name())
	require.NoError(w, err)
	require.Empty(w, found.Problems)
	require.Equal(w, found.Resources, found.Free+found.Leased+found.Resting, "%+v", found)
	return found
}

// allFree checks that nobody holds or waits, and that so many resources are free and
// none are anything else.
func (w *world) allFree(p *pool, many int) {
	w.Helper()
	w.swept(p.Name())
	s := w.inspected(p)
	require.Equal(w, allocator.Inspection{Resources: many, Free: many, Bindings: s.Bindings}, s)
	w.idle(p.Name())
}

// itemsKey, freeKey and bindingsKey are the keys that only pools have.
func (w *world) itemsKey(name string) string { return w.space.Key(w.kind, name, keyspace.ItemsPart) }

func (w *world) freeKey(name string) string { return w.space.Key(w.kind, name, keyspace.FreePart) }

func (w *world) bindingsKey(name string) string {
	return w.space.Key(w.kind, name, keyspace.BindingsPart)
}

// ofPool reads a field that only pools have.
func (v *view) ofPool(w *world, field, value string) bool {
	w.Helper()
	switch {
	case field == "pool":
		for _, word := range strings.Fields(value)[:8] { // behind them are the settings
			n, err := strconv.ParseInt(word, 10, 64)
			require.NoError(w, err, value)
			v.counts = append(v.counts, n)
		}
		return true
	case strings.HasPrefix(field, "r:"):
		v.resources[field[2:]] = value
		return true
	}
	return field == "refresh" || field == "replace" || field == "removed"
}

// poolWhole checks what only pools have.
func (w *world) poolWhole(name string, v view) {
	w.Helper()
	require.Empty(w, missing(v.holds, v.resources), "holds of nothing")
	require.Empty(w, missing(v.resources, v.holds), "resources of no hold")
	if v.counts != nil && v.counts[0] > 0 {
		require.Len(w, v.expires, len(w.keysOf(name)), "%q has lost a key", name)
	}
}

// load gives the server all scripts, so that a call is one command.
func (w *world) load() {
	w.Helper()
	for _, s := range library.Scripts() {
		w.do("SCRIPT", "LOAD", s.Source())
	}
}
