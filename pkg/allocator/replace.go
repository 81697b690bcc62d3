package allocator

import (
	"context"
	"errors"
	"time"

	"github.com/berth-go/berth/internal/caller"
)

// replace has the pool hold these resources and no others, after what this process
// replaces already. Where the server has lost the pool meanwhile, it begins again.
func (p *core) replace(ctx context.Context, resources []string, expiry time.Duration, sharers int, progress func(done, total int)) (Change, error) {
	select {
	case p.replacing <- struct{}{}:
	case <-ctx.Done():
		return Change{}, caller.EndOf(ctx)
	}
	defer func() { <-p.replacing }()
	const flushes = 3 // as many are bad luck, more are something else
	for again := 0; ; again++ {
		change, gen, err := p.replaceNow(ctx, resources, expiry, sharers, progress)
		var by *supersededError
		if again == flushes || !errors.As(err, &by) || by.generation >= gen {
			return change, err
		}
	}
}

// replaceNow begins a generation, adds the resources under it, and removes what is of
// an older one.
func (p *core) replaceNow(ctx context.Context, resources []string, expiry time.Duration, sharers int, progress func(done, total int)) (change Change, gen int64, err error) {
	_, seen, err := p.replaceOnce(ctx, "look", 0, "")
	if err != nil {
		return Change{}, 0, err
	}
	_, gen, err = p.replaceOnce(ctx, "begin", seen, p.client.node.Engine.ClaimID())
	if err != nil {
		return Change{}, seen, err
	}
	change, err = p.add(ctx, resources, expiry, sharers, gen, progress)
	if err != nil {
		return change, gen, err
	}
	for cursor := "0"; ; {
		next, removed, err := p.replaceOnce(ctx, "prune", gen, cursor)
		if err != nil {
			return change, gen, err
		}
		change.Removed += int(removed)
		if cursor = next; cursor == "0" {
			return change, gen, nil
		}
	}
}
