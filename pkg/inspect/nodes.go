package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// NodeState is how a node stands.
type NodeState string

// The states of a node, the worst first.
const (
	NodeCondemned NodeState = "condemned" // the swarm has declared it dead
	NodeZombie    NodeState = "zombie"    // it counts as dead for the swarm: the next flush condemns it
	NodeOverdue   NodeState = "overdue"   // it should have been heard of by now: it is dead, stopped or cut off
	NodeAlive     NodeState = "alive"
	NodeUnknown   NodeState = "unknown" // nothing tells: it is in no swarm, and renews nothing
)

// Node is a node as its claims and the swarm tell of it. A node that holds nothing, waits for nothing and is in no swarm is not
// known.
type Node struct {
	ID    string    `json:"node"`
	Label string    `json:"label"`
	State NodeState `json:"state"`
	Heard Heard     `json:"heard"`
	// ZombieAfter is after how long without a probe it counts as dead for the swarm, 0 if it is in none.
	ZombieAfter time.Duration `json:"zombieAfterMs,omitzero"`
	// Holds and Waits are the names that it holds and waits for, by kind and name.
	Holds []Claimed `json:"holds"`
	Waits []Claimed `json:"waits"`
	// Drain is one that is of the node, nil for none.
	Drain *berth.Drain `json:"drain,omitzero"`
}

// Claimed is what a node has of a name: so many claims.
type Claimed struct {
	Kind   keyspace.Kind `json:"kind"`
	Name   string        `json:"name"`
	Claims int           `json:"claims"`
}

// Dead says that the swarm takes it for dead.
func (n *Node) Dead() bool { return n.State == NodeCondemned || n.State == NodeZombie }

// place is where a node stands in a listing: dead ones that have something first.
func (n *Node) place() int {
	if n.Dead() && len(n.Holds)+len(n.Waits) == 0 {
		return len(nodeStates)
	}
	return slices.Index(nodeStates, n.State)
}

var nodeStates = []NodeState{NodeCondemned, NodeZombie, NodeOverdue, NodeAlive, NodeUnknown}

// Nodes is a walk over all claims, and over the nodes of the swarm. It is not safe for concurrent use. There is nothing to close.
type Nodes struct {
	reader *Reader
	cursor string
	nodes  map[string]*nodeClaims
	page   Page[Node] // as far as it was read
	of     berth.Ref  // whose claims are read now: all of a name come one after the other
	claims map[string]met
}

// met is a claim that a walk has met. It is met twice if it was granted meanwhile: waiting, and then holding.
type met struct {
	node  string
	holds bool
}

// nodeClaims are the claims of a node that a walk has met.
type nodeClaims struct {
	label string
	told  told
	since time.Time         // the oldest one
	holds map[berth.Ref]int // so many claims of a name
	waits map[berth.Ref]int
}

// Nodes returns a walk that begins.
func (r *Reader) Nodes() *Nodes { return &Nodes{reader: r} }

// NodeOf tells of one node, by its claims and the swarm. Its State is "" where nothing is known of it.
func (r *Reader) NodeOf(ctx context.Context, id string, claims Page[Claim]) (Node, error) {
	w := r.Nodes()
	claims.Items = slices.Clone(claims.Items) // of several readings, perhaps
	slices.SortStableFunc(claims.Items, func(a, b Claim) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	w.add(claims)
	w.count()
	probed, _, err := r.read.Probed(ctx, id)
	drains, failed := r.Drains(ctx)
	err = reader.Joined(err, failed)
	if probed[id].ID == "" && w.nodes[id] == nil {
		return Node{ID: id, Drain: drainOf(drains.Items, id, "", time.Time{})}, err
	}
	return w.node(id, probed[id], drains.Items), err
}

// drainOf is the drain of a node, nil for none. since is when its oldest claim came, zero where that is not known: a process that has
// got something since a drain of its label was heard began later, and does not drain.
func drainOf(drains []berth.Drain, id, label string, since time.Time) *berth.Drain {
	i := slices.IndexFunc(drains, func(d berth.Drain) bool {
		return d.Node == id || d.Label != "" && text.Fits(d.Label, label) && !since.After(d.Since.Add(notice.Heard))
	})
	if i < 0 {
		return nil
	}
	return &drains[i]
}

// Read goes on with the walk for up to so many pages of Claims, 0 for all, and tells of all nodes that it has met and of all of the
// swarm, those that are dead and have something left first. The page is Partial, and has a Next, until the walk has come to its
// end; the next call then begins another one. A claim that comes and goes meanwhile may be missing. The error is that of
// Claims where nothing was read, and the end of ctx is in Problems else.
func (w *Nodes) Read(ctx context.Context, pages int) (Page[Node], error) {
	defer func() {
		if w.cursor == "" { // what the walk has met is told, and not read again
			*w = Nodes{reader: w.reader}
		}
	}()
	for n := 0; pages == 0 || n < pages; n++ {
		found, err := w.reader.Claims(ctx, ClaimFilter{}, w.cursor, reader.Most)
		if err != nil && (w.page.At.IsZero() || scriptkit.CallersEnd(ctx) == nil) {
			w.cursor = ""
			return Page[Node]{}, err
		} else if err != nil {
			break
		}
		w.add(found)
		if w.cursor = found.Next; w.cursor == "" {
			break
		}
	}
	w.count()
	page := w.page
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), swarmWithin)
	defer cancel()
	swarm, err := w.reader.swarm(ctx)
	drains, failed := w.reader.Drains(ctx)
	page.Problems = slices.Concat(page.Problems, problems(err), problems(failed), drains.Problems)
	page.Next, page.Partial = w.cursor, w.cursor != "" || len(page.Problems) > 0
	for id := range w.nodes {
		if _, in := swarm[id]; !in {
			swarm[id] = reader.Node{}
		}
	}
	for id, in := range swarm {
		page.Items = append(page.Items, w.node(id, in, drains.Items))
	}
	slices.SortFunc(page.Items, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.place(), b.place()), b.Heard.At.Compare(a.Heard.At), cmp.Compare(a.ID, b.ID))
	})
	return page, nil
}

