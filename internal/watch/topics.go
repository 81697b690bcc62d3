package watch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// How often each is read at the most.
const (
	NameEvery     = time.Second
	NamesEvery    = 2 * time.Second
	OverviewEvery = 2 * time.Second
	DrainsEvery   = 5 * time.Second // beside an overview
	CyclesEvery   = 5 * time.Second
	ClaimsEvery   = 10 * time.Second
)

// Cycles are searched for more seldom beside an overview or a name: at most once in asideEvery, and for 1/asideShare of the time,
// among the first asideLine of each line.
const (
	asideEvery = 30 * time.Second
	asideShare = 150
	asideLine  = 20
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
	// Cycle is one that the name is in, as the last search has found it; nil for none.
	Cycle *inspect.Cycle
}

// Claims is a listing of claims. Partial says that not all was read.
type Claims = inspect.Page[inspect.Claim]

// Name looks at a name and, if claim is not "", at one claim of it: Asked has that one, and others at which somebody looks. A
// name is read once, however many of its claims are looked at. A feed has no reading before the first that has its claim.
func (w *Watcher) Name(kind keyspace.Kind, name, claim string) *Feed[Name] {
	key := keyOf("name", kind, name)
	w.mu.Lock() // nothing is read before the claim is known
	defer w.mu.Unlock()
	view, err := w.read.View(kind, name)
	var seen seen
	f := join(w, key, sort{every: NameEvery}, err, func(ctx context.Context) (Name, error) {
		l, err := view.Read(ctx, w.claims(key)...)
		if err != nil {
			return Name{}, err
		}
		w.recall(key, l.Asked)
		n := seen.add(&l)
		if n.Live() > 0 && n.Holders > 0 {
			n.mark(w.aside())
		}
		return n, nil
	})
	if claim != "" {
		if f.topic.claims[claim] == nil {
			f.topic.claims[claim] = &asked{}
		}
		f.topic.claims[claim].looking++
		f.claim, f.has = claim, func(n Name) bool {
			_, asked := n.Asked[claim]
			return asked
		}
	}
	return f
}

// mark tells of the cycle that the name is in, unless the look knows better.
func (n *Name) mark(found *inspect.Cycles) {
	if found == nil {
		return
	}
	c := found.Of(n.Kind, n.Name.Name)
	if c == nil || n.WaitsLeft == 0 && !slices.ContainsFunc(n.Waits, func(w inspect.Wait) bool {
		return slices.ContainsFunc(c.Links, func(l inspect.Link) bool { return l.Wait.ID() == w.ID })
	}) {
		return
	}
	n.Cycle = c
	page := inspect.Page[berth.Name]{Items: []berth.Name{n.Name}}
	inspect.Marked(&page, found)
	n.Name = page.Items[0]
}

// Overview looks at the names in the worst state, and at those that contend most.
func (w *Watcher) Overview() *Feed[inspect.Page[berth.Name]] {
	o, err := w.read.Overview(inspect.NameFilter{})
	return look(w, "overview", sort{every: OverviewEvery, shared: true}, err, func(ctx context.Context) (inspect.Page[berth.Name], error) {
		o.Mark(w.aside())
		drains := make(chan Drains, 1)
		w.loops.Go(func() { w.readDrains(ctx, drains) })
		page, err := o.Read(ctx)
		seen := <-drains
		w.mu.Lock()
		w.drains = seen
		w.mu.Unlock()
		return page, err
	})
}

// Drains are those in force. Err is why they are not known, such as inspect.ErrDrainsUnreadable.
type Drains struct {
	inspect.Page[berth.Drain]
	Err error

	read time.Time
}

// readDrains reads the drains while an overview is read, unless they were read within DrainsEvery.
func (w *Watcher) readDrains(ctx context.Context, to chan<- Drains) {
	seen := w.DrainsSeen()
	if read := time.Now(); read.Sub(seen.read) >= DrainsEvery {
		seen = Drains{read: read}
		if err := guard.Run("the reading of drains", w.tells, func() (err error) {
			seen.Page, err = w.read.Drains(ctx)
			return err
		}); err != nil {
			seen.Err = err
		}
	}
	to <- seen
}

// DrainsSeen are those that were read last beside an overview. It reads nothing.
func (w *Watcher) DrainsSeen() Drains {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drains
}

// cycles is the key of their topic, and searches is its sort.
const cycles = "cycles"

var searches = sort{every: CyclesEvery, walks: true, shared: true, aside: true}

// Cycles looks for claims that wait for each other. A feed has no reading of longer ago than CyclesEvery before it.
func (w *Watcher) Cycles() *Feed[inspect.Cycles] {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := join(w, cycles, searches, nil, w.search)
	f.eager, f.topic.eager = true, f.topic.eager+1
	from := time.Now().Add(-CyclesEvery)
	if f.has = func(c inspect.Cycles) bool { return c.At.After(from) }; !f.topic.began.After(from) {
		f.topic.soon()
	}
	return f
}

// Aside are the options of a search for cycles that is made beside other readings.
func Aside() *inspect.CycleOptions {
	return &inspect.CycleOptions{Within: CyclesEvery / 2, Line: asideLine}
}

// AsidePace is how long after the beginning of such a search, which took so long, the next one begins.
func AsidePace(took time.Duration) time.Duration { return max(asideEvery, asideShare*took) }

func (w *Watcher) search(ctx context.Context) (inspect.Cycles, error) {
	o := Aside()
	w.mu.Lock()
	if t := w.topics[cycles]; t != nil && t.eager > 0 {
		o.Line = 0
	}
	w.mu.Unlock()
	return w.read.Cycles(ctx, o)
}

