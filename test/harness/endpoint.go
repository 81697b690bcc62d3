package harness

import (
	"context"
	"fmt"
	"net"
	"testing"
)

// Endpoint is one address that leads to the master of a master and its replica, as a
// managed service or a load balancer has it.
type Endpoint struct {
	*Proxied

	pair            *Deployment
	master, replica *Server
}

// NewEndpoint returns an Endpoint whose replica is in step with its master.
func NewEndpoint(t testing.TB) *Endpoint {
	t.Helper()
	master := one(t, replicated(""))
	replica := one(t, replicated(master.Addr))
	e := &Endpoint{
		Proxied: Proxy(t, master), master: master, replica: replica,
	}
	e.pair = &Deployment{Name: "endpoint", spec: Spec{Addresses: []string{e.Addr}}, servers: []*Server{master, replica}, endpoint: e}
	e.settled(t)
	return e
}

// Deployment is the pair: its clients go through the address.
func (e *Endpoint) Deployment() *Deployment { return e.pair }

// Master is the server that takes writes.
func (e *Endpoint) Master() *Server { return e.master }

// Replica is the server that refuses them.
func (e *Endpoint) Replica() *Server { return e.replica }

// Move has the replica, once it has what the master has, take the place of the master,
// which follows it from then on, and leads new connections there. Those that are open
// stay with the old master. Move returns when the old master is in step.
func (e *Endpoint) Move(t testing.TB) {
	t.Helper()
	host, port, err := net.SplitHostPort(e.replica.Addr)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the handing over of a master", func(ctx context.Context) error {
		return order(ctx, e.master, "FAILOVER", "TO", host, port)
	})
	until(t, "the promotion of a replica", func(ctx context.Context) error {
		info, err := report(ctx, e.replica, "INFO", "replication")
		if err == nil && info["role"] != "master" {
			err = fmt.Errorf("%s is a %s", e.replica.Addr, info["role"])
		}
		return err
	})
	e.master, e.replica = e.replica, e.master
	e.LeadNew(e.master)
	e.settled(t)
}

func (e *Endpoint) settled(t testing.TB) {
	t.Helper()
	until(t, "a replica in step", func(ctx context.Context) error { return e.pair.inSync(ctx, []*Server{e.master}) })
}
