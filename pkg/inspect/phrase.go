package inspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
)

// kinds are the words for the kinds.
var kinds = map[keyspace.Kind]string{keyspace.Sem: "semaphore", keyspace.Lock: "lock", keyspace.Pool: "pool"}

// title is how a sentence names the name.
func (s *snapshot) title() string { return kinds[s.Kind] + " " + text.Quoted(s.Name.Name) }

// capital begins a sentence.
func capital(sentence string) string {
	if sentence == "" || sentence[0] < 'a' || sentence[0] > 'z' {
		return sentence
	}
	return strings.ToUpper(sentence[:1]) + sentence[1:]
}

// whose is how a sentence names a claim: by its process's label, and by its owner too, if it was given one, where that
// label both holds and waits.
func (s *snapshot) whose(label, claim string) string {
	if label == "" {
		return text.Word(claim)
	}
	if owner := s.shared.both[claim]; owner != "" {
		return text.Word(label) + " (" + text.Word(owner) + ")"
	}
	return text.Word(label)
}

func are(n int) string { return map[bool]string{true: "is", false: "are"}[n == 1] }

func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return number(n) + " " + thing + "s"
}

// number has its thousands apart.
func number(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

// because is what somebody gave as the reason.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + text.Excerpt(reason)
}

// moment is a time of the server, with the date if that is another day.
func (s *snapshot) moment(t time.Time) string {
	t, now := t.UTC(), s.At.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05 UTC")
	}
	return t.Format("2006-01-02 15:04:05 UTC")
}

// why is the sentence that says what is.
func (x *explaining) why() string {
	var parts []string
	if x.clause != "" {
		parts = append(parts, x.subject+": "+x.clause+".")
	} else if x.subject != "" {
		parts = append(parts, x.subject+".")
	}
	return strings.Join(append(parts, x.sentences...), " ")
}

// whoWaits is the subject of the sentence.
func (x *explaining) whoWaits() string {
	s := x.s
	if w := x.self; w != nil {
		subject := fmt.Sprintf("%s has waited %s for %s", x.s.whose(w.Label, w.ID), text.Human(s.ago(w.Since)), s.title())
		if x.e.Ahead > 0 {
			subject += ", " + number(x.e.Ahead) + " ahead"
		}
		return subject
	}
	if x.head == nil {
		return "Nobody waits for " + s.title()
	}
	dead := s.LineLeft+s.LanesLeft > 0
	for _, w := range s.Line {
		dead = dead || !s.alive(w)
	}
	most, verb := "", "wait"
	if dead {
		most = "Up to "
	}
	if s.Waiting == 1 {
		verb = "waits"
	}
	return fmt.Sprintf("%s%s %s for %s, %s first (%s)", most, number(s.Waiting), verb, s.title(),
		x.s.whose(x.head.Label, x.head.ID), text.Human(s.ago(x.head.Since)))
}

// heldBy says how the hold in the way stands that was held longest, and how many others there are.
func (x *explaining) heldBy(before string) string {
	if len(x.holds) == 0 {
		return ""
	}
	return before + x.heldAs(" it", " it")
}

func (x *explaining) heldAs(object, again string) string {
	clause := x.s.held(x.holds[0], object, again)
	others := len(x.holds) - 1 + x.s.HoldsLeft
	if x.s.Kind == keyspace.Lock {
		others = 0
	}
	switch {
	case others == 1:
		clause += ", and 1 other holds the rest"
	case others > 1:
		clause += fmt.Sprintf(", and %s others hold the rest", number(others))
	}
	return clause
}

// held says how a hold stands: "alpha has held it for 3m40s and renews it". object and again are what
// is held, and what it is called the second time.
func (s *snapshot) held(h *reader.Held, object, again string) string {
	who, heard := s.whose(h.Label, h.ID), s.heardOf(h)
	long := fmt.Sprintf("%s has held%s for %s", who, object, text.Human(s.ago(h.Granted)))
	limit := ""
	if !h.Record.Limit.IsZero() {
		limit = ", for " + text.Human(s.left(h.Record.Limit)) + " more at most"
	}
	switch s.process(h) {
	case Condemned:
		return long + ", and the swarm has declared its process dead"
	case Zombie:
		n := s.nodes[h.Node]
		return long + s.lasts(h, ", for ", " more", " without end") + fmt.Sprintf(
			", and its node counts as dead for the swarm (silent for %s, with %s allowed): the next flush frees it",
			text.Human(s.ago(n.Probed())), text.Human(n.Limit))
	case Detached:
		return who + " has left" + object + " to whoever resumes it" + s.lasts(h, ", for ", " more", ", without end")
	case Unconfirmed:
		return fmt.Sprintf("%s was granted%s %s ago and has not taken%s up yet", who, object, text.Human(s.ago(h.Granted)), again)
	case Endless:
		return long + " without end (" + s.traces(h.Node) + ")"
	case Fixed:
		return long + s.lasts(h, ", for ", " more at most", "")
	case Overdue:
		return long + " and has not been heard of for " + text.Human(s.ago(heard.At)) + ": its process is dead, stopped or cut off"
	case Entry:
		return long + ", by an entry"
	}
	least := ""
	if !heard.Exact && !s.Replica {
		least = "at most "
	}
	return fmt.Sprintf("%s and renews%s%s (heard of %s%s ago)", long, again, limit, least, text.Human(s.ago(heard.At)))
}

