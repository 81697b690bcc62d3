package heartbeat

import "time"

// pending has the leases that were added a short while ago, by the bits of their paces.
// Most holds are over long before their first beat. To enter a lane, and the order of what
// happens by itself, and to leave them, costs several searches; to be put at the end of a
// list, and to be taken out of it, costs nothing of the kind.
//
// The leases of a list are looked at one after the other, each a fixed while after it was
// put there, so the first one is always the next. It is put at the end once more if nothing
// needs it in its lane before it is looked at again. Engine.mu guards all of this.
type pending struct {
	lists [tracks]list
	// look is no later than when the first lease of any list is to be looked at; never
	// if all are empty.
	look time.Duration
}

// list is linked by Lease.before and Lease.after.
type list struct{ first, last *Lease }

// while is how long a lease of a track stays in its list before it is looked at.
func (t track) while() time.Duration { return t.shortest() / 9 }

// add puts a lease into its list, if nothing needs it in a lane before it is looked at.
func (p *pending) add(l *Lease, now time.Duration) bool {
	t := l.spec.track("")
	look := now + t.while()
	if min(l.due-l.window(), l.next()) < look {
		return false
	}
	ls := &p.lists[t.bits]
	l.pending, l.event = true, look
	l.before, l.after = ls.last, nil
	if ls.last == nil {
		ls.first = l
	} else {
		ls.last.after = l
	}
	ls.last = l
	p.look = min(p.look, look)
	return true
}

// drop takes a lease out of its list.
func (p *pending) drop(l *Lease) {
	ls := &p.lists[l.spec.track("").bits]
	if l.before == nil {
		ls.first = l.after
	} else {
		l.before.after = l.after
	}
	if l.after == nil {
		ls.last = l.before
	} else {
		l.after.before = l.before
	}
	l.pending, l.before, l.after = false, nil, nil
}

// each takes out what is to be looked at by the moment until, and calls f for it, which may
// add it again for a later moment.
func (p *pending) each(until time.Duration, f func(*Lease)) {
	if p.look > until {
		return
	}
	p.look = never
	for i := range p.lists {
		ls := &p.lists[i]
		for l := ls.first; l != nil && l.event <= until; l = ls.first {
			p.drop(l)
			f(l)
		}
		if ls.first != nil {
			p.look = min(p.look, ls.first.event)
		}
	}
}
