package inspect

import (
	"cmp"
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
)

// ClaimFilter says which claims a listing is about: those that all its fields mean. The zero value is about all.
type ClaimFilter struct {
	// Kinds are the kinds, none for all.
	Kinds []keyspace.Kind
	// Node is the id of a node, see node.Node.ID.
	Node string
	// Owner is whom a claim is for.
	Owner string
	// Label is a node's Config.Label or, where it ends in *, what stands before the * begins one: as in
	// berth.DrainTarget.
	Label string
	// Meta are pairs that a claim was given. It may have others.
	Meta map[string]string
	// Holding leaves only holds, Waiting only waits. With both, or none of them, the listing has both.
	Holding, Waiting bool
}

// means says whether the filter is about a claim.
func (f *ClaimFilter) means(node, label, owner string, meta map[string]string) bool {
	for key, value := range f.Meta {
		if has, ok := meta[key]; !ok || has != value {
			return false
		}
	}
	return (f.Node == "" || f.Node == node) && (f.Owner == "" || f.Owner == owner) && (f.Label == "" || text.Fits(f.Label, label))
}

// Claim is a hold or a wait of a name: one of Hold and Wait is set. With neither its methods tell nothing.
type Claim struct {
	Kind keyspace.Kind `json:"kind"`
	Name string        `json:"name"`
	Hold *berth.Holder `json:"hold,omitzero"`
	Wait *berth.Waiter `json:"wait,omitzero"`
	// Process is how the process of a hold stands; a listing tells it as far as Standing does. Heard is when that of the
	// claim was last heard of; a listing takes an extension of a hold for a renewal.
	Process Process `json:"process,omitzero"`
	Heard   Heard   `json:"heard,omitzero"`
	// Paused is for how much longer nothing is granted of the name, 0 if it is not paused.
	Paused time.Duration `json:"pausedMs,omitzero"`
}

// waiter is the wait, one of which nothing is told if the claim has none.
func (c Claim) waiter() *berth.Waiter { return cmp.Or(c.Wait, &berth.Waiter{}) }

// ID is the claim's id.
func (c Claim) ID() string {
	if c.Hold != nil {
		return c.Hold.ID
	}
	return c.waiter().ID
}

// Node is the id of the node that holds or waits.
func (c Claim) Node() string {
	if c.Hold != nil {
		return c.Hold.Node
	}
	return c.waiter().Node
}

// Label is the label of that node.
func (c Claim) Label() string {
	if c.Hold != nil {
		return c.Hold.Label
	}
	return c.waiter().Label
}

// Owner is whom the claim is for, "" for none.
func (c Claim) Owner() string {
	if c.Hold != nil {
		return c.Hold.Owner
	}
	return c.waiter().Owner
}

// Resource is what it holds of a pool, or the one resource that it waits for; "" for none.
func (c Claim) Resource() string {
	if c.Hold != nil {
		return c.Hold.Resource
	}
	return c.waiter().Resource
}

// Since is when it was granted or, if it waits, when it came; by the server's clock.
func (c Claim) Since() time.Time {
	if c.Hold != nil {
		return c.Hold.Granted
	}
	return c.waiter().Since
}

// For is for how long it has held or waited, by the server's clock.
func (c Claim) For() time.Duration {
	if c.Hold != nil {
		return c.Hold.Held
	}
	return c.waiter().Waited
}

// Left is what is left of the lease of a hold, berth.Forever for no end; of a claim that waits, how long it stays in line if
// nothing is heard of its process.
func (c Claim) Left() time.Duration {
	if c.Hold != nil {
		return c.Hold.Left
	}
	return c.waiter().Alive
}

// String is what is held or waited for, as a sentence names it.
func (c Claim) String() string {
	what := kinds[c.Kind] + " " + text.Quoted(c.Name)
	if key := c.Resource(); key != "" {
		what = text.Word(key) + " of " + what
	}
	return what
}

// Claims reads up to most claims of all names (0: 100, at most 1000) behind a cursor, "" for the first, in no order: it
// goes on behind the cursor of a page whose filter was the same. A claim that holds, or waits, from the first page to the
// last is there, as long as no server is replaced and no slot moves; of a name with more than 1000 holds one whose
// deadline comes nearer may be missed; of a lock there are the outermost 100 entries. A claim may be there twice,
// one that is granted meanwhile as both. Claims that are damaged, and names that cannot be read, are only in Problems.
//
// A page looks at little more than 1000 claims and takes little more than 200 ms; Partial says that it ended for that, or
// is without what is in Problems. Where no server answers, the error is theirs. A page may have few claims, or none, and yet a Next.
func (r *Reader) Claims(ctx context.Context, f ClaimFilter, from string, most int) (page Page[Claim], err error) {
	if err := checkKinds(f.Kinds); err != nil {
		return page, err
	}
	if most, err = bounded(most); err != nil {
		return page, err
	}
	which := reader.Which{
		Walk:  reader.Walk{Redis: r.redis, Kinds: NameFilter{Kinds: f.Kinds}.kinds()},
		Holds: f.Holding || !f.Waiting, Waits: f.Waiting || !f.Holding,
		Keep: func(c *reader.Listed) bool {
			if h := c.Holder; h != nil {
				return f.means(h.Node, h.Label, h.Owner, h.Meta)
			}
			return f.means(c.Waiter.Node, c.Waiter.Label, c.Waiter.Owner, c.Waiter.Meta)
		},
	}
	found, err := r.read.ClaimsPage(ctx, which, from, most)
	if err != nil {
		return page, err
	}
	page = Page[Claim]{
		Next: found.Next, Partial: found.Partial, At: found.Now, Replica: found.Replica, Moving: found.Moving, Problems: found.Problems,
	}
	noticed, err := r.notices(ctx, which.Kinds)
	if err != nil {
		page.Partial, page.Problems = true, append(page.Problems, err)
	}
	for _, c := range found.Claims {
		claim := Claim{Kind: c.Kind, Name: c.Name, Hold: c.Holder, Wait: c.Waiter}
		if !c.Heard.IsZero() {
			claim.Heard = Heard{At: c.Heard, Exact: true, By: "wait"}
		}
		if p := c.Pause.Under(noticed[c.Kind], found.Now.UnixMilli()); p != nil {
			claim.Paused = p.Left
		}
		page.Items = append(page.Items, claim)
	}
	judge(&page, from)
	return page, nil
}
