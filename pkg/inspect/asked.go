package inspect

import "github.com/berth-go/berth/internal/reader"

// AskedClaim is a claim that was asked for, however far behind it stands.
type AskedClaim struct {
	Explanation
	// Hold or Wait is what is stored of it. Both are nil where it is not there any more, or cannot be read.
	Hold *Hold `json:"hold,omitzero"`
	Wait *Wait `json:"wait,omitzero"`
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
