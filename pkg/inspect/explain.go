package inspect

import (
	"cmp"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Explanation says why a name, or one claim of it, stands still, and what comes next by itself.
type Explanation struct {
	Kind keyspace.Kind `json:"kind"`
	Name string        `json:"name"`
	// Claim is the claim that was asked for, "" for the name.
	Claim string `json:"claim,omitzero"`
	// At is when it was read, by the clock of the server that has the name.
	At time.Time `json:"at"`
	// Replica says that a replica answered: all is as of that replica.
	Replica bool `json:"replica"`
	// Partial says that there are more holds, claims or rests than were read.
	Partial bool `json:"partial"`
	// Moving says that claims moved while it was read.
	Moving bool `json:"moving"`
	// Trouble is that of the name; only Reader.Explain tells it, and it knows of no cycle.
	Trouble berth.Trouble `json:"trouble,omitzero"`
	// Reasons say why, the decisive one first. There is at least one.
	Reasons []Reason `json:"reasons"`
	// Blockers are who is in the way: those that have held longest, at most 10; More is how many were left out.
	Blockers []Claim `json:"blockers"`
	More     int     `json:"more,omitzero"`
	// Ahead is how many stand before the claim, of those who wait for the same.
	Ahead int `json:"ahead"`
	// Next is the next change by itself, under the conditions of its If; nil if none is known.
	Next *Event `json:"next,omitzero"`
	// IfSilent is the next change if one process is not heard of again: of those that renew the one that has held longest.
	IfSilent *Event `json:"ifSilent,omitzero"`
	// Horizon is until when Next is all that comes; zero: for ever.
	Horizon time.Time `json:"horizon,omitzero"`
	// Why says it all to a person, Then what comes next, "" for nothing.
	Why  string `json:"why"`
	Then string `json:"then,omitzero"`
	// Mend are calls of an operator that end what is in the way, at most 3; none where nothing needs one, and none of what a
	// replica tells, which may be over.
	Mend []Mend `json:"mend"`
}

// String is the whole text, for a person.
func (e Explanation) String() string {
	if e.Then == "" {
		return e.Why
	}
	return e.Why + " " + e.Then
}

// Reason is one reason for which something stands still. Its Code says which of the other fields count.
type Reason struct {
	Code Code `json:"code"`
	// Claim and Resource are whom and what it is about.
	Claim    string `json:"claim,omitzero"`
	Resource string `json:"resource,omitzero"`
	// Need is what is asked for, Have what is held, rests or stands ahead, Of the capacity or number of resources.
	Need int `json:"need,omitzero"`
	Have int `json:"have,omitzero"`
	Of   int `json:"of,omitzero"`
	// Until is when it ends by itself; zero: not by itself.
	Until time.Time `json:"until,omitzero"`
	// Text is what an operator or a process gave as the reason.
	Text string `json:"text,omitzero"`
}

// explaining is one explanation in the making.
type explaining struct {
	s         *snapshot
	e         *Explanation
	self      *reader.Place  // the waiting claim that is explained, nil for a name
	head      *reader.Place  // who is first, of those who wait for the same; nil if nobody waits
	holds     []*reader.Held // who is in its way
	subject   string
	clause    string   // what the subject waits for
	sentences []string // what else is to be said
	quiet     map[string]bool
}

// explain says why a name, or a claim of it, stands still. It is pure.
func explain(s *snapshot, claim string) Explanation {
	s = s.sharing()
	e := Explanation{
		Kind: s.Kind, Name: s.Name.Name, Claim: claim, At: s.At, Replica: s.Replica, Partial: s.partial(), Moving: s.Moving,
	}
	x := &explaining{s: s, e: &e, quiet: map[string]bool{}}
	if !x.itself() {
		x.waiting()
	}
	x.besides()
	e.Why, e.Mend = x.why(), x.mends()
	return e
}

// silent says whether nothing is to be expected of a node. What a replica tells may be old.
func (x *explaining) silent(node string) bool {
	quiet, known := x.quiet[node]
	if !known {
		quiet = !x.s.Replica && x.s.silent(node)
		x.quiet[node] = quiet
	}
	return quiet
}

// waiting explains a wait: of a claim, or of whoever is first of a name.
func (x *explaining) waiting() {
	s, e := x.s, x.e
	if c := s.claim; e.Claim != "" && c != nil && c.Wait != nil {
		x.self, e.Ahead = c.Wait, c.Rank
	}
	x.head = x.first()
	x.subject = x.whoWaits()
	x.holds = x.inTheWay()
	if x.head != nil {
		x.comes()
	}
	x.own()
	x.wanted()
	x.placed()
	for i, h := range x.holds {
		if len(e.Blockers) == blockers {
			e.More += len(x.holds) - i
			break
		}
		x.blocks(s.holding(h))
	}
	e.More += s.HoldsLeft
	if x.head != nil {
		e.Then = x.then()
	}
}

// blockers is how many an explanation names.
const blockers = 10

func (x *explaining) blocks(c Claim) {
	if len(x.e.Blockers) == blockers {
		x.e.More++
		return
	}
	x.e.Blockers = append(x.e.Blockers, c)
}

// coming is what comes next by itself.
type coming struct {
	next, ifSilent *Event
	horizon        time.Time
	first          *reader.Held // whose process ifSilent is about, nil for nobody's
}

// enough is how much is looked at for all explanations of one snapshot: a few ms. What comes to the others is not known.
const enough = 100_000

// comes finds out what comes next by itself, if anybody is there to see it. To all those whose own waits do not end, the
// same comes; but not if other holders are not heard of again.
func (x *explaining) comes() {
	w, shared, first := x.self, x.s.shared, x.renewer()
	if x.s.Replica {
		first = nil // it may not know of renewals
	}
	alike := w == nil || x.s.alive(w) && !x.silent(w.Node) && x.s.stays(w)
	if alike && shared.coming == nil {
		c := x.come("", first)
		shared.coming = &c
	}
	var c coming
	switch {
	case alike && (w == nil || first == nil || first.Node != w.Node):
		if c = *shared.coming; c.first != first {
			c.ifSilent = nil
			if first != nil && shared.work <= enough {
				c.ifSilent = x.unlessHeard("", first, c.next)
			}
		}
	case shared.work > enough:
		c.horizon = x.s.At
	default:
		c = x.come(x.e.Claim, first)
	}
	x.e.Next, x.e.Horizon, x.e.IfSilent = c.next, c.horizon, c.ifSilent
}

// stays says that a claim waits on where it stands, whatever ends.
func (s *snapshot) stays(w *reader.Place) bool {
	i, known := s.Items[w.Resource]
	leaves := known && (i.Leaving || i.Absent || i.Expiry > 0)
	return w.Resource == "" || w.Until.IsZero() && !leaves
}

// come is what comes by itself to a claim, "" for the name, also if the process of the first hold is not heard of again.
func (x *explaining) come(claim string, first *reader.Held) (c coming) {
	c.next, c.horizon = forecast(x.s, claim, x.silent)
	if !x.watched(x.silent) {
		if c.next != nil && c.next.What != SweepDue {
			c.next = nil
		}
		return c
	}
	if c.first = first; first != nil {
		c.ifSilent = x.unlessHeard(claim, first, c.next)
	}
	return c
}

// unlessHeard is what comes sooner than the next if the process of a hold is not heard of again.
func (x *explaining) unlessHeard(claim string, first *reader.Held, next *Event) *Event {
	silent := func(node string) bool { return node == first.Node || x.silent(node) }
	if !x.watched(silent) {
		return nil
	}
	e, _ := forecast(x.s, claim, silent)
	if e != nil && next != nil && !e.At.Before(next.At) {
		return nil
	}
	return e
}

// watched says whether a process is alive that looks when something ends: one that waits, or that
// renews a hold.
func (x *explaining) watched(silent func(node string) bool) bool {
	looks := func(w *reader.Place) bool { return x.s.alive(w) && !silent(w.Node) }
	return slices.ContainsFunc(slices.Concat(x.s.Line, x.s.Lanes), looks) || x.renewing(x.s.Holds, silent) != nil
}

// renewer is the hold that is renewed of those in the way of the first one.
func (x *explaining) renewer() *reader.Held {
	if x.head != nil && x.head.Resource != "" {
		return x.renewing(x.holds, x.silent)
	}
	return x.renewing(x.s.Holds, x.silent)
}

// renewing is the hold that its process renews, or is about to, nil for none. Of several it is the one held longest, which stays
// the same while they renew.
func (x *explaining) renewing(holds []*reader.Held, silent func(node string) bool) (first *reader.Held) {
	for _, h := range holds {
		process := x.s.process(h)
		if (process == Renewing || process == Unconfirmed) && !silent(h.Node) && (first == nil || oldest(h, first) < 0) {
			first = h
		}
	}
	return first
}

// first is the first claim that lives, of those who wait for the same as the explained one. A claim that
// has become too heavy leaves when it is the first.
func (x *explaining) first() *reader.Place {
	s, waits, resource := x.s, x.s.Line, ""
	if x.self != nil && x.self.Resource != "" {
		waits, resource = s.Lanes, x.self.Resource
	} else if x.self == nil {
		waits = slices.Concat(s.Line, s.Lanes)
	}
	for _, w := range waits {
		if (resource == "" || w.Resource == resource) && s.alive(w) && (s.Kind == keyspace.Pool || w.Weight <= s.Capacity) {
			return w
		}
	}
	return x.self
}

// inTheWay are the holds of what the first one waits for: those held longest are the first; of a lock the outermost entry.
func (x *explaining) inTheWay() []*reader.Held {
	resource := ""
	if x.head != nil {
		resource = x.head.Resource
	}
	holds, known := x.s.shared.inTheWay[resource]
	if !known {
		holds = x.holdsOf(resource)
		x.s.shared.inTheWay[resource] = holds
	}
	return holds
}

// holdsOf are the holds of a resource, "" for all.
func (x *explaining) holdsOf(resource string) (holds []*reader.Held) {
	s := x.s
	for _, h := range s.Holds {
		item, known := s.Items[h.Resource]
		if s.Kind != keyspace.Pool || !h.Wants.Shared && (!known || slices.Contains(item.Claims, h.ID)) && (resource == "" || resource == h.Resource) {
			holds = append(holds, h)
		}
	}
	if s.Kind != keyspace.Lock {
		slices.SortFunc(holds, oldest)
	}
	return holds
}

// oldest has those come first that have held longest.
func oldest(a, b *reader.Held) int {
	return cmp.Or(a.Granted.Compare(b.Granted), cmp.Compare(a.ID, b.ID))
}

// sooner compares two moments, of which a zero one never comes.
func sooner(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return b.Compare(a)
	}
	return a.Compare(b)
}

// holding is a hold as a claim.
func (s *snapshot) holding(h *reader.Held) Claim {
	c := Claim{
		Kind: s.Kind, Name: s.Name.Name, Hold: &h.Holder, Process: s.process(h), Heard: s.heardOf(h), Paused: s.left(s.pauseEnds()),
	}
	if c.Heard.At.IsZero() {
		c.Heard = s.nodeHeard(h.Node)
	}
	return c
}

// waiter is a waiting claim.
func (s *snapshot) waiter(w *reader.Place) Claim {
	return Claim{Kind: s.Kind, Name: s.Name.Name, Wait: &w.Waiter, Heard: s.waits(w), Paused: s.left(s.pauseEnds())}
}
