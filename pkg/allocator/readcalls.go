package allocator

import (
	"context"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Here are the scripts about a pool that only read.

// describe reads the resources given, or with a cursor a page of all.
func (n *node) describe(ctx context.Context, name, cursor string, resources []string) (next string, page []ResourceInfo, err error) {
	r, err := n.Run(ctx, n.resources, scriptkit.Bounded, name, append([]string{cursor, "100"}, resources...)...)
	if err != nil {
		return "", nil, err
	}
	if r.Status() != statusPage {
		return "", nil, line.Unexpected(name, &r)
	}
	page, err = described(name, &r, 3)
	return r.Str(1), page, err
}

// listed is a page of the list of free resources.
type listed struct {
	next  string // the resource behind it, "" at the end of the list
	first string // the one with which the list begins, "" for none
	size  int    // how many are in the list
	page  []ResourceInfo
}

// list runs pool_resources on the list of free resources. The page begins at a resource that was
// behind another one, or anew.
func (n *node) list(ctx context.Context, name string, w way, from, before string) (listed, error) {
	r, err := n.Run(ctx, n.resources, scriptkit.Bounded, name, string(w), "100", from, before)
	if err != nil {
		return listed{}, err
	}
	if r.Status() != statusList {
		return listed{}, line.Unexpected(name, &r)
	}
	page, err := described(name, &r, 5)
	return listed{next: r.Str(1), first: r.Str(3), size: int(r.Int(4)), page: page}, err
}

// described reads the resources of a reply, from its i-th field on.
func described(name string, r *scriptkit.Reply, i int) (page []ResourceInfo, err error) {
	now := time.UnixMilli(r.Int(2))
	for ; i < r.Len(); i += 9 {
		info := ResourceInfo{
			Resource: r.Str(i), State: State(r.Str(i + 1)), Left: line.Left(r.Int(i + 2)), Reason: r.Str(i + 3),
			Expiry: state.Millis(r.Int(i + 4)), Leaving: r.Int(i+5) == 1, MaxSharers: int(r.Int(i + 6)),
		}
		if info.Left < 0 {
			info.Left = berth.Forever
		}
		if own := r.Str(i + 7); own != "" {
			if info.Own, err = parseOwn(own); err != nil {
				return nil, err
			}
		}
		for range r.Int(i + 8) {
			ends := now.UnixMilli() + r.Int(i+10)
			if r.Int(i+10) < 0 {
				ends = state.Forever
			}
			h, err := reader.Holder(name, r.Str(i+9), now, ends, r.Str(i+11))
			if err != nil {
				return nil, err
			}
			h.Resource = info.Resource
			info.Holders = append(info.Holders, h)
			i += 3
		}
		page = append(page, info)
	}
	return page, r.Err()
}

// bindingsPage runs pool_bindings: for one binding, or for a page of all.
func (n *node) bindingsPage(ctx context.Context, name, binding, cursor string) (next string, page []Binding, err error) {
	keys := []string{
		n.space.State(keyspace.Pool, name),
		n.space.Key(keyspace.Pool, name, keyspace.ItemsPart),
		n.space.Key(keyspace.Pool, name, keyspace.BindingsPart),
	}
	r, err := n.run.Run(ctx, n.bindings, scriptkit.Bounded, keys, []string{binding, cursor, "100"})
	if err != nil {
		return "", nil, err
	}
	if r.Status() != statusPage {
		return "", nil, line.Unexpected(name, &r)
	}
	next = r.Str(1)
	for i := 2; i < r.Len(); i += 3 {
		b := Binding{Name: r.Str(i), Resource: r.Str(i + 1), Left: line.Left(r.Int(i + 2))}
		if b.Left < 0 {
			b.Left = berth.Forever
		}
		page = append(page, b)
	}
	return next, page, r.Err()
}

// inspectOnce runs pool_inspect.
func (n *node) inspectOnce(ctx context.Context, name string, atOnce int, part, cursor string) (step inspectStep, err error) {
	r, err := n.Run(ctx, n.inspecting, scriptkit.Bounded, name, part, cursor, strconv.Itoa(page), strconv.Itoa(atOnce))
	if err != nil {
		return step, err
	}
	if r.Status() != statusPart {
		return step, line.Unexpected(name, &r)
	}
	step.part, step.cursor, step.moves = r.Str(1), r.Str(2), r.Int(3)
	step.stored = sums{resources: r.Int(4), free: r.Int(5), leased: r.Int(6), leaving: r.Int(7), holds: r.Int(8), places: r.Int(9), parked: r.Int(10)}
	step.seen = sums{
		resources: r.Int(11), free: r.Int(12), leased: r.Int(13), resting: r.Int(14), leaving: r.Int(15), bindings: r.Int(16),
		walked: r.Int(17), linked: r.Int(18), holds: r.Int(19), places: r.Int(20), parked: r.Int(21),
	}
	for i := 22; i < r.Len(); i += 2 {
		step.problems = append(step.problems, [2]string{r.Str(i), r.Str(i + 1)})
	}
	return step, r.Err()
}
