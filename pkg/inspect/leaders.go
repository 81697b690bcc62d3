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

// Elections are those that the claims of a listing of Candidacies are of, by name. An election in which nobody leads or stands is
// not known.
func Elections(claims Page[Claim]) Page[Election] {
	page := Page[Election]{
		Items: []Election{}, Partial: claims.Partial, At: claims.At, Replica: claims.Replica, Moving: claims.Moving, Problems: claims.Problems,
	}
	for i := range claims.Items {
		c := &claims.Items[i]
		at, there := slices.BinarySearchFunc(page.Items, c.Name, func(e Election, name string) int { return strings.Compare(e.Name, name) })
		if !there {
			page.Items = slices.Insert(page.Items, at, Election{Name: c.Name})
		}
		if e := &page.Items[at]; c.Wait != nil {
			e.Candidates++
		} else if e.Leader == nil || c.Hold.Granted.Before(e.Leader.Granted) { // the outermost entry
			e.Leader, e.Process = c.Hold, c.Process
		}
	}
	return page
}
