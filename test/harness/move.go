package harness

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Move is a slot of a Cluster on its way from one master to another. Until Finish,
// what is asked of a key that the old master no longer has is answered ASK, and
// what touches several keys, of which some are not there, TRYAGAIN.
type Move struct {
	d        *Deployment
	slot     int
	key      string
	from, to *Server
	target   string // the node id of to
}

// Move begins to move the slot of the key to another master. It is for a Cluster.
func (d *Deployment) Move(t testing.TB, key string) *Move {
	t.Helper()
	d.mustBeCluster(t)
	m := &Move{d: d, key: key}
	var owner clusterNode
	m.slot, owner = d.owner(t, key)
	until(t, "the masters of a move", func(ctx context.Context) error {
		nodes, err := d.agreed(ctx)
		if err != nil {
			return err
		}
		other := nodes[slices.IndexFunc(nodes, func(n clusterNode) bool { return n.serves() && n.id != owner.id })]
		m.target = other.id
		if m.from, err = d.at(owner.addr); err != nil {
			return err
		}
		m.to, err = d.at(other.addr)
		return err
	})
	// In this order nobody is sent to a master that does not expect it.
	m.set(t, m.to, "IMPORTING", owner.id)
	m.set(t, m.from, "MIGRATING", m.target)
	return m
}

func (m *Move) set(t testing.TB, at *Server, state ...string) {
	t.Helper()
	until(t, "moving a slot", func(ctx context.Context) error {
		return order(ctx, at, append([]string{"CLUSTER", "SETSLOT", strconv.Itoa(m.slot)}, state...)...)
	})
}

// Keys migrates the keys of the slot that are there.
func (m *Move) Keys(t testing.TB) {
	t.Helper()
	until(t, "migrating the keys of a slot", func(ctx context.Context) error {
		for {
			keys, err := ask(ctx, m.from.Addr, "CLUSTER", "GETKEYSINSLOT", strconv.Itoa(m.slot), "100").AsStrSlice()
			if err != nil || len(keys) == 0 {
				return err
			}
			if err := m.migrate(ctx, keys); err != nil {
				return err
			}
		}
	})
}

// Part migrates some keys, in one step, so that they and the others of the slot are apart.
func (m *Move) Part(t testing.TB, keys ...string) {
	t.Helper()
	until(t, "migrating some keys", func(ctx context.Context) error { return m.migrate(ctx, keys) })
}

func (m *Move) migrate(ctx context.Context, keys []string) error {
	host, port, _ := strings.Cut(m.to.Addr, ":")
	limit := strconv.FormatInt(askLimit.Milliseconds(), 10)
	return order(ctx, m.from, append([]string{"MIGRATE", host, port, "", "0", limit, "KEYS"}, keys...)...)
}

// Finish migrates what is left, gives the slot to its new master, and returns when
// all servers know.
func (m *Move) Finish(t testing.TB) {
	t.Helper()
	m.Keys(t)
	m.set(t, m.to, "NODE", m.target)
	m.set(t, m.from, "NODE", m.target)
	until(t, "telling of a moved slot", func(ctx context.Context) error {
		nodes, err := m.d.agreed(ctx)
		if err != nil {
			return err
		}
		owner, err := ownerOf(m.slot, nodes)
		if err != nil {
			return err
		}
		if owner.id != m.target {
			return errors.New("another master serves it")
		}
		return takesWrites(ctx, m.to, m.key)
	})
}
