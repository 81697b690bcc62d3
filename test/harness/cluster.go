package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	clusterSize  = 3 // masters
	clusterSlots = 16384

	// Milliseconds without an answer until a node takes another for failing: as a
	// rule, and while it is known that one fails.
	nodeTimeout, shortNodeTimeout = "5000", "1000"
)

// Cluster is a Redis Cluster of six processes: three masters, each with a replica.
// A master that does not answer for 5 s is failed over, so that a machine that is
// busy alone does not lead to it; KillMaster is sooner.
func Cluster(t testing.TB) *Deployment {
	t.Helper()
	d := &Deployment{Name: "cluster", spec: Spec{Cluster: true}}
	for range 2 * clusterSize {
		s := one(t, program{binary: "redis-server", bus: true, args: []string{
			"--cluster-enabled", "yes",
			"--cluster-announce-ip", "127.0.0.1",
			"--cluster-node-timeout", nodeTimeout,
			"--cluster-replica-validity-factor", "0", // a replica is better than none
			"--cluster-allow-replica-migration", "no",
			"--repl-diskless-sync-delay", "0",
			"--rdb-del-sync-files", "yes", // what is killed keeps nothing
		}})
		d.servers = append(d.servers, s)
		d.spec.Addresses = append(d.spec.Addresses, s.Addr)
	}
	d.setNodeTimeout(t, shortNodeTimeout) // they gossip more
	until(t, "making a cluster", d.introduce)
	until(t, "giving each master its slots and replica", d.appoint)
	until(t, "starting a cluster", d.whole)
	d.setNodeTimeout(t, nodeTimeout)
	return d
}

func (d *Deployment) setNodeTimeout(t testing.TB, ms string) {
	t.Helper()
	for _, s := range d.running() {
		until(t, "setting up a node", func(ctx context.Context) error {
			return order(ctx, s, "CONFIG", "SET", "cluster-node-timeout", ms)
		})
	}
}

// introduce has the servers meet.
func (d *Deployment) introduce(ctx context.Context) error {
	for i, s := range d.servers {
		info, err := report(ctx, s, "CLUSTER", "INFO")
		if err != nil {
			return err
		}
		if info["cluster_current_epoch"] == "0" {
			// Epochs that differ spare the masters a quarrel about them.
			if err := order(ctx, s, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
				return err
			}
		}
	}
	for _, s := range d.servers[1:] {
		host, port, err := net.SplitHostPort(s.Addr)
		if err != nil {
			return err
		}
		bus := s.engine.(*process).busPort
		if err := order(ctx, d.servers[0], "CLUSTER", "MEET", host, port, bus); err != nil {
			return err
		}
	}
	return nil
}

