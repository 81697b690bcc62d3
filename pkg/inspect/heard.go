package inspect

import (
	"cmp"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Heard says when a claim's process was last heard of, as far as what is stored tells it.
type Heard struct {
	At time.Time `json:"at"` // zero: nothing tells it
	// Exact is false where the process may have been heard of later.
	Exact bool `json:"exact"`
	// By says what told it: "renewal", "wait", "grant", "probe" (of the swarm) or "claim" (another
	// claim of its node).
	By string `json:"by"`
}

// Process is how the process of a holder stands. A dead process cannot be seen from Redis, only that
// its renewals have stopped.
type Process string

// The ways in which the process of a holder may stand.
const (
	Renewing    Process = "renewing"
	Overdue     Process = "overdue"     // it should have renewed by now: it is dead, stopped or cut off
	Unconfirmed Process = "unconfirmed" // it was granted the hold and has made no call since
	Fixed       Process = "fixed"       // it does not renew: nothing tells when it was heard of
	Endless     Process = "endless"     // it holds without end: likewise
	Detached    Process = "detached"    // nobody renews the hold until somebody resumes it
	Entry       Process = "entry"       // the outermost entry of its owner renews for it
	Condemned   Process = "condemned"   // the swarm has declared it dead
	Zombie      Process = "zombie"      // its node counts as dead for the swarm: the next flush ends the hold
)

// renews says whether a hold is renewed by its process.
func renews(h *berth.Holder) bool { return !h.NoRenew && h.Lease != berth.Forever && !h.Detached }

// pace is within which the process calls three times.
func pace(h *berth.Holder) time.Duration {
	p := h.Lease
	if h.WaitLease > 0 {
		p = min(p, h.WaitLease)
	}
	if h.MaxHold > 0 {
		p = min(p, h.MaxHold)
	}
	return p
}

// Standing is how the process of a hold stands, as far as a listing tells it; "" where it does not, as of a hold that has a
// maximum. lease is the hold's own or, of the entries of a lock, which share a deadline, the shortest of theirs.
func Standing(h *berth.Holder, lease time.Duration) Process {
	switch {
	case h.Detached:
		return Detached
	case h.Lease == berth.Forever:
		return Endless
	case h.NoRenew:
		return Fixed
	case h.MaxHold > 0:
		return ""
	case min(lease-h.Left, h.Held) > pace(h)*3/5: // a grant that is not confirmed yet has less left than that lease
		return Overdue
	}
	return Renewing
}

// standsAs sets how the process of a hold stands, and when it was heard of. lease is as in Standing.
func (c *Claim) standsAs(lease time.Duration) {
	c.Process = Standing(c.Hold, lease)
	if called := min(lease-c.Hold.Left, c.Hold.Held); (c.Process == Renewing || c.Process == Overdue) && called >= 0 {
		c.Heard = Heard{At: c.Since().Add(c.For() - called), Exact: true, By: "renewal"}
	}
}

// late says whether the process of a claim in a listing should have been heard of.
func (c *Claim) late() bool {
	now := c.Since().Add(c.For())
	return c.Process == Overdue || c.Wait != nil && c.Heard.At.Add((c.Left()+now.Sub(c.Heard.At))*3/5).Before(now)
}

// judge sets how the processes of a page's holds stand. A lock of which there may be entries on other pages is left out. A replica
// may lag behind those who renew: it tells of none that it is overdue.
func judge(page *Page[Claim], from string) {
	least := map[string]time.Duration{} // the shortest lease of a lock's entries
	for _, c := range page.Items {
		if c.Kind == keyspace.Lock && c.Hold != nil {
			least[c.Name] = min(cmp.Or(least[c.Name], c.Hold.Lease), c.Hold.Lease)
		}
	}
	for i := range page.Items {
		edge := i == 0 && from != "" || i == len(page.Items)-1 && page.Next != ""
		if c := page.Items[i]; edge && c.Kind == keyspace.Lock {
			least[c.Name] = 0
		}
	}
	for i := range page.Items {
		c := &page.Items[i]
		switch {
		case c.Hold == nil:
		case c.Kind != keyspace.Lock:
			c.standsAs(c.Hold.Lease)
		case least[c.Name] > 0:
			c.standsAs(least[c.Name])
		}
		if c.Heard.Exact = c.Heard.Exact && !page.Replica; page.Replica && c.Process == Overdue {
			c.Process = ""
		}
	}
}

// inner says whether a hold is an entry of a lock's owner that is not the outermost one.
func (s *snapshot) inner(h *reader.Held) bool {
	return s.Kind == keyspace.Lock && len(s.Holds) > 0 && s.Holds[0].ID != h.ID
}

// heardOf says when the process of a hold was last heard of, by that hold alone.
func (s *snapshot) heardOf(h *reader.Held) Heard {
	heard, more := Heard{Exact: !s.Replica, By: "renewal"}, time.Duration(0) // what extensions have added
	if s.Group != nil {
		more = state.Millis(s.Group.More)
	}
	switch {
	case h.Called:
		heard.At = s.At
	case s.inner(h) && !h.Fresh:
		return Heard{}
	case h.Record.Phase == 'g' || h.Fresh:
		heard.At, heard.By = h.Granted, "grant" // an extension may have moved the deadline
	case !renews(&h.Holder) || h.Deadline.IsZero():
		return Heard{}
	case !h.Renewed.IsZero():
		heard.At = h.Renewed
	case h.Record.Reach == 0 && more == 0 && !h.Deadline.Equal(h.Record.Limit):
		heard.At = h.Deadline.Add(-h.Lease)
	default:
		heard.At, heard.Exact = h.Deadline.Add(-max(h.Lease, h.Record.Reach)-more), false
		if heard.At.Before(h.Granted) {
			heard.At = h.Granted
		}
	}
	return s.bounded(heard)
}

// waits says when a waiting claim was last heard of.
func (s *snapshot) waits(w *reader.Place) Heard {
	return s.bounded(Heard{At: w.Record.Heard, Exact: !s.Replica, By: "wait"})
}

// bounded takes a moment behind the snapshot's, which a call in between leaves, for the snapshot's.
func (s *snapshot) bounded(heard Heard) Heard {
	if heard.At.After(s.At) {
		heard.At = s.At
	}
	return heard
}

// nodeHeard says when a node was last heard of: by all its claims, and in the swarm.
func (s *snapshot) nodeHeard(id string) Heard {
	last := s.node(id).last
	if n := s.nodes[id]; n.Probed().After(last.At) {
		last = s.bounded(Heard{At: n.Probed(), Exact: !s.Replica, By: "probe"})
	}
	return last
}

// told is what the claims of a node tell of it.
type told struct {
	last      Heard
	some, all bool // some claim tells when the node should have called; each that does says that it is overdue
}

// take takes in when a claim says that its node was heard of, and whether that is too long ago.
func (t *told) take(heard Heard, late bool) {
	if !heard.Exact {
		return
	}
	if heard.At.After(t.last.At) {
		t.last = Heard{At: heard.At, Exact: true, By: "claim"}
	}
	t.some, t.all = true, (!t.some || t.all) && late
}

// tells has of each node what its claims tell.
func (s *snapshot) tells() map[string]told {
	nodes := make(map[string]told)
	tell := func(id string, heard Heard, pace time.Duration) {
		n := nodes[id]
		n.take(heard, s.late(heard, pace))
		nodes[id] = n
	}
	for _, h := range s.Holds {
		tell(h.Node, s.heardOf(h), pace(&h.Holder))
	}
	waits := slices.Concat(s.Line, s.Lanes)
	if s.claim != nil && s.claim.Wait != nil {
		waits = append(waits, s.claim.Wait)
	}
	for _, w := range waits {
		tell(w.Node, s.waits(w), w.Record.Wait)
	}
	return nodes
}

// node is what the claims of a node tell of it.
func (s *snapshot) node(id string) told {
	if s.shared != nil {
		return s.shared.nodes[id]
	}
	return s.tells()[id]
}

// late says whether a process that calls three times within a pace should have been heard of: one
// call that is lost, and sent again after its time-out, is forgiven.
func (s *snapshot) late(heard Heard, pace time.Duration) bool {
	return heard.Exact && heard.At.Add(pace*3/5).Before(s.At)
}

// overdue says whether each claim of a node that tells it says that the node should have been heard of.
func (s *snapshot) overdue(id string) bool {
	n := s.node(id)
	return n.some && n.all
}

// silent says whether nothing is to be expected of a node.
func (s *snapshot) silent(id string) bool { return s.nodes[id].Condemned || s.overdue(id) }

// process says how the process of a hold stands.
func (s *snapshot) process(h *reader.Held) Process {
	switch n := s.nodes[h.Node]; {
	case h.Record.Phase == 'd': // a flush leaves it
		return Detached
	case n.Condemned:
		return Condemned
	case n.Zombie && !s.Replica:
		return Zombie
	case s.inner(h):
		return Entry
	case h.Record.Phase == 'g' && !s.overdue(h.Node):
		return Unconfirmed
	case h.Record.Phase != 'g' && h.Deadline.IsZero():
		return Endless
	case h.Record.Phase != 'g' && !renews(&h.Holder):
		return Fixed
	case s.overdue(h.Node) && s.late(s.heardOf(h), pace(&h.Holder)):
		return Overdue
	}
	return Renewing
}
