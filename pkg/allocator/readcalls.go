package allocator

import (
	"context"
	"strconv"

	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// Here is what only reads a pool.

// resourcesPage reads a page of all resources. The cursor is "0" to begin with, and when all have been seen.
func (f face) resourcesPage(ctx context.Context, name, cursor string) (next string, page []ResourceInfo, err error) {
	found, next, err := f.look.ResourcesPage(ctx, name, cursor)
	return next, infosOf(found), err
}

func infosOf(found []reader.Resource) (infos []ResourceInfo) {
	for _, r := range found {
		info := ResourceInfo{
			Resource: r.Key, State: State(r.Word), Left: r.Left, Reason: r.Reason, Expiry: r.Expiry, Leaving: r.Leaving,
			MaxSharers: r.Sharers, Holders: r.Holders,
		}
		if r.Own != nil {
			info.Own = settingsOf(*r.Own)
			info.Own.ByOperator = true
		}
		infos = append(infos, info)
	}
	return infos
}

// bindingsPage reads a page of the bindings, with cursors as resourcesPage has them.
func (f face) bindingsPage(ctx context.Context, name, cursor string) (next string, page []Binding, err error) {
	found, next, err := f.look.BindingsPage(ctx, name, cursor)
	for _, b := range found {
		page = append(page, Binding(b))
	}
	return next, page, err
}

// inspectOnce runs pool_inspect.
func (f face) inspectOnce(ctx context.Context, name string, atOnce int, part, cursor string) (step inspectStep, err error) {
	r, err := f.Run(ctx, composed.PoolInspect, scriptkit.Bounded, name, part, cursor, strconv.Itoa(page), strconv.Itoa(atOnce))
	if err != nil {
		return step, err
	}
	if r.Status() != statusPart {
		return step, line.Unexpected(name, &r)
	}
	step.part, step.cursor, step.mark = r.Str(1), r.Str(2), r.Str(3)
	step.stored = sums{resources: r.Int(4), free: r.Int(5), leased: r.Int(6), leaving: r.Int(7), holds: r.Int(8), places: r.Int(9), parked: r.Int(10)}
	step.seen = sums{
		resources: r.Int(11), free: r.Int(12), leased: r.Int(13), resting: r.Int(14), leaving: r.Int(15), bindings: r.Int(16),
		listed: r.Int(17), holds: r.Int(18), places: r.Int(19), parked: r.Int(20),
	}
	for i := 21; i < r.Len(); i += 2 {
		step.problems = append(step.problems, [2]string{r.Str(i), r.Str(i + 1)})
	}
	return step, r.Err()
}
