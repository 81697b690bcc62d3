package inspect

import "github.com/berth-go/berth/internal/reader"

// AskedClaim is a claim that was asked for, however far behind it stands.
type AskedClaim struct {
	Explanation
	// Hold or Wait is what is stored of it. Both are nil where it is not there any more, or cannot be read.
	Hold *Hold `json:"hold,omitzero"`
	Wait *Wait `json:"wait,omitzero"`
	// Freed is whom the end of Hold would serve now: its Grants, and Open. It is nil without a Hold.
	Freed *Event `json:"freed,omitzero"`
}

// claimed tells of the claim that a snapshot is about.
func (s *snapshot) claimed(claim string) AskedClaim {
	a := AskedClaim{Explanation: explain(s, claim)}
	if c := s.claim; c != nil && c.Hold != nil {
		h := s.holder(c.Hold)
		a.Hold, a.Freed = &h, s.freed(c.Hold)
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

// freed is whom the end of a hold would serve now.
func (s *snapshot) freed(h *reader.Held) *Event {
	f := begin(s, h.ID, func(string) bool { return false })
	f.pass()
	f.over(h)
	e := &Event{What: Released, At: s.At, Claim: h.ID, Resource: h.Resource}
	e.Grants, e.Open = f.serve()
	e.Grants = e.Grants[:min(len(e.Grants), 10)]
	return e
}
