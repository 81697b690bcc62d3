package allocator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
)

// This file has the changes of a pool that need more than one script.

// chunk is how many resources one script takes.
const chunk = 200

// add puts resources into the pool, in chunks. gen is the revision of the Replace that it is part of,
// 0 for none.
func (p *core) add(ctx context.Context, resources []string, expiry time.Duration, sharers int, gen int64, progress func(done, total int)) (Change, error) {
	var change Change
	for done := 0; done < len(resources); {
		some := resources[done:min(done+chunk, len(resources))]
		for left := some; len(left) > 0; { // what is damaged is made whole first, and then kept
			last := gen == 0 && done+len(some) == len(resources)
			damaged, err := p.addOnce(ctx, left, expiry, sharers, gen, last, &change)
			if err != nil {
				return change, err
			}
			if _, err := p.mend(ctx, damaged, true); err != nil {
				return change, err
			}
			left = damaged
		}
		done += len(some)
		if progress != nil {
			progress(done, len(resources))
		}
	}
	return change, nil
}

// mend takes resources with damaged records out of the pool or, with stay, repairs them, and returns
// how many it removed. Only the claims have the holders of damaged resources, so mend reads all claims;
// no claim gets a damaged resource meanwhile. A held resource stays with its holders.
func (p *core) mend(ctx context.Context, resources []string, stay bool) (removed int, err error) {
	if len(resources) == 0 {
		return 0, nil
	}
	holders, err := p.pools.face().Decide.HoldersOf(ctx, p.name, resources)
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(resources, chunk/2) {
		args := []string{line.Flag(stay)}
		for _, resource := range some {
			if len(holders[resource]) == 0 {
				args = append(args, resource, "")
			}
			for _, claim := range holders[resource] {
				args = append(args, resource, claim)
			}
		}
		n, err := p.mendOnce(ctx, args)
		if removed += n; err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// remove takes resources out of the pool, in chunks.
func (p *core) remove(ctx context.Context, resources []string) (Change, error) {
	var change Change
	seen, err := p.pools.face().Revision(ctx, "Remove", p.name)
	if err != nil {
		return change, err
	}
	for some := range slices.Chunk(resources, chunk) {
		removed, err := p.removeOnce(ctx, seen, some)
		if change.Removed += removed; err != nil {
			return change, err
		}
	}
	return change, nil
}

// restShared is rest for a holder of a shared resource. Other holders may ask for a rest at the same
// moment, which is no error, unlike for operators' calls. An overtaken holder repeats its call, and
// finally leaves the rest to the others.
func (p *core) restShared(ctx context.Context, resource string, d time.Duration, reason string) error {
	const tries = 3
	for range tries {
		if err := p.rest(ctx, resource, d, reason, false); !errors.Is(err, berth.ErrOvertaken) {
			return err
		}
	}
	return nil
}
