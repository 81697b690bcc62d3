package engine

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// An owner may hold one name by several entries, with one deadline in common. An
// entry that extends it moves the deadline of the others further off, and back
// again by what is unused when it ends. What follows keeps the others honest:
// their local deadlines are lengthened once the extension is confirmed, and
// lowered before the release that takes it back is sent.

// kin is what a claim knows of its deadline because of its siblings.
type kin struct {
	replied  time.Duration      // when the answer that made it an entry was read
	ceilings map[*Claim]ceiling // what entries in the middle of their release may leave of it
	told     time.Duration      // the local deadline by the last answer; a call under way may have lowered it
	beyond   time.Duration      // how much further than its lease it was extended, as far as is known
	renewed  time.Duration      // start of the last call that renewed it
	steps    int                // how much has become of its deadline; orders what follows, which the clock would not
	heardAt  int                // the step of the last answer
	liftedAt int                // the step at which the last of the ceilings was lifted
	notes    map[*Claim]note    // what its siblings believed in before it was sent
	heralded []string           // the siblings that were lowered for its removal; guarded by calls
	mayGo    bool               // an attempt of its removal may run yet; guarded by calls
}

// ceiling is what the removal of another entry may leave of a claim's deadline.
type ceiling struct {
	at   time.Duration
	step int // when it was set
}

// note is a claim's deadline before something that may lengthen it was sent.
type note struct {
	deadline time.Duration
	step     int
}

// Entry is what the server says of a claim whose owner held the name already.
type Entry struct {
	Terms
	// Extends is by how much the claim lengthens the common deadline, confirmed
	// or not.
	Extends time.Duration
	// Common is what is left of the common deadline, below 0 for no end, and where
	// the outermost entry has yet to speak.
	Common time.Duration

	rest time.Duration // what its claimant's confirming call adds
}

// Heralded are the owner's other entries whose local deadlines were lowered before
// the claim's removal is sent: only where no other stays may it take anything back.
func (c *Claim) Heralded() []string { return c.kin.heralded }

// extended is by how much the claim was extended, as far as is known.
func (c *Claim) extended() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kin.beyond
}

func (c *Claim) extends(spec *heartbeat.Spec, by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kin.beyond = sum(c.kin.beyond, by)
	spec.Beyond = c.kin.beyond
}

// overtaken says whether something was taken back since the call was sent.
func (c *Claim) overtaken(seen sight) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kin.liftedAt > seen.step
}

// heard takes an answer that the claim holds, and has its deadlines set anew where the
// answer has lifted a ceiling.
func (c *Claim) heard(start, left time.Duration) deed {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kin.renewed = start
	if left < 0 {
		left = berth.Forever
	}
	c.hears(heartbeat.Deadline(start, left, c.m.lease.lease()))
	if len(c.kin.ceilings) > 0 {
		return doTime
	}
	return 0
}

// time sets what an answer, or a push, says of the hold's deadlines.
func (c *Claim) time(spec *heartbeat.Spec, g given) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := spec.Deadline
	c.m.time(spec, g)
	if c.m.phase == loose {
		return
	}
	if before == 0 && g.confirmed { // it was just granted
		c.kin.renewed = g.start
	}
	spec.Limit = c.bound(spec)
	if before != 0 && c.kin.liftedAt > g.step {
		// Something was taken back since that call was sent: its answer may be from
		// before, and the server has been asked again.
		spec.Deadline = min(spec.Deadline, before)
	}
	c.hears(spec.Deadline)
	spec.Beyond = c.kin.beyond
}

// siblings are the other holds of the claim's owner on its name, on this node.
func (e *Engine) siblings(c *Claim) []*Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []*Claim
	for _, other := range e.claims {
		if other != c && other.Name == c.Name && other.owner() == c.owner() {
			if m := other.see(); m.holds() {
				found = append(found, other)
			}
		}
	}
	return found
}

// noteSiblings keeps the deadlines of the others as they are without the claim:
// its removal leaves at least those.
func (e *Engine) noteSiblings(c *Claim) {
	if c.Extends == 0 {
		return
	}
	notes := make(map[*Claim]note)
	for _, other := range e.siblings(c) {
		other.mu.Lock()
		other.kin.steps++
		notes[other] = note{deadline: other.lease.Deadline(), step: other.kin.steps}
		other.mu.Unlock()
	}
	c.mu.Lock()
	c.kin.notes = notes
	c.mu.Unlock()
}

// noted is what the claim has noted of another, nothing where that one came later:
// a hold that was taken up again is another claim, whose steps are counted anew.
func (c *Claim) noted(other *Claim) note {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kin.notes[other]
}

// hears takes a deadline that an answer gives. It is called with c.mu held.
func (c *Claim) hears(deadline time.Duration) {
	c.kin.steps++
	c.kin.told, c.kin.heardAt = deadline, c.kin.steps
}

