package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
)

var nodePage = &page{
	name: "node", asks: []string{"id"}, regions: []string{"state", "claims"}, every: watch.ClaimsEvery,
	title: func(q url.Values) string { return "Node " + text.Plain(q.Get("id")) },
	open: func(c *Console, q url.Values) (source, error) {
		if q.Get("id") == "" {
			return nil, berth.Invalid("id", "it is empty")
		}
		return fed[watch.Node]{c.watch.Node(q.Get("id")), func(n watch.Node) (any, time.Time) {
			v := oneNode{claimList: claimListOf(n.Claims)}
			if n.Drain != nil {
				v.Drain = view.DrainSays(n.Drain, n.Claims.At)
			}
			if n.State != "" {
				v.Tiles = linesOf(n.Claims.At, view.Nodes.Pick("STATE", "HEARD", "LIMIT", "LABEL"), view.NodesAt(n.Claims.At, n.Node), nodeRow)
			}
			return v, n.Claims.At
		}}, nil
	},
}

// oneNode is what the page of a node shows.
type oneNode struct {
	claimList
	Tiles []line // none where nothing is known of it
	Drain string // "" for none
}

func nodeRow(n *view.Node) []any { return []any{"node", n.ID} }

// list is a table that fills a page.
type list struct {
	Table         []line
	Caption, None string // what it says with rows, and without any
	More          int    // rows that are not shown
	Partial       bool
	Problems      []string
}

// listPage is a page of such a table, which feed reads.
func listPage[T, R any](name, title, caption, none string, columns view.Columns[R], feed func(c *Console) *watch.Feed[inspect.Page[T]],
	rows func(p inspect.Page[T]) []R, about func(*R) []any,
) *page {
	return &page{
		name: name, regions: []string{"rows"}, every: watch.ClaimsEvery, title: func(url.Values) string { return title },
		open: func(c *Console, _ url.Values) (source, error) {
			return fed[inspect.Page[T]]{feed(c), func(p inspect.Page[T]) (any, time.Time) {
				l := list{Caption: caption, None: none, Partial: p.Partial, Problems: problemsOf(p.Problems)}
				shown, more := first(rows(p))
				l.More, l.Table = more, linesOf(p.At, columns, shown, about)
				return l, p.At
			}}, nil
		},
	}
}

var nodesPage = listPage("nodes", "Nodes", "Processes that hold or wait, or are in a swarm; dead ones that have left something first",
	"No process holds or waits for anything, or is in a swarm", view.Nodes, func(c *Console) *watch.Feed[inspect.Page[inspect.Node]] { return c.watch.Nodes() },
	func(p inspect.Page[inspect.Node]) []view.Node { return view.NodesAt(p.At, p.Items...) }, nodeRow)

var runsPage = listPage("runs", "Runs", "What runs once in each period, what is due first", "Of no name are runs known", view.Runs,
	func(c *Console) *watch.Feed[inspect.Page[berth.Name]] { return c.watch.Runs() },
	func(p inspect.Page[berth.Name]) []berth.Name {
		return slices.SortedFunc(slices.Values(p.Items), view.Soonest)
	},
	func(n *berth.Name) []any { return []any{n.Kind, n.Name} })

var leadersPage = listPage("leaders", "Leaders", "Who leads what, and how many would", "Nobody leads or stands for anything", view.Elections,
	func(c *Console) *watch.Feed[inspect.Page[inspect.Claim]] {
		return c.watch.Claims(inspect.Candidacies())
	},
	func(p inspect.Page[inspect.Claim]) []inspect.Election { return inspect.Elections(p).Items },
	func(e *inspect.Election) []any { return []any{"election", e.Name} })

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
	Table    []line
	More     int // how many more were read than are shown
	Holds    int
	Waits    int
	Overdue  int      // how many of the claims are overdue with a heartbeat
	Labels   []string // of the claims
	Partial  bool
	Problems []string
}

func (c *Console) claims(f inspect.ClaimFilter) source {
	return fed[watch.Claims]{
		c.watch.Claims(f), func(found watch.Claims) (any, time.Time) { return claimListOf(found), found.At },
	}
}

func claimListOf(found watch.Claims) claimList {
	l := claimList{Partial: found.Partial, Problems: problemsOf(found.Problems)}
	all := view.Listed(slices.SortedStableFunc(slices.Values(found.Items), view.Oldest))
	for i := range all {
		c := &all[i]
		if c.Hold != nil {
			l.Holds++
		} else {
			l.Waits++
		}
		if c.Suspicious() {
			l.Overdue++
		}
		if label := c.Label(); label != "" && !slices.Contains(l.Labels, label) {
			l.Labels = append(l.Labels, label)
		}
	}
	all, l.More = first(all)
	l.Table = claimLines(found.At, all, "CLAIM", "DOES", "NAME", "RESOURCE", "KIND", "FOR", "LEFT", "OWNER", "LABEL", "NODE", "ACTION")
	return l
}

// cycles is how many are known.
func (c *Console) cycles() int {
	if found := c.watch.CyclesSeen(); found != nil {
		return len(found.Cycles)
	}
	return 0
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

// search leads to what is searched for.
func (c *Console) search(w http.ResponseWriter, r *http.Request, a Access) error {
	q := r.URL.Query()
	of := q.Get("q")
	switch by := q.Get("by"); {
	case of == "" || by == "":
		c.render(w, http.StatusOK, "find", c.frame(a, "search", "Search"))
	case by == "name":
		seeOther(w, to("names", "prefix", of))
	case by == "labels":
		seeOther(w, to("search", "by", "label", "q", strings.TrimRight(of, "*")+"*"))
	case by == "node":
		seeOther(w, to("node", "id", of))
	default:
		return c.live(w, r, a, searchPage)
	}
	return nil
}

// seeOther leads to an address that is relative to this one.
func seeOther(w http.ResponseWriter, address string) {
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
}
