package inspect

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
)

func (x *explaining) reason(r Reason, clause string) {
	x.e.Reasons = append(x.e.Reasons, r)
	switch {
	case x.clause == "":
		x.clause = clause
	case len(x.e.Reasons) == 2 && x.e.Reasons[0].Code == Paused:
		x.clause += "; and " + clause // what is in the way once the pause is over
	}
}

func (x *explaining) also(r Reason, format string, args ...any) {
	x.e.Reasons = append(x.e.Reasons, r)
	x.sentences = append(x.sentences, fmt.Sprintf(format, args...))
}

// itself is what is to be said of the name or the claim alone. It returns whether that is all.
func (x *explaining) itself() bool {
	s, claim := x.s, text.Word(x.e.Claim)
	kind := kinds[s.Kind]
	switch c, newer := s.claim, s.newer(); {
	case newer > 0:
		x.also(Reason{Code: Incompatible, Have: newer}, "%s was written by a newer Berth (format %d); this one can say nothing of it.",
			capital(s.title()), newer)
	case newer < 0:
		x.also(Reason{Code: Foreign}, "What is stored as %s is not Berth's: something else writes below namespace %s.",
			s.title(), text.Quoted(s.namespace))
	case !s.Known:
		x.also(Reason{Code: Unknown}, "No %s %s is known in namespace %s: nobody has used it, or it was forgotten, as idle names are.",
			kind, text.Quoted(s.Name.Name), text.Quoted(s.namespace))
		if p := s.Pause; p != nil {
			x.also(Reason{Code: Paused, Until: s.pauseEnds(), Text: p.Reason}, "All names are paused for %s more%s.",
				text.Human(p.Left), because(p.Reason))
		}
	case x.e.Claim == "":
		return false
	case c == nil || c.Word == "":
		x.also(Reason{Code: Absent, Claim: x.e.Claim},
			"Claim %s of %s is not known: it never came, it has ended, or the server has lost it.", claim, s.title())
	case c.Word == "damaged":
		x.also(Reason{Code: Damaged, Claim: x.e.Claim}, "What is stored of claim %s is damaged.", claim)
	case c.Word == "released":
		x.also(Reason{Code: Gone, Claim: x.e.Claim, Text: c.Word}, "Claim %s was ended by force less than a minute ago.", claim)
	case c.Word == "gone":
		x.also(Reason{Code: Gone, Claim: x.e.Claim, Text: c.Word}, "Claim %s has left the line less than a minute ago.", claim)
	case c.Hold != nil:
		x.holdsIt(c.Hold)
	default:
		return false
	}
	return true
}

// holdsIt explains a claim that holds.
func (x *explaining) holdsIt(h *reader.Held) {
	s, what := x.s, x.s.title()
	if h.Resource != "" {
		what = text.Word(h.Resource) + " of " + what
	}
	x.also(Reason{Code: Holding, Claim: h.ID, Resource: h.Resource, Until: h.Deadline}, "%s.", s.held(h, " "+what, " it"))
	x.holds = []*reader.Held{h}
	x.wanted()
	x.e.Next, x.e.Horizon = forecast(s, h.ID, x.silent)
	x.e.Then = x.then()
}

// own is why the explained claim, or the first one, gets nothing.
func (x *explaining) own() {
	s := x.s
	if w := x.self; w != nil && x.silent(w.Node) {
		end := w.Record.Alive()
		x.reason(Reason{Code: Silent, Claim: w.ID, Until: end}, fmt.Sprintf(
			"its own process has not been heard of for %s; unless it is, the claim is dropped after %s more",
			text.Human(s.ago(w.Record.Heard)), text.Human(s.left(end))))
	}
	if p := s.Pause; p != nil {
		x.reason(Reason{Code: Paused, Until: s.pauseEnds(), Text: p.Reason},
			"it is paused for "+text.Human(p.Left)+" more"+because(p.Reason))
	}
	if w := x.self; w != nil && s.Kind != keyspace.Pool && w.Weight > s.Capacity {
		x.reason(Reason{Code: TooHeavy, Need: w.Weight, Of: s.Capacity}, fmt.Sprintf(
			"it asks for %d of a capacity of %d and is taken out when its process is next heard of", w.Weight, s.Capacity))
	}
	switch s.Kind {
	case keyspace.Lock:
		x.ofLock()
	case keyspace.Pool:
		if x.head != nil && x.head.Resource != "" {
			x.ofOne(x.head)
		} else {
			x.ofPool()
		}
	default:
		x.ofSemaphore()
	}
}

