package engine

import (
	"math"
	"slices"
	"sync"
	"time"
)

// group is what this node knows of the entries by which one owner holds one name. The server
// gives them one deadline in common. An entry that extends moves it further off; its release
// takes back what is unused, but only from entries of this node that were lowered for it.
// The methods take numbers and return deadlines: they send nothing and look at no clock. A
// moment is a local deadline on the engine's clock, never where there is none.
//
// An example, without margins: the outermost entry O has a deadline of 10 s, so least is 10.
// An inner entry I asks to extend by 5 s, and notes 10. It is granted at 1 s: the deadline of
// both is 15 s, and least is 15. At 3 s the release of I is about to be sent: 3 s of the 5 are
// unused, so least is 12, which is the ceiling of O until the release is answered. Had another
// entry's release been answered since I asked, the noted 10 would not count; as it is, least
// never falls below it. Had O renewed at 2.5 s, 12.5 would be the floor.
type group struct {
	key    groupKey
	claims []*Claim // guarded by Engine.mu: its entries on this node, and what asks to be one

	mu      sync.Mutex
	holding int           // guarded by mu: how many of them are granted
	least   time.Duration // guarded by mu: the common deadline is no nearer, even when all of going have run
	floor   time.Duration // guarded by mu: nor does any release from here bring it nearer than this
	said    time.Duration // guarded by mu: the common deadline, by the answer to the newest call
	told    time.Duration // guarded by mu: when that call was sent
	going   []*member     // guarded by mu: whose releases are not answered
	version int           // guarded by mu: how often a release began to take back, or was answered
	changed time.Duration // guarded by mu: when that last was
}

// member is a claim's part in its owner's group, nil for a claim without one: then its
// methods do nothing.
type member struct {
	id      string
	group   *group
	limited bool          // what its answers say may be a limit of its own
	holds   bool          // guarded by group.mu: it is granted
	before  time.Duration // guarded by group.mu: what was left before the claim was asked for
	noted   int           // guarded by group.mu: the version then; before counts in no later one

	// Of its release, from before the first attempt until it is answered. The release
	// outlives the handles that it lowers: a hold may be taken up anew, with its id.
	by    time.Duration // guarded by group.mu: what the claim has added
	since time.Duration // guarded by group.mu: from when on that is being used up
	of    []string      // guarded by group.mu: the claims from which it may be taken back
}

const (
	past  time.Duration = -1 // before every moment of the clock, and not 0
	never time.Duration = math.MaxInt64
)

// moment is when a deadline is, of which 0 is none.
func moment(deadline time.Duration) time.Duration {
	if deadline == 0 {
		return never
	}
	return deadline
}

// nearer is a moment moved nearer.
func nearer(at, by time.Duration) time.Duration {
	if at <= by {
		return past
	}
	return at - by
}

func newGroup(key groupKey) *group {
	return &group{key: key, least: past, floor: past, said: never, told: past, changed: past}
}

// unused is the most that the member's release takes back if it runs at a moment or later.
func (m *member) unused(at time.Duration) time.Duration {
	return max(0, m.by-max(0, at-m.since))
}

// learns takes what a call that began at start has said of the common deadline, and what the
// outermost entry's own lease gives, which nobody takes back. The answer to the newest call may
// say less than was known: a failover may have lost what was added or renewed. mu is held.
func (m *member) learns(start, deadline, renewed time.Duration) {
	g := m.group
	g.floor = max(g.floor, renewed)
	if start >= g.told && !m.limited {
		g.said, g.told = deadline, start
	}
	g.floor, g.least = min(g.floor, g.said), min(g.least, g.said)
	left := min(deadline, g.said)
	for _, gone := range g.going {
		left = nearer(left, gone.unused(start)) // each takes back its own
	}
	g.least = max(g.least, g.floor, left)
}

// takesFrom says whether a release that is not answered may take something back from a
// claim. mu is held.
func (g *group) takesFrom(id string) bool {
	return slices.ContainsFunc(g.going, func(m *member) bool { return slices.Contains(m.of, id) })
}

// changes begins another version: what was noted before is too much, and what is answered to a call
// that was sent before may be. mu is held.
func (g *group) changes(now time.Duration) { g.version, g.changed = g.version+1, max(g.changed, now) }

