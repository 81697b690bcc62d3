package semaphore

import (
	"context"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/check"
	"github.com/berth-go/berth/internal/engine"
)

// Check looks at the server, every node of a cluster: version, eviction policy,
// latency, and whether this user may do what the scripts need, by taking and
// giving back a permit of a name of its own. What may not be asked is a warning.
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

// trial goes through the scripts of an uncontended permit.
func (c *Client) trial(ctx context.Context) error {
	claim := &engine.Claim{
		ID: c.engine.ClaimID(), Name: "berth check " + c.Node(), Capacity: 1,
		Record: engine.Record{Weight: 1, Wait: c.cfg.Lease, Lease: c.cfg.Lease, Phase: 'w', Node: c.Node(), Label: c.cfg.Label},
	}
	if _, err := c.calls.Acquire(ctx, claim); err != nil {
		return err
	}
	if _, err := c.calls.Beat(ctx, claim.Name, engine.ModeBeat, []*engine.Claim{claim}); err != nil {
		return err
	}
	_, err := c.calls.Release(ctx, claim, 0)
	return err
}
