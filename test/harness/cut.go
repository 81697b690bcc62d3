package harness

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
)

// Cut is a master whose replicas get no more of what it is told: a failover to one of
// them loses that, and nothing else.
type Cut struct {
	d         *Deployment
	key       string
	slot      int
	old, heir *Server
}

// Cut breaks the links of all replicas, as a network would, once they have what their
// masters have. It is for Sentinel, and for a Cluster, in which the key says which
// master is to be replaced.
func (d *Deployment) Cut(t testing.TB, key string) *Cut {
	t.Helper()
	c := &Cut{d: d, key: key}
	switch {
	case d.sentinel != nil:
		until(t, "a master that can be replaced", d.watchedOver)
		c.old = d.master(t)
		c.heir = d.running()[slices.IndexFunc(d.running(), func(s *Server) bool { return s != c.old })]
	case d.spec.Cluster:
		until(t, "a cluster that can lose a master", d.whole)
		c.slot, c.old, c.heir = d.line(t, key)
	default:
		t.Fatalf("the %s deployment has no replicas", d.Name)
	}
	masters := d.Masters(t)
	for _, s := range d.running() {
		if !slices.Contains(masters, s) {
			// The master refuses who comes with a password where it has none.
			until(t, "cutting off a replica", func(ctx context.Context) error { return cut(ctx, s) })
		}
	}
	return c
}

// line is the master of the key and its replica.
func (d *Deployment) line(t testing.TB, key string) (slot int, master, replica *Server) {
	t.Helper()
	slot, owner := d.owner(t, key)
	until(t, "the replica of a slot", func(ctx context.Context) error {
		nodes, err := d.agreed(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(nodes, func(n clusterNode) bool { return n.of == owner.id })
		if i < 0 {
			return fmt.Errorf("%s has no replica", owner.addr)
		}
		if master, err = d.at(owner.addr); err != nil {
			return err
		}
		replica, err = d.at(nodes[i].addr)
		return err
	})
	return slot, master, replica
}

func cut(ctx context.Context, s *Server) error {
	if err := password(ctx, s, "nobody"); err != nil {
		return err
	}
	if err := ask(ctx, s.Addr, "CLIENT", "KILL", "TYPE", "master").Error(); err != nil {
		return err
	}
	info, err := report(ctx, s, "INFO", "replication")
	if err == nil && info["master_link_status"] != "down" {
		err = fmt.Errorf("the link of %s to its master is %s", s.Addr, info["master_link_status"])
	}
	return err
}

// password sets the one that a replica shows its master, "" for none.
func password(ctx context.Context, s *Server, text string) error {
	return order(ctx, s, "CONFIG", "SET", "masterauth", text)
}

// TakeOver kills the master, as SIGKILL does, has a replica take its place at once, by
// order, and returns when that takes writes. Rejoin brings the killed one back.
func (c *Cut) TakeOver(t testing.TB) {
	t.Helper()
	c.old.Kill(t)
	if c.d.sentinel != nil {
		c.d.succeed(t, c.heir)
	} else {
		until(t, "taking over", func(ctx context.Context) error { return order(ctx, c.heir, "CLUSTER", "FAILOVER", "TAKEOVER") })
	}
	until(t, "taking writes in the place of "+c.old.Addr, func(ctx context.Context) error { return c.leads(ctx) })
	for _, s := range c.d.running() {
		until(t, "following again", func(ctx context.Context) error { return password(ctx, s, "") })
	}
}

func (c *Cut) leads(ctx context.Context) error {
	if c.d.sentinel != nil {
		_, err := c.d.leading(ctx)
		return err
	}
	if err := c.d.replaced(ctx, c.slot, c.old); err != nil {
		return err
	}
	return takesWrites(ctx, c.heir, c.key)
}

// succeed makes a replica the master of all that runs, and has the Sentinels watch over
// it. All of them forget the old one first: one that has not would tell the others of it.
func (d *Deployment) succeed(t testing.TB, heir *Server) {
	t.Helper()
	until(t, "making a replica the master", func(ctx context.Context) error { return order(ctx, heir, "REPLICAOF", "NO", "ONE") })
	host, port, err := net.SplitHostPort(heir.Addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range d.sentinel.sentinels {
		until(t, "having a Sentinel forget a master", func(ctx context.Context) error { return order(ctx, s, "SENTINEL", "REMOVE", masterSet) })
	}
	for _, s := range d.sentinel.sentinels {
		until(t, "having a Sentinel watch over a master", func(ctx context.Context) error {
			return order(ctx, s, "SENTINEL", "MONITOR", masterSet, host, port, quorum)
		})
	}
	for _, s := range d.sentinel.sentinels {
		until(t, "setting up a Sentinel", func(ctx context.Context) error {
			return order(ctx, s, "SENTINEL", "SET", masterSet, "DOWN-AFTER-MILLISECONDS", patience, "FAILOVER-TIMEOUT", failoverTimeout)
		})
		// This is no failover that a Sentinel tells of; a client that has to subscribe
		// anew asks who the master is.
		until(t, "breaking subscriptions at a Sentinel", func(ctx context.Context) error {
			return ask(ctx, s.Addr, "CLIENT", "KILL", "TYPE", "pubsub").Error()
		})
	}
	for _, s := range d.running() {
		if s != heir {
			until(t, "following the new master", func(ctx context.Context) error { return order(ctx, s, "REPLICAOF", host, port) })
		}
	}
}
