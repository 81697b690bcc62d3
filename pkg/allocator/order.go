package allocator

import (
	"cmp"
	"context"
	"iter"

	"github.com/berth-go/berth"
)

// order is whether free resources are handed out from the last one on, by the policy that is set.
func (p *core) order(ctx context.Context) (back bool, err error) {
	if err := p.usable(); err != nil {
		return false, err
	}
	set, err := p.pools.settings(ctx, p.name)
	if err != nil {
		return false, err
	}
	policy := cmp.Or(set.Policy, p.agreed.says.Policy)
	if policy == Random {
		return false, berth.Invalid("Policy", "under Random there is no order")
	}
	return policy == MostRecent, nil
}

// FreeInOrder yields the resources that the next claims may get, in the order in which claims
// get them: under LeastRecent from the resource that came back first, under MostRecent from the
// last. With MaxSharers, leased resources with room are included. Claims with a Bind may take
// any of these resources out of turn.
//
// FreeInOrder reads pages of 100 and changes nothing. A resource that keeps its place from
// beginning to end is yielded, once. A resource that comes or goes meanwhile may or may not be
// yielded. A resource whose rest or lease has ended by time is yielded only once a call has noticed
// the end. FreeInOrder ends after an error: berth.ErrInvalidConfig under Random, which has no
// order; berth.ErrIncompatible; or the server's error.
func (p *Pool[T]) FreeInOrder(ctx context.Context) iter.Seq2[ResourceInfo, error] {
	return func(yield func(ResourceInfo, error) bool) {
		back, err := p.core.order(ctx)
		if err == nil {
			err = p.core.inOrder(ctx, back, func(info ResourceInfo) bool { return yield(info, nil) })
		}
		if err != nil {
			yield(ResourceInfo{}, err)
		}
	}
}

// inOrder yields the free resources in their order, or back from the last one, each that may be had, once. A resource that
// comes back meanwhile stands behind all others, so after as many resources as were free at the beginning only newer ones
// follow. Even if resources come back faster than they are read, at most twice that number is read.
func (p *core) inOrder(ctx context.Context, back bool, yield func(ResourceInfo) bool) error {
	seen := make(map[string]bool)
	for from, read, most := int64(0), 0, 0; ; {
		found, next, count, err := p.pools.look.FreePage(ctx, p.name, back, from)
		if err != nil {
			return err
		}
		if from == 0 {
			most = count
		}
		for _, info := range infosOf(found) {
			key := info.Resource
			room := info.State == Free || info.State == Leased && len(info.Holders) < info.MaxSharers
			if !seen[key] && room && !yield(info) {
				return nil
			}
			seen[key] = true
		}
		if read += len(found); next == 0 || len(seen) >= most || read >= 2*most {
			return nil
		}
		from = next
	}
}
