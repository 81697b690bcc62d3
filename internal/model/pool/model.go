package pool

import (
	"slices"

	"github.com/berth-go/berth/internal/state"
)

// forever is the deadline that never comes, as the scripts write it.
const forever = int64(state.Forever)

// item is a resource in the model.
type item struct {
	max                     int
	expiry, ends, pend, rev int64
	leaving                 bool
	own                     string // its own settings, "" = none
	claims                  []string
	reason                  string
}

// wants is what a claim asks for; see scripts/pool/wants.lua.
type wants struct {
	kind              string // o its own, s shared, a alone: its own, and nobody else's
	cooldown, bindfor int64  // bindfor -1 = as the settings say
	patience          int64  // how long it waits for what it is bound to (ms), forever = never another
	only              string // the one resource that will do, "" = any
	bind              string
}

// claim is a claim in the model. Exactly one of deadline and alive is not zero
// while it holds or waits; stone is the word of a tombstone.
type claim struct {
	wants
	id, node, owner      string
	terms                string // the fixed ones of its record
	priority             int
	renews               bool
	wait, lease, most    int64
	phase                byte
	ticket, fence, limit int64
	place                string // its priority's lane, and its place in that
	lane                 string // the resource that it waits for, "" = it waits in the general line
	until                int64  // when it goes over to the general line, 0 = never
	told                 standing
	deadline, alive      int64
	stone                string
	forgotten            int64
	resource             string
	fences               []int64 // those that it had before
	known                bool    // the server has a record or a tombstone
	asked                first   // what it asked for, before a call named another lease
	reach                int64   // the longer lease by which the deadline was set, 0 for none
	wanted               int64   // since when somebody wants it back, 0 for nobody
}

// first is what a claim asked for.
type first struct {
	lease  int64
	renews bool
}

// anew has a claim ask for what it asked for first.
func (c *claim) anew() {
	c.lease, c.renews, c.reach, c.wanted = c.asked.lease, c.asked.renews, 0, 0
}

// standing is where a claim was told that it stands.
type standing struct {
	text, lane, place string
	until, ticket     int64
}

// binding is a binding in the model.
type binding struct {
	ends int64
	key  string
}

// operated is what an operator's call has done.
type operated struct {
	rev   int64
	by    string // the call
	what  string
	until int64 // when it may be forgotten
}

// raise raises the revision.
func (m *model) raise() { m.rev = max(m.rev+1, m.now) }

// model is a pool as it should be: no list, no links, no scores, no counts that are
// kept; only the order in which resources came free is. What has expired stays until
// a script reclaims, and who died waiting until a script comes by.
type model struct {
	now, us            int64
	fence, ticket, gen int64               // gen is the revision of the last Replace or Remove
	rev                int64               // the revision
	replace, removed   operated            // the last Replace and the last Remove
	changed            map[string]operated // by resource: what was changed last
	looked             int                 // the rank below which patrol looks next, 0 = from the end
	set                settings
	paused             int64 // when the pause ends, 0 for none
	pausing            pausing
	filled             bool // all that was to be in it has been added once
	items              map[string]*item
	free               []string
	claims             map[string]*claim
	lanes              map[string]int64 // by resource: the number of its lane
	binds              map[string]binding
	server

	// granted are the claims that this step granted, in order; came is the one that
	// joined the line after that, and arrived the one that had not to; fault is what the
	// server did that the model would not.
	granted       []*claim
	came, arrived *claim
	handed        []string
	absent        map[string]bool // the pushes about waits that have ended, and whether they must be
	swept         int             // how much this run of a script has dropped, but for what pick has
	unsure        bool            // it may have dropped more: what else it does also counts
	drops         int             // what pick has
	more          int             // the flag that there is more to sweep
	reclaimed     bool            // this run has ended all that was to end by now
	met           bool            // this run has looked at lanes or at patience, which does not count as dropped
	expires       int64           // after how long what comes back leaves, 0 for as before
	fault         string
}