// lengthenSiblings moves the deadlines of the others to what the entry's grant
// has made of them, unless something has been taken back since it was sent.
func (e *Engine) lengthenSiblings(c *Claim, entry *Entry) {
	if entry.Extends == 0 {
		return
	}
	defer e.beats.Kick(c.Name)
	if entry.Common < 0 {
		return
	}
	start, common := c.start, entry.Common+entry.rest
	for _, other := range e.siblings(c) {
		if other.takenBack(c.noted(other)) || !other.settled() {
			continue // its own next beat tells
		}
		e.beats.Update(&other.lease, func(spec *heartbeat.Spec) {
			if further := heartbeat.Deadline(start, common, spec.Lease); spec.Deadline != 0 && further > spec.Deadline {
				spec.Deadline = further
				other.mu.Lock()
				other.hears(further)
				other.kin.beyond = sum(other.kin.beyond, entry.Extends)
				spec.Beyond = other.kin.beyond
				other.mu.Unlock()
			}
		})
	}
}

// lowerSiblings brings the deadlines of the others down to what the removal of
// the claim leaves of them at the least, before it is sent, and keeps them there.
// The function that it returns takes the answer: it lifts that again, and has the
// server asked for what is left.
func (e *Engine) lowerSiblings(c *Claim) (rise func(error)) {
	if !c.mayExtend() {
		return func(error) {}
	}
	c.kin.heralded = c.kin.heralded[:0]
	siblings := e.siblings(c)
	e.removing(c, siblings)
	for _, other := range siblings {
		if e.lowerSibling(c, other) {
			c.kin.heralded = append(c.kin.heralded, other.ID)
		} else if !c.kin.mayGo {
			e.spares(c, other)
		}
	}
	return func(err error) {
		if err != nil && (c.kin.mayGo || scriptkit.MaybeRan(err)) {
			c.kin.mayGo = true
			e.loses(c)
			return // it may run yet: believe no more than what it leaves
		}
		c.kin.mayGo = false
		for _, id := range e.removed(c) {
			e.liftSibling(c, id)
		}
		e.beats.Kick(c.Name)
	}
}

// lowerSibling lowers one, and reports false where it could not. A call under way
// may have lowered it already, but not by what the claim extended.
func (e *Engine) lowerSibling(c, other *Claim) bool {
	now, noted, lowered := e.clock.Now(), c.noted(other), false
	done := e.beats.Update(&other.lease, func(spec *heartbeat.Spec) {
		if spec.Deadline == 0 {
			return // none here, which also stands for one too far off: the server's may be finite
		}
		unused := c.unused(now)
		other.mu.Lock()
		defer other.mu.Unlock()
		lowered = true
		least := max(spec.Deadline, other.kin.told)
		if other.kin.heardAt > noted.step {
			least = sooner(least, unused) // else it knows nothing of what the claim extended
		}
		quiet := len(other.kin.ceilings) == 0
		// One that is being removed already may be gone when this one goes, and each
		// takes back its own.
		for removed, another := range other.kin.ceilings {
			if removed == c {
				continue
			}
			left := max(another.at, other.renewedUntil(spec))
			if another.step > noted.step {
				left = sooner(left, unused)
			}
			least = min(least, left)
		}
		if quiet && noted.step > other.kin.liftedAt && noted.deadline != 0 {
			least = max(least, noted.deadline)
		}
		least = max(least, other.renewedUntil(spec))
		if earlier, again := other.kin.ceilings[c]; again {
			least = max(least, earlier.at) // lowered for an earlier attempt already
		}
		spec.Deadline = min(spec.Deadline, least)
		if other.kin.ceilings == nil {
			other.kin.ceilings = make(map[*Claim]ceiling)
		}
		other.kin.steps++
		other.kin.ceilings[c] = ceiling{at: least, step: other.kin.steps}
		spec.Limit = other.bound(spec)
	})
	return done && lowered
}

// sum adds two spans, both 0 or more; what is longer than there are is berth.Forever.
func sum(a, b time.Duration) time.Duration { return a + min(b, berth.Forever-a) }

// sooner is a moment moved nearer. It is never 0, which stands for none.
func sooner(moment, by time.Duration) time.Duration {
	if moment == by {
		return -1
	}
	return moment - by
}

// liftSibling takes the ceiling away again. What was answered while it was there
// may be from before the removal.
func (e *Engine) liftSibling(c *Claim, id string) {
	for other := e.find(id); other != nil; {
		if !e.beats.Update(&other.lease, func(spec *heartbeat.Spec) { other.lifts(c, spec) }) {
			other.lifts(c, &heartbeat.Spec{}) // it is about to be kept, or over
		}
		heir := e.find(id)
		if heir == other {
			return
		}
		other = heir // it may have inherited the ceiling before
	}
}

// lifts is one claim's part of it.
func (c *Claim) lifts(removed *Claim, spec *heartbeat.Spec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, low := c.kin.ceilings[removed]
	delete(c.kin.ceilings, removed)
	c.kin.steps++
	c.kin.liftedAt = c.kin.steps
	spec.Limit = c.bound(spec)
	if spec.Deadline == 0 {
		return
	}
	spec.Deadline = sooner(spec.Deadline, 1) // changed, so that a beat that is under way no longer moves it
	if low {
		spec.Deadline = min(spec.Deadline, max(was.at, c.renewedUntil(spec)))
	}
	c.kin.told = spec.Deadline
}

