package allocator

import (
	"context"
	"errors"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/check"
	"github.com/berth-go/berth/internal/engine"
)

// Check looks at the server, every node of a cluster: version, eviction policy,
// latency, and whether this user may do what the scripts need, by allocating from a
// pool of its own and removing it. What may not be asked is a warning.
//
// It returns berth.ErrIncompatible for a server older than Redis 7.0 or Valkey
// 7.2, a *berth.ConfigError for one that evicts keys when its maxmemory is reached,
// unless Config.AllowEviction is set, and the server's error where it cannot be reached
// or refuses.
func (c *Client) Check(ctx context.Context) (berth.Report, error) {
	return check.Server(ctx, check.Options{
		Client: c.redis, Channel: c.space.Wake(c.Node()), Timeout: c.cfg.CallTimeout,
		AllowEviction: c.cfg.AllowEviction, Trial: c.trial,
	})
}

// trial goes through the scripts of an uncontended allocation.
func (c *Client) trial(ctx context.Context) (err error) {
	p := &core{client: c, name: "berth check " + c.Node(), sharers: 1}
	defer func() {
		_, removed := p.remove(ctx, []string{"trial"})
		err = errors.Join(err, removed)
	}()
	// Should this process die in the middle, the few keys of that pool stay.
	if _, err := p.add(ctx, []string{"trial"}, c.cfg.Lease, 1, 0, nil); err != nil {
		return err
	}
	claim := p.claim(ctx, AllocateOptions{Lease: c.cfg.Lease}, false)
	answer, err := c.node.Acquire(ctx, claim)
	if err != nil {
		return err
	}
	if answer.Refused != nil {
		return answer.Refused
	}
	if _, err := c.node.Beat(ctx, claim.Name, engine.ModeBeat, []*engine.Claim{claim}); err != nil {
		return err
	}
	_, err = c.node.Release(ctx, claim, 0)
	return err
}
