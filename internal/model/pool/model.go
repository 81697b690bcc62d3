package pool

import "slices"

// forever is the deadline that never comes, as the scripts write it.
const forever = int64(1)<<44 - 1

// item is a resource in the model.
type item struct {
	max                     int
	expiry, ends, pend, rev int64
	leaving                 bool
	claims                  []string
	reason                  string
}

// wants is what a claim asks for.
type wants struct {
	policy, kind      string
	cooldown, bindfor int64
	bind              string
}

// claim is a claim in the model. Exactly one of deadline and alive is not zero
// while it holds or waits; stone is the word of a tombstone.
type claim struct {
	wants
	id, node, terms      string
	priority             int
	renews               bool
	wait, lease, most    int64
	phase                byte
	ticket, fence, limit int64
	place                string // as a reply tells it: its lane, and its place in that
	deadline, alive      int64
	stone                string
	forgotten            int64
	resource             string
	fences               []int64 // those that it had before
	known                bool    // the server has a record or a tombstone
	reach                int64   // the longer lease by which the deadline was set, 0 for none
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
	dropped            bool                // this run has forgotten some of these
	looked             int                 // the rank below which patrol looks next, 0 = from the end
	items              map[string]*item
	free               []string
	claims             map[string]*claim
	binds              map[string]binding

	// drawn is what the server gave to a claim, for the random policy alone; left
	// says whether the server has still an expired resource in its list.
	drawn func(claim string) string
	left  func(key string) bool
	// granted are the claims that this step granted, in order; came is the one that
	// joined the line after that; fault is what the server did that the model would not.
	granted []*claim
	came    *claim
	handed  []string
	swept   int // how much this run of a script has dropped, but for what pick has
	drops   int // what that has
	more    int // the flag that there is more to sweep
	fault   string
	expires int64 // after how long what comes back leaves, 0 for as before
}

func newModel() *model {
	return &model{items: map[string]*item{}, claims: map[string]*claim{}, binds: map[string]binding{}, changed: map[string]operated{}}
}

// settle puts the resource where it belongs.
func (m *model) settle(key string) {
	i, at := m.items[key], slices.Index(m.free, key)
	listed := !i.leaving && i.ends == 0 && len(i.claims) < i.max
	if at >= 0 && !listed {
		m.free = slices.Delete(m.free, at, at+1)
	} else if at < 0 && listed {
		m.free = append(m.free, key)
	}
	if i.leaving && len(i.claims) == 0 {
		delete(m.items, key)
	}
}

func (m *model) rotate(key string) {
	if at := slices.Index(m.free, key); at >= 0 {
		m.free = append(slices.Delete(m.free, at, at+1), key)
	}
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
	if word != "" {
		c.stone, c.forgotten, c.known = word, m.now+stays, true
	}
	if !held {
		return true
	}
	var ends int64
	said := ""
	if c.cooldown > 0 {
		ends = min(m.now, deadline) + c.cooldown
	}
	if rest > 0 && m.now+rest >= ends {
		ends, said = m.now+rest, reason
	}
	return m.giveBack(c, ends, said)
}
