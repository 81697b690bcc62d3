package pool

import (
	"cmp"
	"strconv"
	"strings"
)

// settings are the words of those of the pool, see scripts/pool/settings.lua: by, and those that may be
// set. A word is - where nobody has said anything.
type settings [7]string

var unset = settings{"-", "-", "-", "-", "-", "-", "-"}

const (
	setPolicy = iota + 1
	setCooldown
	setSharers
	setBindfor
	setLease
	setHold
)

func (s settings) text() string { return strings.Join(s[:], " ") }

// number is that of a word, instead of which another one counts where it is unset.
func (s settings) number(word int, instead int64) int64 { return numberOr(s[word], instead) }

func numberOr(word string, instead int64) int64 {
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return n
	}
	return instead
}

// merged are words with others in their place: "." leaves one as it is.
func merged(words, by []string) []string {
	all := make([]string, len(words))
	for n, word := range words {
		if all[n] = by[n]; by[n] == "." {
			all[n] = word
		}
	}
	return all
}

// opinion is what a process says of the settings, "" for nothing; a strict one goes by no others.
type opinion struct {
	strict bool
	words  settings // but by
}

// pattern is an opinion as the scripts take it.
func (o opinion) pattern() string {
	by, some := "%S", false
	if o.strict {
		by = "[-op]"
	}
	for _, word := range o.words[1:] {
		some = some || word != ""
		by += " " + cmp.Or(word, "%S+")
	}
	if !some {
		return ""
	}
	return by + "$"
}

// agree fills in what a process says. It says whether the process goes by what is set then, and
// whether it says something else.
func (m *model) agree(o opinion) (agrees, differs bool) {
	filled := m.set
	for n, word := range o.words {
		switch {
		case n == 0 || word == "":
		case m.set[n] == "-":
			filled[n], filled[0] = word, strings.ReplaceAll(m.set[0], "-", "p")
		case m.set[n] != word:
			differs = true
		}
	}
	if differs && o.strict {
		return false, true
	}
	m.set = filled
	return true, differs
}

// limited says whether a claim asks for more than the settings allow.
func (m *model) limited(c *claim) bool {
	above := func(asks, limit int64) bool { return limit > 0 && (asks == 0 || asks > limit) }
	return above(c.asked.lease, m.set.number(setLease, 0)) || above(c.most, m.set.number(setHold, 0))
}

// refusesLease says whether an own call of a hold names a longer lease than it has, and than the settings
// allow.
func (m *model) refusesLease(c *claim, mode string) bool {
	_, millis, named := strings.Cut(mode, " ")
	asks, _ := strconv.ParseInt(millis, 10, 64)
	above := func(limit int64) bool { return limit > 0 && (asks == 0 || asks > limit) }
	return named && c.lease > 0 && above(c.lease) && above(m.set.number(setLease, 0))
}

// ownNumbers are the numbers that a resource has of its own, -1 where it is as the pool.
func (i *item) ownNumbers() (cooldown, sharers, bindfor int64) {
	words := strings.Fields(cmp.Or(i.own, "- - -"))
	return numberOr(words[0], -1), numberOr(words[1], -1), numberOr(words[2], -1)
}

// rests is when the rest of a resource ends after a hold that ended then (ms), 0 for none, and why it
// rests: by the cooldown, or for as long as the holder asks if that is no shorter. Nobody has used what a
// check held alone.
func (m *model) rests(c *claim, key string, from, rest int64, reason string) (ends int64, why string) {
	cooldown := c.cooldown
	if i := m.items[key]; i != nil && c.kind != "a" {
		own, _, _ := i.ownNumbers()
		if own < 0 {
			own = m.set.number(setCooldown, 0)
		}
		cooldown = max(cooldown, own)
	}
	if cooldown > 0 {
		ends = from + cooldown
	}
	if rest > 0 && m.now+rest >= ends {
		return m.now + rest, reason
	}
	return ends, ""
}

// lastsBound is how long a name is bound to a resource by a claim (ms), 0 = forever.
func (m *model) lastsBound(c *claim, key string) int64 {
	if c.bindfor >= 0 {
		return c.bindfor
	}
	if _, _, own := m.items[key].ownNumbers(); own >= 0 {
		return own
	}
	return m.set.number(setBindfor, 3_600_000)
}

// sharers is how many may hold a resource at once by the settings, 0 where they say nothing.
func (m *model) sharers(i *item) int {
	if _, own, _ := i.ownNumbers(); own >= 0 {
		return int(own)
	}
	return int(m.set.number(setSharers, 0))
}

// configure sets what the pool goes by, or what a resource has of its own. The call has an id, and has
// seen a revision.
func (m *model) configure(key string, words []string, what string, stamp int64, by string) []any {
	i := m.items[key]
	own := func() string {
		if key == "" {
			return m.set.text()
		} else if i == nil {
			return "- - -"
		}
		return cmp.Or(i.own, "- - -")
	}
	if by == m.changed[key].by {
		_, waiting, _ := m.holds()
		return []any{"set", flagMore * min(waiting, 1), own(), m.rev}
	} else if stale := m.stale(key, stamp); stale != nil {
		return stale
	}
	if key == "" {
		set := merged(m.set[1:], words)
		m.set = settings(append([]string{"-"}, set...))
		if m.set != unset {
			m.set[0] = "o"
		}
	} else if m.gone(i) {
		return []any{"absent"}
	} else {
		_, had, _ := i.ownNumbers()
		if i.own = strings.Join(merged(strings.Fields(own()), words), " "); i.own == "- - -" {
			i.own = ""
		}
		if _, sharers, _ := i.ownNumbers(); sharers >= 0 || had >= 0 {
			i.max = max(m.sharers(i), 1)
		}
		m.settle(key)
	}
	m.raise()
	m.changed[key] = operated{rev: m.rev, by: by, what: what, until: m.now + 60_000}
	m.reclaim()
	m.handOff()
	return []any{"set", m.more, own(), m.rev}
}

// shares lets as many hold each of some resources as the settings say, but for those that were added
// after a revision, or have a number of their own.
func (m *model) shares(keys []string, revision int64) []any {
	sharers, changed := int(m.set.number(setSharers, 0)), false
	for _, key := range keys {
		i := m.items[key]
		if i == nil {
			continue // it has left since the page was read
		}
		if _, own, _ := i.ownNumbers(); sharers > 0 && own < 0 && i.max != sharers && i.rev <= revision {
			i.max, changed = sharers, true
			m.settle(key)
		}
	}
	if changed {
		m.reclaim()
		m.handOff()
	}
	return []any{"page", nil, m.more}
}

// mend makes a damaged resource whole, which stays, or leaves.
func (m *model) mend(key string, stays bool) []any {
	i := m.items[key]
	i.expiry, i.ends, i.pend, i.rev, i.leaving, i.reason = 0, 0, 0, 0, !stays, ""
	i.max = max(len(i.claims), 1)
	m.settle(key)
	m.handOff()
	return []any{"removed", 1, m.more}
}