// server is what is the server's to decide.
type server struct {
	there bool // it knows the pool
	// drawn is what it gave to a claim, for the random policy alone; left says whether it
	// has still an expired resource in its list.
	drawn func(claim, other string) string
	left  func(key string) bool
	// dropped says that it knows nothing of a claim any more, which had died.
	dropped func(claim string) bool
	// saved is what it has of the settings after a run that has perhaps changed nothing; before are those
	// without the run.
	saved func(before settings) settings
	// marked says that a lane was to be looked at before the run, which a pause has put off.
	marked func() bool
	// number is that of a lane which a claim with a ticket opens.
	number func(resource string, ticket int64) int64
}

func newModel(s server) *model {
	return &model{
		items: map[string]*item{}, claims: map[string]*claim{}, lanes: map[string]int64{}, binds: map[string]binding{},
		changed: map[string]operated{},
		absent:  map[string]bool{}, set: unset, server: s,
	}
}

// begins is the beginning of a run of a script.
func (m *model) begins() {
	if m.paused <= m.now {
		m.paused = 0
	}
	m.granted, m.swept, m.more, m.unsure, m.reclaimed, m.met, m.arrived = nil, 0, 0, false, false, false, nil
}

// settle puts the resource where it belongs.
func (m *model) settle(key string) {
	i, at := m.items[key], slices.Index(m.free, key)
	listed := !i.leaving && i.ends == 0 && len(i.claims) < i.max
	if at >= 0 && !listed {
		m.free = slices.Delete(m.free, at, at+1)
	} else if at < 0 && listed {
		m.free = append(m.free, key)
		m.fence = max(m.fence+1, m.us) // its turn
	}
	if i.leaving && len(i.claims) == 0 {
		delete(m.items, key)
	}
}

func (m *model) rotate(key string) {
	if at := slices.Index(m.free, key); at >= 0 {
		m.free = append(slices.Delete(m.free, at, at+1), key)
		m.fence = max(m.fence+1, m.us)
	}
}

// leave has a resource leave the pool, now or when its last holder gives it back.
func (m *model) leave(key string) {
	m.items[key].leaving = true
	m.settle(key)
}

func (m *model) holds() (held, waiting, stones int) {
	for _, c := range m.claims {
		switch {
		case c.stone != "":
			stones++
		case c.deadline > 0:
			held++
		case c.alive > 0:
			waiting++
		}
	}
	return held, waiting, stones
}

// giveBack ends what a claim had of its resource.
func (m *model) giveBack(c *claim, ends int64, reason string) bool {
	key := c.resource
	c.resource = ""
	i := m.items[key]
	if i == nil {
		return false
	}
	at := slices.Index(i.claims, c.id)
	if at < 0 {
		return !i.leaving
	}
	i.claims = slices.Delete(i.claims, at, at+1)
	if i.pend > 0 && m.now+i.pend > ends {
		ends, reason = m.now+i.pend, i.reason
	}
	i.pend = 0
	if i.expiry > 0 && i.expiry <= m.now {
		i.leaving = true
	} else if ends > m.now && ends > i.ends {
		i.ends, i.reason = min(ends, forever), reason
	}
	if m.expires > 0 && !i.leaving {
		i.expiry = m.now + m.expires
	}
	if i.ends == 0 {
		i.reason = ""
	}
	m.settle(key)
	return !i.leaving
}

// removeClaim ends a hold or a wait. word and stays are those of its tombstone.
func (m *model) removeClaim(c *claim, word string, stays, rest int64, reason string) bool {
	held, deadline := c.deadline > 0, c.deadline
	c.deadline, c.alive, c.known = 0, 0, false
	m.joins(c, "", 0)
	if word != "" {
		c.stone, c.forgotten, c.known = word, m.now+stays, true
	}
	if !held {
		return true
	}
	ends, said := m.rests(c, c.resource, min(m.now, deadline), rest, reason)
	return m.giveBack(c, ends, said)
}