// lasts is what a hold has left.
func (s *snapshot) lasts(h *reader.Held, before, behind, endless string) string {
	if h.Deadline.IsZero() {
		return endless
	}
	return before + text.Human(s.left(h.Deadline)) + behind
}

// traces is what else tells that a node lives.
func (s *snapshot) traces(node string) string {
	if heard := s.nodeHeard(node); !heard.At.IsZero() {
		return "its node was heard of " + text.Human(s.ago(heard.At)) + " ago"
	}
	return "nothing tells when its process was last heard of"
}

// source is when a pool without resources may be filled.
func (s *snapshot) source() string {
	switch {
	case s.Refresh.IsZero():
		return ", and no process has asked a Source"
	case s.Refresh.After(s.At):
		return "; its Source may be asked again from " + s.moment(s.Refresh)
	}
	return "; its Source may be asked again"
}

// everyResource is the subject of a clause about all resources of a pool, with its verb.
func everyResource(n int, one, many string) string {
	if n == 1 {
		return "the one resource " + one
	}
	return fmt.Sprintf("all %s resources %s", number(n), many)
}

// counts says what the resources of a pool are about.
func (s *snapshot) counts() string {
	p := s.Pool
	if s.Held == s.Capacity && p.Leaving == 0 {
		return everyResource(s.Capacity, "is leased", "are leased")
	}
	var parts []string
	add := func(n int, one, many string) {
		if n > 0 {
			parts = append(parts, number(n)+" "+map[bool]string{true: one, false: many}[n == 1])
		}
	}
	add(s.Held-p.Leaving, "is leased", "are leased")
	add(p.Resting, "rests", "rest")
	add(s.Capacity-p.Free-s.Held-p.Resting, "is damaged", "are damaged")
	add(p.Leaving, "leaves when it comes back", "leave when they come back")
	last := parts[len(parts)-1]
	if len(parts) > 1 {
		last = strings.Join(parts[:len(parts)-1], ", ") + " and " + last
	}
	return "of " + count(s.Capacity, "resource") + " " + last
}

// then is the sentence that says what comes.
func (x *explaining) then() string {
	s, e := x.s, x.e
	switch {
	case e.Next != nil:
		return x.nextSays(e.Next)
	case x.head != nil && !x.watched(x.silent):
		return "Nothing is granted by itself: no waiting process has been heard of."
	case !e.Horizon.IsZero() && s.HoldsLeft > 0:
		return fmt.Sprintf("Next: not known; of %s holds the first %d to end were read, and none of them ends by itself.",
			number(len(s.Holds)+s.HoldsLeft), len(s.Holds))
	case !e.Horizon.IsZero():
		if i := slices.IndexFunc(x.holds, func(h *reader.Held) bool { return s.process(h) == Unconfirmed }); i >= 0 {
			return "Next: not known: " + s.whose(x.holds[i].Label, x.holds[i].ID) + " has not taken it up yet."
		}
		return "Next: not known beyond " + s.moment(e.Horizon) + "."
	}
	says := "Nothing ends by itself" + x.noEnd()
	if p := s.Pause; p != nil && x.head != nil {
		says = "In " + text.Human(p.Left) + " (" + s.moment(s.pauseEnds()) + ") the pause ends" + x.still() + ". Nothing else ends by itself" + x.noEnd()
	}
	if e.IfSilent != nil {
		says += " If it is not heard of again, " + x.gets(e.IfSilent) + " in " + text.Human(e.IfSilent.In) + "."
	}
	return says
}