// inherits takes over what others are taking back of a hold that is taken up again
// here, and returns what it may be believed in at the most, 0 for no bound: the
// answer that it was taken up, which gives it the deadline, may be from before
// something was taken back. It is called with Engine.mu held.
func (e *Engine) inherits(c *Claim, start, deadline time.Duration) (most time.Duration) {
	if deadline == 0 {
		return 0
	}
	var going []*Claim
	for removed, r := range e.removals {
		if !r.of[c.ID] || r.answered && r.at < start {
			continue
		}
		if most == 0 {
			most = deadline
		}
		most = sooner(most, removed.unused(start)) // each takes back its own
		if !r.answered {
			going = append(going, removed)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kin.steps++
	c.kin.ceilings = make(map[*Claim]ceiling)
	for _, removed := range going {
		c.kin.ceilings[removed] = ceiling{at: most, step: c.kin.steps}
	}
	return most
}

// removal is a release of a claim that may have extended, from before its first
// attempt until it is answered. It outlives the claims that it lowers: such a hold
// may be taken up here anew, while the release is on its way.
type removal struct {
	of       map[string]bool // what it may be taken back from
	underWay bool            // an attempt waits for its answer
	sent     time.Duration   // else, when the last one was given up
	answered bool            // kept only because of what is being taken up meanwhile
	at       time.Duration   // when that was
}

// removing keeps what the removal of a claim may be taken back from. It drops those
// that nobody has heard of for so long that they have nothing to take back.
func (e *Engine) removing(c *Claim, siblings []*Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	for other, r := range e.removals {
		if age := now - r.sent; !r.underWay && age > other.Extends && age-other.Extends > Tombstone {
			delete(e.removals, other)
		}
	}
	r := e.removals[c]
	if r == nil {
		if len(siblings) == 0 {
			return
		}
		r = &removal{of: make(map[string]bool)}
		e.removals[c] = r
	}
	r.underWay = true
	for _, other := range siblings {
		r.of[other.ID] = true
	}
}

// loses takes note of a removal whose answer nobody waits for any more.
func (e *Engine) loses(c *Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.removals[c]; r != nil {
		r.underWay, r.sent = false, e.clock.Now()
	}
}

// spares takes a sibling out of a removal of which it is not told, unless somebody
// has taken it up here meanwhile, who counts on that it is lifted.
func (e *Engine) spares(c, other *Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.claims[other.ID]; now == nil || now == other {
		delete(e.removals[c].of, other.ID)
	}
}

// removed ends a removal that was answered, and returns what it was of.
func (e *Engine) removed(c *Claim) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.removals[c]
	if r == nil {
		return nil
	}
	r.answered, r.at = true, e.clock.Now()
	if e.adopting == 0 {
		delete(e.removals, c)
	}
	return slices.Collect(maps.Keys(r.of))
}

// settled says whether the limits of the claim are known: an entry that was granted
// before the outermost one had spoken got some with that one's first call.
func (c *Claim) settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m.lease.entry == nil || c.m.lease.entry.Common >= 0
}

// takenBack says whether something of the claim's deadline has been taken back
// since it was noted, or is being taken back: what a call that began then says of it
// may be from before.
func (c *Claim) takenBack(since note) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.kin.ceilings) > 0 || c.kin.liftedAt > since.step
}

// unused is the most that the removal of the claim can take back.
func (c *Claim) unused(now time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m.lease.entry == nil {
		return c.Extends
	}
	return max(0, c.m.lease.entry.Extends-max(0, now-c.kin.replied))
}

// mayExtend says whether the claim has lengthened what its owner holds, as far as
// is known: one that has a ticket, and is no entry, has not.
func (c *Claim) mayExtend() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Extends > 0 && (c.m.lease.entry != nil || c.m.news.lost && c.m.place.ticket == 0)
}

// renewedUntil is what the claim's own last renewal gives it, whatever others
// extended: only for the outermost entry, whose renewals count. It is called with
// c.mu held.
func (c *Claim) renewedUntil(spec *heartbeat.Spec) time.Duration {
	if c.m.lease.entry != nil || !spec.Renews || !c.m.grant.confirmed {
		return math.MinInt64
	}
	return heartbeat.Deadline(c.kin.renewed, spec.Lease, spec.Lease)
}

// bound is the earliest of the claim's limit and its ceilings, 0 for none. What it
// has renewed since stays whatever is taken back. It is called with c.mu held.
func (c *Claim) bound(spec *heartbeat.Spec) time.Duration {
	at := c.m.lease.limit
	for _, ceiling := range c.kin.ceilings {
		until := max(ceiling.at, c.renewedUntil(spec))
		if at == 0 || until < at {
			at = until
		}
	}
	return at
}