// asks notes what is left without the claim: its release leaves at least that.
func (m *member) asks() {
	if m == nil {
		return
	}
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.before, m.noted = m.group.least, m.group.version
}

// enters counts the claim as granted. While none was, entries of other nodes may have given
// back: what is older does not count. mu is held.
func (m *member) enters(start, deadline, renewed time.Duration) {
	g := m.group
	m.holds = true
	if g.holding++; g.holding == 1 {
		g.least, g.floor, g.told = past, past, past
		g.changes(start)
	}
	m.learns(start, deadline, renewed)
}

// adopted takes the answer that the claim was taken up again, to a call that began at start,
// and returns the deadline that it may be believed in: the answer may be from before
// something was taken back.
func (m *member) adopted(start, deadline time.Duration) time.Duration {
	if m == nil {
		return deadline
	}
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.changed >= start
	if old {
		deadline = min(deadline, g.least) // which knows of all that is on its way
	}
	m.enters(start, deadline, past)
	if old {
		g.least = max(g.least, deadline)
	}
	if g.takesFrom(m.id) {
		deadline = min(deadline, g.least)
	}
	return deadline
}

// ends takes the end of the claim here.
func (m *member) ends() {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	if m.holds {
		m.holds = false
		m.group.holding--
	}
}

// seen is the version, for a call that is about to be sent.
func (m *member) seen() int {
	if m == nil {
		return 0
	}
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	return m.group.version
}

// heard takes the grant of the claim, or the answer to a call that was sent at start, in the
// version that was seen. It reports false where that version is over.
func (m *member) heard(seen int, start, deadline, renewed time.Duration) bool {
	if m == nil {
		return true
	}
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	if !m.holds {
		m.enters(start, deadline, renewed)
		return true
	}
	if m.group.version != seen {
		return false
	}
	m.learns(start, deadline, renewed)
	return true
}

// leaves is called before an attempt of the claim's release is sent: with what the claim has
// added, from when on that is being used up, and the claims that can be lowered. It reports
// whether these have a ceiling now: before the first attempt, and where something may be taken back.
func (m *member) leaves(now, by, since time.Duration, of []string) bool {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	m.by, m.since = by, since
	if slices.Contains(g.going, m) || len(of) == 0 || m.unused(now) == 0 {
		return false
	}
	least := max(g.floor, nearer(g.least, m.unused(now)))
	if m.noted == g.version {
		least = max(least, min(m.before, g.said))
	}
	m.of, g.least, g.going = of, least, append(g.going, m)
	g.changes(now)
	return true
}

// heralded are the claims from which the release may take something back.
func (m *member) heralded() []string {
	if m == nil {
		return nil
	}
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	return m.of
}

// answered takes the answer to the release, and returns whose ceilings are to be lifted.
func (m *member) answered(now time.Duration) (of []string) {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.going, m); i >= 0 {
		g.going, of = slices.Delete(g.going, i, i+1), m.of
		g.changes(now)
	}
	return of
}

// lifts returns the claim's deadline after a release was answered: what was answered before may
// be too much. It moves it at least a bit, so that a beat that is under way no longer does.
func (m *member) lifts(deadline time.Duration) time.Duration {
	if m == nil {
		return deadline
	}
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	return min(nearer(moment(deadline), 1), m.group.least)
}

// ceiling is what the claim may be believed in at the most, never for no bound: some releases that
// may take something back from it are not answered.
func (m *member) ceiling() time.Duration {
	if m == nil {
		return never
	}
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	if !m.group.takesFrom(m.id) {
		return never
	}
	return m.group.least
}

// bounds is the earlier one of a claim's own limit and its ceiling, 0 for none.
func (m *member) bounds(limit time.Duration) time.Duration {
	if at := min(moment(limit), m.ceiling()); at != never {
		return at
	}
	return 0
}

// idle says whether nothing that is on its way has anything to take back any more. What it has taken
// back is told to whoever asks from now on.
func (g *group) idle(now time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !slices.ContainsFunc(g.going, func(m *member) bool { return m.unused(now) > 0 })
}
