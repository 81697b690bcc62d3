package model

import (
	"context"

	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// want asks for a hold back. Nothing ends: its process hears of it with the next heartbeat, if not before.
func (m *machine) want(t *rapid.T) {
	c := m.some(t, func(c *claim) bool { return c.phase == held })
	_, err := m.living(t).Operator().Want(context.Background(), berth.Target{Kind: keyspace.Sem, Name: m.Name, Claim: c.id})
	m.allow(t, err, berth.ErrNotHeld)
	if err == nil && !c.wanted {
		c.wanted, c.hears = true, m.last.now+m.Lease.Milliseconds()/2
	}
}

// wants checks that the record of a hold says whether it is wanted, and that its handle does.
func (m *machine) wants(t *rapid.T, v *view, c *claim) {
	same(t, "whether the record says wanted, and the model", !v.records[c.id].Wanted.IsZero(), c.wanted)
	if !c.inHand() || c.permit.Err() != nil {
		return
	}
	closed := false
	select {
	case <-c.permit.Wanted():
		closed = true
	default:
	}
	switch {
	case closed && !c.wanted:
		t.Fatalf("nobody has asked for %s back", c.id)
	case m.Exact && c.wanted && !closed && v.now > c.hears:
		t.Fatalf("a handle does not know that %s is wanted back", c.id)
	}
}
