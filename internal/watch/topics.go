package watch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// How often each is read at the most.
const (
	NameEvery     = time.Second
	OverviewEvery = 2 * time.Second
	CirclesEvery  = 5 * time.Second
	ClaimsEvery   = 10 * time.Second
)

const (
	// claimsMost is how many claims of a listing are read, claimsPages in how many pages at the most.
	claimsMost, claimsPages = 500, 5
)

// Name is a name, and what was seen of it since somebody looks.
type Name struct {
	inspect.Look
	// Since is when the looking began. All times are by the server's clock.
	Since time.Time
	// History are the counts, the oldest first.
	History []Sample
	// Spans are the holds that were seen, in the order in which they were granted.
	Spans []Span
}

// Claims is a listing of claims.
type Claims struct {
	Items []inspect.Claim
	// Partial says that not all was read.
	Partial  bool
	Problems []error
	At       time.Time
}

// Name looks at a name and, if claim is not "", at one claim of it: Asked has that one, and others at which somebody looks. A
// name is read once, however many of its claims are looked at. A feed has no reading before the first that has its claim.
func (w *Watcher) Name(kind keyspace.Kind, name, claim string) *Feed[Name] {
	key := keyOf("name", kind, name)
	w.mu.Lock() // nothing is read before the claim is known
	defer w.mu.Unlock()
	f := join(w, key, NameEvery, func() (func(context.Context) (Name, error), error) {
		view, err := w.read.View(kind, name)
		if err != nil {
			return nil, err
		}
		var seen seen
		return func(ctx context.Context) (Name, error) {
			l, err := view.Read(ctx, w.claims(key)...)
			if err != nil {
				return Name{}, err
			}
			return seen.add(&l), nil
		}, nil
	})
	if claim != "" {
		f.topic.join(claim)
		f.claim, f.has = claim, func(n Name) bool {
			_, asked := n.Asked[claim]
			return asked
		}
	}
	return f
}

// Overview looks at the names that contend most.
func (w *Watcher) Overview() *Feed[inspect.Page[inspect.Name]] {
	return look(w, "overview", OverviewEvery, func() (func(context.Context) (inspect.Page[inspect.Name], error), error) {
		o, err := w.read.Overview(inspect.NameFilter{})
		if err != nil {
			return nil, err
		}
		return o.Read, nil
	})
}

// Circles looks for claims that wait for each other.
func (w *Watcher) Circles() *Feed[inspect.Circles] {
	return look(w, "circles", CirclesEvery, func() (func(context.Context) (inspect.Circles, error), error) {
		return func(ctx context.Context) (inspect.Circles, error) {
			return w.read.Circles(ctx, inspect.CircleOptions{Within: CirclesEvery / 2})
		}, nil
	})
}

// Claims looks at the claims of all names that a filter means: of a node, an owner, a label.
func (w *Watcher) Claims(f inspect.ClaimFilter) *Feed[Claims] {
	return look(w, keyOf("claims", f), ClaimsEvery, func() (func(context.Context) (Claims, error), error) {
		return func(ctx context.Context) (Claims, error) { return w.listing(ctx, f) }, nil
	})
}

func (w *Watcher) listing(ctx context.Context, f inspect.ClaimFilter) (all Claims, err error) {
	cursor := ""
	for range claimsPages {
		page, err := w.read.Claims(ctx, f, cursor, claimsMost-len(all.Items))
		if err != nil {
			return all, err
		}
		all.Items, all.Problems = append(all.Items, page.Items...), append(all.Problems, page.Problems...)
		if all.At.IsZero() {
			all.At = page.At
		}
		if cursor = page.Next; cursor == "" || len(all.Items) >= claimsMost {
			break
		}
	}
	all.Partial = cursor != "" || len(all.Problems) > 0
	return all, nil
}

// Names reads a page of names in use, up to 200, behind a cursor. Nobody else has part in it.
func (w *Watcher) Names(ctx context.Context, f inspect.NameFilter, from string) (page inspect.Page[inspect.Name], err error) {
	select {
	case w.gate <- struct{}{}:
		defer func() { <-w.gate }()
	case <-ctx.Done():
		return page, context.Cause(ctx)
	}
	return w.read.Names(ctx, f, from, 200)
}

func keyOf(parts ...any) string {
	text, _ := json.Marshal(parts) // texts and numbers
	return string(text)
}
