package contender

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
)

// Size is how many resources the pools here have.
const Size = 100

// Pool is Berth's pool used in the way of a lock: one resource of 100. It is one pool whatever
// the name, filled when it is opened.
var Pool = Contender{Name: "pool", How: "Berth's, 100 resources, defaults", Open: openPool}

// Pools are Berth's and that of another, Berth's first.
var Pools = []Contender{
	Pool,
	linked.contender("redis-allocator", "PyPI's, 100 resources, timeout 120 s, neither policy nor binding; two scripts by rueidis"),
}

// Resources are the resources of a pool of some size.
func Resources(size int) []string {
	all := make([]string, size)
	for i := range all {
		all[i] = fmt.Sprintf("resource-%07d", i)
	}
	return all
}

func openPool(addr string) (Locker, error) {
	n, err := OpenNode(addr, node.Config{})
	if err != nil {
		return nil, err
	}
	pool, err := Fill(context.Background(), n.Node, "pool", Size)
	if err != nil {
		n.Close()
		return nil, err
	}
	return taking{n, func(ctx context.Context, _ string) (releaser, error) { return pool.Allocate(ctx, nil) }}, nil
}

// Fill makes a pool of some size, which is not there yet.
func Fill(ctx context.Context, n *node.Node, name string, size int) (*allocator.Pool[string], error) {
	pool := allocator.New(n, name, allocator.Config[string]{})
	change, err := pool.Add(ctx, Resources(size), nil)
	if err == nil && change.Added != size {
		err = fmt.Errorf("%d of %d resources were added", change.Added, size)
	}
	return pool, err
}
