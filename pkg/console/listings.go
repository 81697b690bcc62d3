package console

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

var nodePage = &page{
	name: "node", asks: []string{"id"}, regions: []string{"claims"}, every: watch.ClaimsEvery,
	title: func(q url.Values) string { return "Node " + text.Plain(q.Get("id")) },
	open: func(c *Console, q url.Values) (source, error) {
		if q.Get("id") == "" {
			return nil, berth.Invalid("id", "it is empty")
		}
		return c.claims(inspect.ClaimFilter{Node: q.Get("id")}), nil
	},
}

var searchPage = &page{
	name: "search", asks: []string{"by", "q"}, regions: []string{"claims"}, every: watch.ClaimsEvery,
	title: func(q url.Values) string { return "Claims of " + q.Get("by") + " " + text.Plain(q.Get("q")) },
	open: func(c *Console, q url.Values) (source, error) {
		switch of := q.Get("q"); q.Get("by") {
		case "owner":
			return c.claims(inspect.ClaimFilter{Owner: of}), nil
		case "label":
			return c.claims(inspect.ClaimFilter{Label: of}), nil
		}
		return nil, berth.Invalid("by", "%q is none of name, owner, label and node", q.Get("by"))
	},
}

var cyclesPage = &page{
	name: "cycles", regions: []string{"cycles"}, every: watch.CyclesEvery,
	title: func(url.Values) string { return "Cycles" },
	open: func(c *Console, _ url.Values) (source, error) {
		return fed[inspect.Cycles]{
			c.watch.Cycles(), func(found inspect.Cycles) (any, time.Time) { return cyclesOf(found), found.At },
		}, nil
	},
}

// claimList is a listing of claims.
type claimList struct {
	Claims   []claimRow
	More     int // how many more were read than are shown
	Holds    int
	Waits    int
	Overdue  int      // how many of them were not heard of as they should
	Labels   []string // of the claims
	Partial  bool
	Problems []string
}

// claimRow is a claim as a row.
type claimRow struct {
	inspect.Claim
	State state
}

func (c *Console) claims(f inspect.ClaimFilter) source {
	return fed[watch.Claims]{
		c.watch.Claims(f), func(found watch.Claims) (any, time.Time) { return claimListOf(found), found.At },
	}
}

func claimListOf(found watch.Claims) claimList {
	l := claimList{Partial: found.Partial, Problems: problemsOf(found.Problems)}
	leases := shortest(found.Items)
	for _, c := range found.Items {
		r := claimRow{Claim: c}
		if h := c.Hold; h != nil {
			l.Holds++
			r.State = state{"holds", "good"}
			if overdue(h, leases[c.Kind][c.Name]) {
				r.State, l.Overdue = state{"holds, overdue", "bad"}, l.Overdue+1
			}
		} else {
			l.Waits++
			r.State = state{"waits", "busy"}
			if c.Wait.Alive <= 0 {
				r.State, l.Overdue = state{"waits, dead", "bad"}, l.Overdue+1
			} else if c.Paused > 0 {
				r.State = state{"waits, paused", "bad"}
			}
		}
		if label := c.Label(); label != "" && !slices.Contains(l.Labels, label) {
			l.Labels = append(l.Labels, label)
		}
		l.Claims = append(l.Claims, r)
	}
	slices.SortStableFunc(l.Claims, func(a, b claimRow) int { return a.Since().Compare(b.Since()) })
	l.Claims, l.More = first(l.Claims)
	return l
}

// shortest are the shortest leases of the holds of each name.
func shortest(all []inspect.Claim) map[keyspace.Kind]map[string]time.Duration {
	leases := map[keyspace.Kind]map[string]time.Duration{keyspace.Sem: {}, keyspace.Lock: {}, keyspace.Pool: {}}
	for _, c := range all {
		if h := c.Hold; h != nil {
			if least, ok := leases[c.Kind][c.Name]; !ok || h.Lease < least {
				leases[c.Kind][c.Name] = h.Lease
			}
		}
	}
	return leases
}

// cycleList is what the page of cycles shows.
type cycleList struct {
	inspect.Cycles
	More     int // cycles that are not shown
	Problems []string
}

func cyclesOf(found inspect.Cycles) cycleList {
	l := cycleList{Cycles: found, Problems: problemsOf(found.Problems)}
	rows := 0
	for i, c := range found.Cycles {
		if rows += len(c.Links); rows > rowsMost && i > 0 {
			l.Cycles.Cycles, l.More = found.Cycles[:i], len(found.Cycles)-i
			break
		}
	}
	return l
}

// Rows are the first ones of a cycle.
func (cycleList) Rows(c inspect.Cycle) []inspect.Link {
	rows, _ := first(c.Links)
	return rows
}

// Left is how many more there are.
func (cycleList) Left(c inspect.Cycle) int { return max(0, len(c.Links)-rowsMost) }

// Frees is the first end that comes by itself and frees a cycle, nil for none.
func (cycleList) Frees(c inspect.Cycle) *inspect.End {
	if i := slices.IndexFunc(c.Ends, func(e inspect.End) bool { return e.Frees }); i >= 0 {
		return &c.Ends[i]
	}
	return nil
}

// search leads to what is searched for.
func (c *Console) search(w http.ResponseWriter, r *http.Request, a Access) {
	q := r.URL.Query()
	of := q.Get("q")
	switch by := q.Get("by"); {
	case of == "" || by == "":
		c.render(w, http.StatusOK, "find", c.frame(a, "search", "Search"))
	case by == "name":
		seeOther(w, to("names", "prefix", of))
	case by == "node":
		seeOther(w, to("node", "id", of))
	default:
		c.live(w, r, a, searchPage)
	}
}

// seeOther leads to an address that is relative to this one.
func seeOther(w http.ResponseWriter, address string) {
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
}
