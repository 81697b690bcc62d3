package semaphore

import (
	"context"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/check"
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
		AllowEviction: c.cfg.AllowEviction, Trial: c.node.Trial,
	})
}