// ready says that something is free: nobody has looked yet, or nobody waits. It returns false if what
// is asked for is not free.
func (x *explaining) ready(what string, have, of int) bool {
	switch due := x.e.Next != nil && x.e.Next.What == SweepDue; {
	case x.head == nil && have > 0 && x.s.Pause == nil:
		x.reason(Reason{Code: Free, Have: have, Of: of}, what)
	case x.head != nil && due && have > 0:
		x.reason(Reason{Code: Ready, Have: have, Of: of}, what+", and nobody has looked yet")
	}
	return have > 0
}

// ofOwner says that the owner of the first in line is in its way, if it is.
func (x *explaining) ofOwner() {
	if x.head == nil || x.head.Owner == "" {
		return
	}
	held, of := 0, x.s.Capacity
	for _, h := range x.holds {
		if h.Owner == x.head.Owner {
			held += max(h.Weight, 1)
		}
	}
	what := "it"
	if x.s.Kind != keyspace.Lock {
		what = fmt.Sprintf("%d of %d", held, of)
	}
	if held > 0 {
		x.reason(Reason{Code: Own, Have: held, Of: of, Text: x.head.Owner},
			fmt.Sprintf("its own owner %s holds %s; %s", text.Word(x.head.Owner), what, x.heldBy("")))
	}
}

func (x *explaining) ofSemaphore() {
	s, need := x.s, 1
	if x.head != nil {
		need = max(x.head.Weight, 1)
	}
	room, asks := s.Capacity-s.Held, ""
	if s.Capacity == 0 || need <= room && x.ready(fmt.Sprintf("%d of %d %s free", room, s.Capacity, are(room)), room, s.Capacity) {
		return
	}
	x.ofOwner()
	if s.Held > s.Capacity {
		x.reason(Reason{Code: Over, Have: s.Held, Of: s.Capacity},
			fmt.Sprintf("%d are held of a capacity of %d, which was lowered; %s", s.Held, s.Capacity, x.heldBy("")))
	}
	switch {
	case s.Held >= s.Capacity:
		asks = fmt.Sprintf("all %d are held", s.Capacity)
		if s.Capacity == 1 {
			asks = "the one is held"
		}
	case x.self == nil || x.self.ID == x.head.ID:
		asks = fmt.Sprintf("%d of %d %s held and it asks for %d", s.Held, s.Capacity, are(s.Held), need)
	default:
		asks = fmt.Sprintf("%d of %d %s held, and %s, who is first, asks for %d", s.Held, s.Capacity, are(s.Held), x.s.whose(x.head.Label, x.head.ID), need)
	}
	x.reason(Reason{Code: Full, Need: need, Have: s.Held, Of: s.Capacity}, asks+"; "+x.heldBy(""))
}

func (x *explaining) ofLock() {
	if len(x.holds) == 0 {
		x.ready("it is free", 1, 1)
		return
	}
	x.ofOwner()
	outer, n := x.holds[0], len(x.holds)
	if n == 1 {
		x.reason(Reason{Code: Locked, Claim: outer.ID, Until: outer.Deadline}, x.s.held(outer, " it", " it"))
		return
	}
	x.reason(Reason{Code: Entries, Claim: outer.ID, Have: n, Until: outer.Deadline}, fmt.Sprintf(
		"%s holds it by %d entries and gives it back with the last; %s", text.Word(outer.Owner), n, x.s.held(outer, " it", " it")))
}