// aside has cycles be searched for beside what else is read, and tells those of CyclesSeen.
func (w *Watcher) aside() *inspect.Cycles {
	look(w, cycles, searches, nil, w.search).Close()
	return w.CyclesSeen()
}

// CyclesSeen are those that the last search has found; nil where none was made for long. It reads nothing.
func (w *Watcher) CyclesSeen() *inspect.Cycles {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.topics[cycles]
	if t == nil || time.Since(t.last.At) > 3*t.pace() {
		return nil
	}
	found, read := t.last.Value.(inspect.Cycles)
	if !read {
		return nil
	}
	return &found
}

// Claims looks at the claims of all names that a filter means: of a node, an owner, a label. Where there are many names
// it takes several readings to come upon all: until then those are told that were found.
func (w *Watcher) Claims(f inspect.ClaimFilter) *Feed[Claims] {
	return look(w, keyOf("claims", f), sort{every: ClaimsEvery, walks: true}, nil, w.walkOver(f).next)
}

func (w *Watcher) walkOver(f inspect.ClaimFilter) *walk[inspect.Claim] {
	return &walk[inspect.Claim]{page: func(ctx context.Context, cursor string, most int) (inspect.Page[inspect.Claim], error) {
		return w.read.Claims(ctx, f, cursor, most)
	}}
}

// Node is a node, and its claims.
type Node struct {
	inspect.Node
	Claims Claims
}

// Node looks at a node, as Claims does.
func (w *Watcher) Node(id string) *Feed[Node] {
	k := w.walkOver(inspect.ClaimFilter{Node: id})
	return look(w, keyOf("node", id), sort{every: ClaimsEvery, walks: true}, nil, func(ctx context.Context) (n Node, err error) {
		if n.Claims, err = k.next(ctx); err != nil {
			return n, err
		}
		if n.Node, err = w.read.NodeOf(ctx, id, n.Claims); err != nil { // what the claims tell is told
			n.Claims.Problems = append(slices.Clip(n.Claims.Problems), err)
		}
		return n, nil
	})
}

// Nodes looks at all nodes, a few pages of claims at a time.
func (w *Watcher) Nodes() *Feed[inspect.Page[inspect.Node]] {
	nodes := w.read.Nodes()
	var whole *inspect.Page[inspect.Node]
	return look(w, "nodes", sort{every: ClaimsEvery, walks: true, shared: true}, nil, func(ctx context.Context) (inspect.Page[inspect.Node], error) {
		page, err := nodes.Read(ctx, claimsPages)
		if err != nil {
			return page, err
		} else if page.Next == "" {
			whole = &page
		}
		return *cmp.Or(whole, &page), nil
	})
}

// Runs looks at the names of package once of whose runs something is kept, as Claims does.
func (w *Watcher) Runs() *Feed[inspect.Page[berth.Name]] {
	f := inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Once}}
	k := walk[berth.Name]{page: func(ctx context.Context, cursor string, most int) (inspect.Page[berth.Name], error) {
		return w.read.Names(ctx, f, cursor, most)
	}}
	return look(w, "runs", sort{every: ClaimsEvery, walks: true, shared: true}, nil, k.next)
}

// walk looks for claims, or names. It belongs to the loop of its topic.
type walk[E any] struct {
	page   func(ctx context.Context, cursor string, most int) (inspect.Page[E], error)
	cursor string           // where the next reading goes on, "" at the beginning
	found  inspect.Page[E]  // since the beginning
	whole  *inspect.Page[E] // what the last walk has found that came to its end
}

// next goes on for some pages.
func (k *walk[E]) next(ctx context.Context) (inspect.Page[E], error) {
	for range claimsPages {
		page, err := k.page(ctx, k.cursor, claimsMost-len(k.found.Items))
		if err != nil {
			k.cursor, k.found = "", inspect.Page[E]{}
			return inspect.Page[E]{}, err
		}
		if k.found.At.IsZero() {
			k.found.At = page.At
		}
		k.found.Items, k.found.Problems = append(k.found.Items, page.Items...), append(k.found.Problems, page.Problems...)
		if k.cursor = page.Next; k.cursor == "" || len(k.found.Items) >= claimsMost {
			whole := k.found
			whole.Partial = k.cursor != "" || len(whole.Problems) > 0
			k.whole, k.cursor, k.found = &whole, "", inspect.Page[E]{}
			return whole, nil
		}
	}
	if k.whole != nil {
		return *k.whole, nil
	}
	soFar := k.found
	soFar.Partial = true
	return soFar, nil
}

// Names is a page of names in use, up to 200, behind a cursor: as it is being read or, without anew, was
// read within NamesEvery. It is read once.
func (w *Watcher) Names(f inspect.NameFilter, from string, anew bool) *Feed[inspect.Page[berth.Name]] {
	key := keyOf("names", f, from)
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.topics[key]; t != nil && anew && t.last.Seq > 0 {
		w.yield(t)
	}
	return join(w, key, sort{every: NamesEvery, walks: true, once: true}, nil, func(ctx context.Context) (inspect.Page[berth.Name], error) {
		page, err := w.read.Names(ctx, f, from, 200)
		inspect.Marked(&page, w.CyclesSeen())
		return page, err
	})
}

// keyOf is a text that differs where the parts do: they are texts of any bytes, and what is made of them.
func keyOf(parts ...any) string { return fmt.Sprintf("%q", parts) }
