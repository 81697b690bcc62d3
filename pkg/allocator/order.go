package allocator

import (
	"cmp"
	"context"
	"iter"

	"github.com/berth-go/berth"
)

// way is a direction in the list of free resources, as pool_list takes it.
type way string

const (
	fromHead way = "n"
	fromTail way = "p"
)

// order is the way in which free resources are handed out, by the policy that is set.
func (p *core) order(ctx context.Context) (way, error) {
	if err := p.usable(); err != nil {
		return "", err
	}
	set, err := p.pools.settings(ctx, p.name)
	if err != nil {
		return "", err
	}
	switch cmp.Or(set.Policy, p.agreed.says.Policy) {
	case MostRecent:
		return fromTail, nil
	case Random:
		return "", berth.Invalid("Policy", "under Random there is no order")
	}
	return fromHead, nil
}

// FreeInOrder goes through the resources that the next claims may get, in the order in which
// claims get them: under LeastRecent the one that came back first is the first, under
// MostRecent the last. With MaxSharers, leased ones with room are among them. Claims with a
// Bind may take any of them out of turn.
//
// It reads pages of 100, and promises of a resource that nobody takes and that keeps its place from
// beginning to end that it is there, once. What comes and goes meanwhile may be there or
// not. What comes free by time alone is there once a call has met it. FreeInOrder only
// reads. It ends after an error: berth.ErrInvalidConfig under Random, which has no order;
// berth.ErrIncompatible, or the server's.
func (p *Pool[T]) FreeInOrder(ctx context.Context) iter.Seq2[ResourceInfo, error] {
	return func(yield func(ResourceInfo, error) bool) {
		w, err := p.core.order(ctx)
		if err == nil {
			err = p.core.inOrder(ctx, w, func(info ResourceInfo) bool { return yield(info, nil) })
		}
		if err != nil {
			yield(ResourceInfo{}, err)
		}
	}
}

// inOrder walks through the list of free resources, and yields each that may be had, once.
//
// Whatever comes back goes to the tail. So a page must not begin at a resource that was taken and
// has come back: from the head, all between its old place and the tail would be left out. Such a
// page begins anew. The script sees it where the one before is not before any more. Where all of
// the last page went round in its old order, only the head tells: it was never seen, so that
// it had stood behind. Back from the tail, such a page leaves nothing out.
func (p *core) inOrder(ctx context.Context, w way, yield func(ResourceInfo) bool) error {
	seen := make(map[string]bool)
	from, before := "", ""
	for walked, size := 0, 0; ; {
		l, err := p.pools.face().list(ctx, p.name, w, from, before)
		if err != nil {
			return err
		}
		if len(l.page) == 0 {
			return nil
		}
		if w == fromHead && from != "" && l.first != from && !seen[l.first] {
			from, before = "", ""
			continue
		}
		if l.page[0] == l.first {
			walked, size = 0, l.size
		}
		found, err := p.pools.look.Resources(ctx, p.name, l.page...)
		if err != nil {
			return err
		}
		for _, info := range infosOf(found) {
			key := info.Resource
			room := info.State == Free || info.State == Leased && len(info.Holders) < info.MaxSharers
			if !seen[key] && room && !yield(info) {
				return nil
			}
			seen[key] = true
		}
		// What the list had then is passed after so many: all that comes is newer. But back from the
		// tail some of it may have been met twice.
		most := size
		if w == fromTail {
			most += len(seen)
		}
		if walked += len(l.page); l.next == "" || walked >= most {
			return nil
		}
		from, before = l.next, l.page[len(l.page)-1]
	}
}