// swarmWithin is how long the swarm and the drains are read after a walk, whose time may be over.
const swarmWithin = 5 * time.Second

// swarm is all that the swarm knows of nodes; those that were read beside an error.
func (r *Reader) swarm(ctx context.Context) (map[string]reader.Node, error) {
	nodes := map[string]reader.Node{}
	for cursor := "0"; ; {
		found, next, err := r.read.NodesPage(ctx, cursor)
		for _, n := range found {
			nodes[n.ID] = n
		}
		if cursor = next; err != nil || cursor == "0" {
			return nodes, err
		}
	}
}

// add takes in a page of claims.
func (w *Nodes) add(found Page[Claim]) {
	if w.page.At.IsZero() {
		w.page.At = found.At
	}
	w.page.Replica, w.page.Moving = w.page.Replica || found.Replica, w.page.Moving || found.Moving
	w.page.Problems = append(w.page.Problems, found.Problems...)
	for i := range found.Items {
		c := &found.Items[i]
		if ref := (berth.Ref{Kind: c.Kind, Name: c.Name}); w.claims == nil || ref != w.of {
			w.count()
			w.of, w.claims = ref, map[string]met{}
		}
		w.claims[c.ID()] = met{c.Node(), c.Hold != nil}
		if w.nodes == nil {
			w.nodes = map[string]*nodeClaims{}
		}
		n := w.nodes[c.Node()]
		if n == nil {
			n = &nodeClaims{holds: map[berth.Ref]int{}, waits: map[berth.Ref]int{}}
			w.nodes[c.Node()] = n
		}
		n.label = cmp.Or(c.Label(), n.label)
		if since := c.Since(); n.since.IsZero() || since.Before(n.since) {
			n.since = since
		}
		n.told.take(c.Heard, c.late())
	}
}

// count notes how many claims of the name each node has. A server may list a name twice: what was read last counts.
func (w *Nodes) count() {
	holds, waits := map[string]int{}, map[string]int{}
	for _, c := range w.claims {
		if c.holds {
			holds[c.node]++
		} else {
			waits[c.node]++
		}
	}
	for _, c := range w.claims {
		n := w.nodes[c.node]
		note(n.holds, w.of, holds[c.node])
		note(n.waits, w.of, waits[c.node])
	}
}

// note notes a count, of which none is left out.
func note(counts map[berth.Ref]int, ref berth.Ref, n int) {
	if counts[ref] = n; n == 0 {
		delete(counts, ref)
	}
}

// node is what is known of a node, in with its ID where the swarm knows it.
func (w *Nodes) node(id string, in reader.Node, drains []berth.Drain) Node {
	c := cmp.Or(w.nodes[id], &nodeClaims{})
	n := Node{
		ID: id, Label: cmp.Or(c.label, in.Label), State: NodeUnknown, Heard: c.told.last, ZombieAfter: in.Limit,
		Holds: parts(c.holds), Waits: parts(c.waits),
	}
	n.Drain = drainOf(drains, id, n.Label, c.since)
	if in.ID != "" {
		n.State = NodeAlive
		if probed := in.Probed(); probed.After(n.Heard.At) {
			n.Heard = Heard{At: probed, Exact: !w.page.Replica, By: "probe"}
		}
	}
	switch {
	case in.Condemned:
		n.State = NodeCondemned
	case in.Zombie && !w.page.Replica:
		n.State = NodeZombie
	case c.told.some && c.told.all:
		n.State = NodeOverdue
	case c.told.some:
		n.State = NodeAlive
	}
	return n
}

// parts are the names of claims.
func parts(counts map[berth.Ref]int) []Claimed {
	all := make([]Claimed, 0, len(counts))
	for _, ref := range slices.SortedFunc(maps.Keys(counts), func(a, b berth.Ref) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	}) {
		all = append(all, Claimed{ref.Kind, ref.Name, counts[ref]})
	}
	return all
}