func (x *explaining) ofPool() {
	s, p := x.s, x.s.Pool
	resting, rest := s.firstRest()
	reason := s.Items[resting].Reason
	switch {
	case s.Capacity == 0:
		x.reason(Reason{Code: Empty, Until: s.Refresh}, "the pool has no resources"+s.source())
		return
	case x.ready(fmt.Sprintf("%d of %s %s free", p.Free, count(s.Capacity, "resource"), are(p.Free)), p.Free, s.Capacity):
		return
	case x.e.Next != nil && x.e.Next.What == SweepDue:
		x.ready("something is free", 1, s.Capacity)
		return
	}
	x.ofOwner()
	if s.Held == 0 && p.Resting == s.Capacity {
		subject, until := everyResource(s.Capacity, "rests", "rest"), " until somebody ends that"
		switch {
		case !rest.IsZero() && s.Capacity > 1:
			until = ", the first for " + text.Human(s.left(rest)) + " more"
		case !rest.IsZero():
			until = " for " + text.Human(s.left(rest)) + " more"
		}
		x.reason(Reason{Code: Resting, Resource: resting, Have: p.Resting, Of: s.Capacity, Until: rest, Text: reason},
			subject+until+because(reason))
		return
	}
	x.reason(Reason{Code: Taken, Have: s.Held, Of: s.Capacity}, s.counts()+x.heldBy("; "))
	if p.Leaving > 0 {
		x.e.Reasons = append(x.e.Reasons, Reason{Code: LeavingPool, Have: p.Leaving, Of: s.Capacity})
	}
}

// firstRest is the resource whose rest ends first, and when. Where no rest has an end that is zero, and "" where none rests.
func (s *snapshot) firstRest() (key string, end time.Time) {
	for _, each := range slices.Sorted(maps.Keys(s.Items)) {
		i := s.Items[each]
		rest := i.RestEnd()
		if i.Ends >= state.Forever && key == "" || !rest.IsZero() && (end.IsZero() || rest.Before(end)) {
			key, end = each, rest
		}
	}
	return key, end
}

// ofOne: it waits for one resource alone.
func (x *explaining) ofOne(w *reader.Place) {
	s, key := x.s, text.Word(w.Resource)
	i, known := s.Items[w.Resource]
	wants, bound := "it wants only "+key+", which ", ""
	if w.Wants.Resource == "" {
		wants = fmt.Sprintf("it waits for %s, which %s is bound to and which ", key, text.Excerpt(w.Wants.Bind))
		if end := s.patience(w); !end.IsZero() {
			bound = "; in " + text.Human(s.left(end)) + " it takes any other"
		}
	}
	of := Reason{Resource: w.Resource, Claim: w.ID}
	say := func(code Code, clause string) {
		of.Code = code
		x.reason(of, wants+clause+bound)
	}
	switch {
	case known && i.Damaged:
		say(OneDamaged, "is damaged")
	case !known || i.Absent || i.Leaving && len(i.Claims) == 0:
		say(OneAbsent, "is not in the pool"+map[bool]string{false: ": nothing has filled it yet"}[s.Filled])
	case i.Ends >= state.Forever:
		of.Text = i.Reason
		say(OneResting, "rests until somebody ends that"+because(i.Reason))
	case i.RestEnd().After(s.At) && len(x.holds) == 0:
		of.Until, of.Text = i.RestEnd(), i.Reason
		say(OneResting, "rests for "+text.Human(s.left(i.RestEnd()))+" more"+because(i.Reason))
	case x.e.Next != nil && x.e.Next.What == SweepDue:
		of.Have, of.Of = 1, 1
		say(Ready, "is free, and nobody has looked yet")
	case known && i.Free() && len(x.e.Reasons) > 0: // it is paused, and that is all
	case len(x.holds) > 0:
		first := slices.MinFunc(x.holds, func(a, b *reader.Held) int { return sooner(a.Deadline, b.Deadline) })
		of.Until, of.Have, of.Of = first.Deadline, len(i.Claims), int(i.Max)
		say(OneHeld, x.heldAs("", ""))
	default:
		say(OneHeld, "is held")
	}
	if w.Wants.Resource == "" {
		x.e.Reasons = append(x.e.Reasons, Reason{Code: Bound, Claim: w.ID, Resource: w.Resource, Until: s.patience(w), Text: w.Wants.Bind})
	}
}

