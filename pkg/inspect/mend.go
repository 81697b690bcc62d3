package inspect

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Mend is a call of an operator.
type Mend struct {
	// Verb is "unpause", "sweep", "flush" (of the swarm), "release", "resize", "rest" (which ends a rest) or "add".
	Verb string `json:"verb"`
	// Kind and Name are what it is about, "" for the swarm and for the pause of all names.
	Kind keyspace.Kind `json:"kind,omitzero"`
	Name string        `json:"name,omitzero"`
	// Claim is whose hold a release ends, or Owner, which holds a lock by several entries.
	Claim string `json:"claim,omitzero"`
	Owner string `json:"owner,omitzero"`
	// Resource is which one of a pool rests no longer, or is added.
	Resource string `json:"resource,omitzero"`
	// Capacity is that of a resize.
	Capacity int `json:"capacity,omitzero"`
	// If says to a person what must be true, and what nobody can see in the server, "" for nothing.
	If string `json:"if,omitzero"`
}

// worth is how long something must last yet for an operator to end it.
const worth = time.Minute

func (s *snapshot) lasting(end time.Time) bool { return end.IsZero() || s.left(end) > worth }

// mends are the calls that end what is in the way.
func (x *explaining) mends() (all []Mend) {
	s := x.s
	if s.Replica {
		return nil
	}
	add := func(m Mend) {
		m.Kind, m.Name = s.Kind, s.Name.Name
		all = append(all, m)
	}
	for _, r := range x.e.Reasons {
		switch r.Code {
		case Paused:
			if s.Own.Until == r.Until.UnixMilli() {
				add(Mend{Verb: "unpause"})
			} else {
				all = append(all, Mend{Verb: "unpause"})
			}
		case Ready:
			add(Mend{Verb: "sweep"})
		case TooHeavy:
			add(Mend{Verb: "resize", Capacity: r.Need, If: "so many may be held at once"})
		case Resting, OneResting:
			if s.lasting(r.Until) {
				add(Mend{Verb: "rest", Resource: r.Resource, If: "it is fit for use"})
			}
		case OneAbsent:
			add(Mend{Verb: "add", Resource: r.Resource})
		}
	}
	release := func(h *reader.Held, condition string) {
		m := Mend{Verb: "release", Claim: h.ID, If: fmt.Sprintf(condition, s.whose(h.Label, h.ID))}
		if s.Kind == keyspace.Lock && len(x.holds) > 1 {
			m.Claim, m.Owner = "", h.Owner
		}
		add(m)
	}
	dead, stands := false, x.head != nil || x.e.Claim != "" || s.Kind == keyspace.Lock || s.Capacity > 0 && s.Held >= s.Capacity
	for _, h := range x.holds[:min(len(x.holds), blockers)] {
		switch s.process(h) {
		case Condemned, Zombie:
			dead = true
		case Detached:
			if stands && s.lasting(h.Deadline) {
				release(h, "nobody is to resume the hold of %s")
			}
		case Endless:
			if heard := s.nodeHeard(h.Node).At; stands && (heard.IsZero() || s.ago(heard) > worth) {
				release(h, "the process of %s is dead")
			}
		case Overdue:
			if s.lasting(h.Deadline) {
				release(h, "the process of %s is dead")
			}
		}
	}
	if dead {
		all = slices.Insert(all, 0, Mend{Verb: "flush"})
	}
	return all[:min(len(all), 3)]
}