// appoint gives the first servers the slots, and each of the others a master. It
// may be repeated, also where a replica has taken over meanwhile.
func (d *Deployment) appoint(ctx context.Context) error {
	nodes, err := view(ctx, d.servers[0])
	if err != nil {
		return err
	}
	for i, s := range d.servers {
		first, next := i%clusterSize*clusterSlots/clusterSize, (i%clusterSize+1)*clusterSlots/clusterSize
		served := slices.IndexFunc(nodes, func(n clusterNode) bool { return n.has(first) })
		n := slices.IndexFunc(nodes, func(n clusterNode) bool { return n.addr == d.servers[i%clusterSize].Addr })
		if n < 0 {
			return fmt.Errorf("%s has not met all others", d.servers[0].Addr)
		}
		own, err := view(ctx, s)
		if err != nil {
			return err
		}
		self := own[slices.IndexFunc(own, func(n clusterNode) bool { return n.is("myself") })]
		switch {
		case !self.is("master") || len(self.slots) > 0: // it has its place
		case served >= 0:
			err = order(ctx, s, "CLUSTER", "REPLICATE", nodes[served].id)
		case i < clusterSize:
			err = order(ctx, s, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(next-1))
		default:
			err = order(ctx, s, "CLUSTER", "REPLICATE", nodes[n].id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clusterNode is a line of CLUSTER NODES: what one node knows of another.
type clusterNode struct {
	id    string
	addr  string // host:port
	flags []string
	of    string // the id of its master, or "-"
	slots []slotRange
}

type slotRange struct{ first, last int }

func (n clusterNode) is(flag string) bool { return slices.Contains(n.flags, flag) }

// serves says whether the node is a master with slots that is not given up.
func (n clusterNode) serves() bool {
	return n.is("master") && !n.is("fail") && len(n.slots) > 0
}

func (n clusterNode) has(slot int) bool {
	return slices.ContainsFunc(n.slots, func(r slotRange) bool { return r.first <= slot && slot <= r.last })
}

// view is what a server knows of the cluster, sorted by address.
func view(ctx context.Context, s *Server) ([]clusterNode, error) {
	text, err := ask(ctx, s.Addr, "CLUSTER", "NODES").ToString()
	if err != nil {
		return nil, fmt.Errorf("CLUSTER NODES at %s: %w", s.Addr, err)
	}
	var nodes []clusterNode
	for line := range strings.Lines(text) {
		n, err := parseNode(strings.Fields(line))
		if err != nil {
			return nil, fmt.Errorf("CLUSTER NODES at %s: %w: %s", s.Addr, err, line)
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b clusterNode) int { return strings.Compare(a.addr, b.addr) })
	return nodes, nil
}

// parseNode reads: id host:port@bus flags master ping pong epoch link slots...
func parseNode(fields []string) (clusterNode, error) {
	if len(fields) < 8 {
		return clusterNode{}, errors.New("too few fields")
	}
	addr, _, _ := strings.Cut(fields[1], "@")
	n := clusterNode{id: fields[0], addr: addr, flags: strings.Split(fields[2], ","), of: fields[3]}
	for _, text := range fields[8:] {
		if strings.HasPrefix(text, "[") {
			continue // a slot that moves
		}
		from, to, found := strings.Cut(text, "-")
		if !found {
			to = from
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			return clusterNode{}, err
		}
		last, err := strconv.Atoi(to)
		if err != nil {
			return clusterNode{}, err
		}
		n.slots = append(n.slots, slotRange{first, last})
	}
	return n, nil
}

// agreed returns what all running servers know, if it is the same, all slots are
// served, and none of them is taken for failing.
func (d *Deployment) agreed(ctx context.Context) ([]clusterNode, error) {
	var first []clusterNode
	for _, s := range d.running() {
		info, err := report(ctx, s, "CLUSTER", "INFO")
		if err != nil {
			return nil, err
		}
		if info["cluster_state"] != "ok" || info["cluster_slots_ok"] != strconv.Itoa(clusterSlots) {
			return nil, fmt.Errorf("%s says that the state is %s, and %s slots are",
				s.Addr, info["cluster_state"], info["cluster_slots_ok"])
		}
		nodes, err := view(ctx, s)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = nodes
		}
		if err := d.same(s, first, nodes); err != nil {
			return nil, err
		}
	}
	if first == nil {
		return nil, errors.New("no server runs")
	}
	return first, nil
}

// same says what s knows otherwise than the first server.
func (d *Deployment) same(s *Server, first, nodes []clusterNode) error {
	if len(nodes) != len(d.servers) || len(first) != len(d.servers) {
		return fmt.Errorf("%s knows %d nodes", s.Addr, len(nodes))
	}
	for i, n := range nodes {
		other, err := d.at(n.addr)
		if err != nil {
			return err
		}
		if other.PID() == 0 {
			if n.serves() {
				return fmt.Errorf("%s takes %s for a master, which is killed", s.Addr, n.addr)
			}
			continue
		}
		if n.is("fail") || n.is("fail?") || n.is("handshake") {
			return fmt.Errorf("%s takes %s for %v", s.Addr, n.addr, n.flags)
		}
		if n.id != first[i].id || n.of != first[i].of || !slices.Equal(n.slots, first[i].slots) {
			return fmt.Errorf("%s does not know the place of %s", s.Addr, n.addr)
		}
	}
	return nil
}

// whole says why the cluster is not: all running servers agree, and those that are
// no masters are in sync with one.
func (d *Deployment) whole(ctx context.Context) error {
	nodes, err := d.agreed(ctx)
	if err != nil {
		return err
	}
	masters, err := d.serving(nodes)
	if err != nil {
		return err
	}
	return d.inSync(ctx, masters)
}

func (d *Deployment) serving(nodes []clusterNode) ([]*Server, error) {
	var masters []*Server
	for _, n := range nodes {
		if !n.serves() {
			continue
		}
		s, err := d.at(n.addr)
		if err != nil {
			return nil, err
		}
		masters = append(masters, s)
	}
	return masters, nil
}

func (d *Deployment) clusterMasters(t testing.TB) []*Server {
	t.Helper()
	var masters []*Server
	until(t, "the masters of the cluster", func(ctx context.Context) error {
		nodes, err := d.agreed(ctx)
		if err == nil {
			masters, err = d.serving(nodes)
		}
		return err
	})
	return masters
}

func (d *Deployment) clusterRejoin(t testing.TB) {
	t.Helper()
	d.revive(t, func(*process) error { return nil })
	until(t, "joining the cluster again", d.whole)
}

// KillMaster kills the master of the key, as SIGKILL does, once its replica has
// what it has, and returns when the replica takes writes in its place. Rejoin
// brings the killed one back. It is for a Cluster.
func (d *Deployment) KillMaster(t testing.TB, key string) {
	t.Helper()
	d.mustBeCluster(t)
	until(t, "a cluster that can lose a master", d.whole)
	slot, owner := d.owner(t, key)
	old, err := d.at(owner.addr)
	if err != nil {
		t.Fatal(err)
	}
	old.Kill(t)
	d.setNodeTimeout(t, shortNodeTimeout)
	until(t, "noticing that "+old.Addr+" is killed", func(ctx context.Context) error { return d.replaced(ctx, slot, old) })
	d.setNodeTimeout(t, nodeTimeout)
	until(t, "failing over "+old.Addr, func(ctx context.Context) error {
		nodes, err := d.agreed(ctx)
		if err != nil {
			return err
		}
		owner, err := ownerOf(slot, nodes)
		if err != nil {
			return err
		}
		s, err := d.at(owner.addr)
		if err != nil {
			return err
		}
		return takesWrites(ctx, s, key)
	})
}

// replaced is nil once a server knows another master of the slot than the old one.
func (d *Deployment) replaced(ctx context.Context, slot int, old *Server) error {
	for _, s := range d.running() {
		nodes, err := view(ctx, s)
		if err != nil {
			return err
		}
		if owner, err := ownerOf(slot, nodes); err == nil && owner.addr != old.Addr {
			return nil
		}
	}
	return fmt.Errorf("no other master serves slot %d", slot)
}

// owner returns the slot of the key, and the master that has it.
func (d *Deployment) owner(t testing.TB, key string) (slot int, owner clusterNode) {
	t.Helper()
	until(t, "the master of a slot", func(ctx context.Context) error {
		nodes, err := d.agreed(ctx)
		if err != nil {
			return err
		}
		n, err := ask(ctx, d.running()[0].Addr, "CLUSTER", "KEYSLOT", key).AsInt64()
		if err != nil {
			return err
		}
		slot = int(n)
		owner, err = ownerOf(slot, nodes)
		return err
	})
	return slot, owner
}

// Master is the server that serves the key. It is for a Cluster.
func (d *Deployment) Master(t testing.TB, key string) *Server {
	t.Helper()
	d.mustBeCluster(t)
	_, owner := d.owner(t, key)
	s, err := d.at(owner.addr)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ownerOf(slot int, nodes []clusterNode) (clusterNode, error) {
	for _, n := range nodes {
		if n.serves() && n.has(slot) {
			return n, nil
		}
	}
	return clusterNode{}, fmt.Errorf("no master serves slot %d", slot)
}

func (d *Deployment) mustBeCluster(t testing.TB) {
	t.Helper()
	if !d.spec.Cluster {
		t.Fatalf("the %s deployment is no cluster", d.Name)
	}
}

// Remove takes a replica out of the Cluster for good, as `redis-cli --cluster
// del-node` does: all others forget it, and it forgets them. Its process runs on.
func (d *Deployment) Remove(t testing.TB, s *Server) {
	t.Helper()
	d.mustBeCluster(t)
	var self string
	until(t, "the node to remove", func(ctx context.Context) error {
		nodes, err := view(ctx, s)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(nodes, func(n clusterNode) bool { return n.is("myself") })
		if i < 0 || nodes[i].is("master") {
			return fmt.Errorf("%s is no replica", s.Addr)
		}
		self = nodes[i].id
		return nil
	})
	d.servers = slices.DeleteFunc(slices.Clone(d.servers), func(other *Server) bool { return other == s })
	for _, other := range d.running() {
		until(t, "forgetting "+s.Addr, func(ctx context.Context) error {
			nodes, err := view(ctx, other)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(nodes, func(n clusterNode) bool { return n.id == self }) {
				return nil
			}
			return order(ctx, other, "CLUSTER", "FORGET", self)
		})
	}
	until(t, "resetting "+s.Addr, func(ctx context.Context) error { return order(ctx, s, "CLUSTER", "RESET", "SOFT") })
	until(t, "a cluster without "+s.Addr, d.whole)
}