// placed is why the explained claim is not the first.
func (x *explaining) placed() {
	w := x.self
	if w == nil {
		w = x.head
	} else {
		x.passed(w)
	}
	if w != nil && x.self == nil && x.silent(w.Node) {
		x.also(Reason{Code: Silent, Claim: w.ID, Until: w.Record.Alive()}, "%s, who is first, has not been heard of for %s.",
			x.s.whose(w.Label, w.ID), text.Human(x.s.ago(w.Record.Heard)))
	}
	if w == nil || x.s.Kind != keyspace.Lock {
		return
	}
	same := func(other *reader.Place) bool { return other.Lane == w.Lane && drawn(other) }
	if w.Lane%2 == 1 {
		x.also(Reason{Code: LIFO}, "It is last come, first served: who comes later passes it.")
	} else if slices.ContainsFunc(x.s.Line, same) {
		x.also(Reason{Code: Drawn}, "Places are drawn: who comes later may pass it.")
	}
}

// drawn says whether a claim stands elsewhere than by its ticket.
func drawn(w *reader.Place) bool {
	return w.Lane%2 == 0 && w.Place != fmt.Sprintf("%013d", w.Since.UnixMilli())
}

// passed is who stands before the explained claim, and why.
func (x *explaining) passed(self *reader.Place) {
	s, higher := x.s, 0
	for _, w := range slices.Concat(s.Line, s.Lanes) {
		if w.Resource != self.Resource || !s.alive(w) || w.Priority <= self.Priority {
			continue
		}
		higher++
		x.blocks(s.waiter(w))
	}
	if higher > 0 {
		least := ""
		if s.LineLeft+s.LanesLeft > 0 {
			least = "At least "
		}
		x.also(Reason{Code: Outranked, Have: higher}, "%s%d of higher priority %s ahead.", least, higher, are(higher))
	}
	if s.Kind == keyspace.Sem && x.head.ID != self.ID {
		if room := s.Capacity - s.Held; x.head.Weight > room && self.Weight <= room {
			x.e.Reasons = append(x.e.Reasons, Reason{Code: Heavier, Claim: x.head.ID, Need: x.head.Weight, Have: room, Of: s.Capacity})
			if x.head.Priority <= self.Priority {
				x.blocks(s.waiter(x.head))
			}
		}
	}
	if x.e.Ahead > 0 && higher == 0 {
		x.e.Reasons = append(x.e.Reasons, Reason{Code: Behind, Have: x.e.Ahead})
	}
}

// wanted says which holds were asked to be given back.
func (x *explaining) wanted() {
	for _, h := range x.holds {
		if !h.Record.Wanted.IsZero() {
			x.also(Reason{Code: Asked, Claim: h.ID}, "%s was asked to give back %s ago.",
				x.s.whose(h.Label, h.ID), text.Human(x.s.ago(h.Record.Wanted)))
			return // the others are told by the blockers
		}
	}
}

// besides is what is to be said of the server, and of the reading.
func (x *explaining) besides() {
	s := x.s
	for _, what := range s.Damaged {
		x.also(Reason{Code: Damaged, Resource: what}, "What is stored of %s is damaged.", text.Word(what))
	}
	if s.server != nil && s.server.Full {
		x.also(Reason{Code: ServerFull}, "The server is full: it refuses new claims, and who holds or waits goes on.")
	}
	if s.server != nil && s.server.Refuses {
		x.also(Reason{Code: ServerRefuses},
			"The server refuses writes: nothing is granted or renewed until that ends, and leases run out.")
	}
	if s.Replica {
		x.also(Reason{Code: OfReplica}, "This is what the replica knows.")
	}
	if s.Moving {
		x.also(Reason{Code: Moved}, "It changed while it was read.")
	}
	if s.HoldsLeft > 0 {
		x.also(Reason{Code: Part, Have: len(s.Holds), Of: len(s.Holds) + s.HoldsLeft}, "%d of %s holds were read, those that end first.",
			len(s.Holds), number(len(s.Holds)+s.HoldsLeft))
	}
	if waits := len(s.Line) + len(s.Lanes); s.LineLeft+s.LanesLeft > 0 {
		all := waits + s.LineLeft + s.LanesLeft
		x.also(Reason{Code: Part, Have: waits, Of: all}, "%d of %s waiting claims were read.", waits, number(all))
	}
}
