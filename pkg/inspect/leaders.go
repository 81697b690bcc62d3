package inspect

import (
	"slices"
	"strings"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Election is a name that package leader leads.
type Election struct {
	Name string `json:"name"`
	// Leader is who leads, nil for nobody; Process is as that of a Claim.
	Leader  *berth.Holder `json:"leader"`
	Process Process       `json:"process,omitzero"`
	// Candidates is how many stand in line.
	Candidates int `json:"candidates"`
}

// Candidacies are the claims of package leader: each says so in its Meta.
func Candidacies() ClaimFilter {
	return ClaimFilter{Kinds: []keyspace.Kind{keyspace.Lock}, Meta: map[string]string{settings.MetaKey: settings.MetaLeader}}
}

// Elections are those that claims of Candidacies are of, by name. An election where nobody leads or stands is not known.
func Elections(claims []Claim) []Election {
	var all []Election
	for i := range claims {
		c := &claims[i]
		at, there := slices.BinarySearchFunc(all, c.Name, func(e Election, name string) int { return strings.Compare(e.Name, name) })
		if !there {
			all = slices.Insert(all, at, Election{Name: c.Name})
		}
		if e := &all[at]; c.Wait != nil {
			e.Candidates++
		} else if e.Leader == nil { // the outermost entry comes first
			e.Leader, e.Process = c.Hold, c.Process
		}
	}
	return all
}