// still says that what is in the way of the first one is there after a pause, too.
func (x *explaining) still() string {
	others := len(x.holds) - 1 + x.s.HoldsLeft
	switch {
	case len(x.holds) == 0:
		return ""
	case x.s.Kind == keyspace.Lock || others == 0:
		return ", and " + x.s.whose(x.holds[0].Label, x.holds[0].ID) + " still has it"
	}
	return ", and what is held stays held"
}

// noEnd is why the holds in the way do not end.
func (x *explaining) noEnd() string {
	if len(x.holds) == 0 {
		return "."
	}
	h := x.holds[0]
	if first := x.renewer(); first != nil && x.head != nil {
		h = first
	}
	switch {
	case h.Deadline.IsZero():
		return ": " + x.s.whose(h.Label, h.ID) + " has no end."
	case x.s.process(h) == Unconfirmed:
		return ": " + x.s.whose(h.Label, h.ID) + " has not taken it up yet."
	}
	return ": " + x.s.whose(h.Label, h.ID) + " renews."
}

// gets says who is granted what it asks for.
func (x *explaining) gets(e *Event) string {
	var names []string
	for _, claim := range e.Grants[:min(len(e.Grants), 2)] {
		label := x.s.label(claim)
		names = append(names, x.s.whose(label, claim))
	}
	switch n := len(e.Grants); n {
	case 0:
		return "that ends"
	case 1:
		return names[0] + " gets it"
	case 2:
		return names[0] + " and " + names[1] + " get it"
	default:
		return fmt.Sprintf("%s and %d others get it", names[0], n-1)
	}
}

// nextSays is the sentence of an event.
func (x *explaining) nextSays(e *Event) string {
	s := x.s
	if e.What == SweepDue {
		return x.sweeps()
	}
	says := "Next: "
	if len(e.If) > 0 {
		says += "unless " + x.unheard(e) + " is heard of, "
	}
	if e.What == SwarmFlush {
		says += "with a next flush of the swarm "
	} else {
		says += "in " + text.Human(e.In) + " (" + s.moment(e.At) + ") "
	}
	says += x.ends(e)
	if len(e.Grants) > 0 {
		says += ", and " + x.gets(e)
	}
	if e.Open {
		says += ", others perhaps"
	}
	return says + "."
}

// unheard is who must not be heard of before an event comes: "it" is whose end that is.
func (x *explaining) unheard(e *Event) string {
	var others []string
	for _, h := range x.s.Holds {
		if slices.Contains(e.If, h.Node) {
			if h.ID == e.Claim {
				return "it"
			}
			others = append(others, x.s.whose(h.Label, h.ID))
		}
	}
	for _, w := range slices.Concat(x.s.Line, x.s.Lanes) {
		if slices.Contains(e.If, w.Node) {
			if w.ID == e.Claim {
				return "it"
			}
			others = append(others, x.s.whose(w.Label, w.ID))
		}
	}
	return append(others, "it")[0]
}

// ends says what of an event it is that ends.
func (x *explaining) ends(e *Event) string {
	label := x.s.label(e.Claim)
	who, what := x.s.whose(label, e.Claim), text.Word(e.Resource)
	switch e.What {
	case MaxHoldEnds:
		return "the maximum hold of " + who + " ends"
	case RestEnds:
		if e.Claim != "" {
			return "the lease of " + who + " and the rest of " + what + " after it are over"
		}
		return "the rest of " + what + " ends"
	case LeavesPool:
		if e.Claim != "" {
			return what + " leaves the pool, and the wait with it"
		}
		return what + " leaves the pool"
	case BindWaitEnds:
		return "the wait for " + what + " alone ends"
	case ClaimLeaves:
		return "the claim of " + who + " leaves the line"
	case PauseEnds:
		return "the pause ends"
	case SwarmFlush:
		return "the hold of " + who + " ends"
	}
	return "the lease of " + who + " ends"
}

// sweeps says who looks at what is free already.
func (x *explaining) sweeps() string {
	for _, w := range slices.Concat(x.s.Line, x.s.Lanes) {
		if x.s.alive(w) && !x.silent(w.Node) {
			return "Next: within 50ms, if a waiting process runs; a sweep does it now."
		}
	}
	h := x.renewing(x.s.Holds, x.silent)
	if h == nil || h.Lease == berth.Forever {
		return "Next: when somebody calls; a sweep does it now."
	}
	return fmt.Sprintf("Next: once %s next renews, within %s; a sweep does it now.", x.s.whose(h.Label, h.ID), text.Human(pace(&h.Holder)/3))
}
