package inspect

import (
	"cmp"
	"slices"

	"github.com/berth-go/berth/internal/reader"
)

// AskedClaim is a claim that was asked for, however far behind it stands.
type AskedClaim struct {
	Explanation
	// Hold or Wait is what is stored of it. Both are nil where it is not there any more, or cannot be read.
	Hold *Hold
	Wait *Wait
}

// askedMost is how many claims one reading of a View asks for.
const askedMost = 10

// recall is what was told of a claim, and in which reading.
type recall struct {
	AskedClaim
	reading int
}

// claims are those that the next reading asks for: of which nothing was read yet, or the longest ago.
func (v *View) claims(all []string) []string {
	due := slices.DeleteFunc(slices.Clone(all), func(claim string) bool { return claim == "" })
	slices.Sort(due)
	due = slices.Compact(due)
	slices.SortStableFunc(due, func(a, b string) int { return cmp.Compare(v.recalls[a].reading, v.recalls[b].reading) })
	return due[:min(len(due), askedMost)]
}

// tell tells of claims, some of which were asked for, and remembers that.
func (v *View) tell(s *snapshot, due, all []string) map[string]AskedClaim {
	v.reading++
	asked, recalls := map[string]AskedClaim{}, map[string]recall{}
	for _, claim := range all {
		last, known := v.recalls[claim]
		c := s.Among(claim)
		if c != nil || slices.Contains(due, claim) {
			last, known = recall{s.about(c).claimed(claim), v.reading}, true
		}
		if known {
			asked[claim], recalls[claim] = last.AskedClaim, last
		}
	}
	v.recalls = recalls
	return asked
}

// claimed tells of the claim that a snapshot is about.
func (s *snapshot) claimed(claim string) AskedClaim {
	a := AskedClaim{Explanation: explain(s, claim)}
	if c := s.claim; c != nil && c.Hold != nil {
		h := s.holder(c.Hold)
		a.Hold = &h
	} else if c != nil && c.Wait != nil {
		w := Wait{c.Wait.Waiter, a.Explanation}
		w.Ahead = c.Rank
		a.Wait = &w
	}
	return a
}

// holder is a hold as a Look shows it.
func (s *snapshot) holder(h *reader.Held) Hold {
	c := s.holding(h)
	return Hold{h.Holder, c.Process, c.Heard}
}
