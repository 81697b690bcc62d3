package view

import (
	"fmt"
	"time"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
)

// Node is a node as a row.
type Node struct {
	inspect.Node
	at time.Time
}

// NodesAt is a row for each of the nodes, at a moment by the server's clock.
func NodesAt(at time.Time, all ...inspect.Node) []Node {
	return rows(all, func(n *inspect.Node) Node { return Node{*n, at} })
}

// Nodes are the columns of a node. HEARD is how long ago it was heard of, LIMIT after how long without a probe it counts as dead.
var Nodes = Columns[Node]{
	{Head: "NODE", Share: 3, Cell: func(n *Node) Cell { return to("node", n.ID, n.ID) }},
	{Head: "STATE", Width: 15, Cell: func(n *Node) Cell {
		c := Cell{{Says: string(n.State), Look: nodeLooks[n.State]}}
		if n.Drain != nil {
			c = append(c, Piece{Says: "draining", Look: Busy})
		}
		return c
	}},
	{Head: "HEARD", Width: 6, Right: true, Cell: func(n *Node) Cell { return lasted(n.at.Sub(n.Heard.At), n.Heard.At) }},
	{Head: "LIMIT", Width: 6, Right: true, Cell: func(n *Node) Cell {
		if n.ZombieAfter == 0 {
			return nil
		}
		return says(text.Human(n.ZombieAfter))
	}},
	{Head: "HOLDS", Share: 4, Cell: func(n *Node) Cell { return claimed(n.Holds) }},
	{Head: "WAITS FOR", Share: 4, Cell: func(n *Node) Cell { return claimed(n.Waits) }},
	{Head: "LABEL", Share: 3, Cell: func(n *Node) Cell { return to("label", n.Label, n.Label) }},
}

var nodeLooks = map[inspect.NodeState]Look{
	inspect.NodeCondemned: Bad, inspect.NodeZombie: Bad, inspect.NodeOverdue: Bad, inspect.NodeAlive: Good, inspect.NodeUnknown: Quiet,
}

// Look is how the state of the node looks.
func (n *Node) Look() Look { return nodeLooks[n.State] }

// claimedMost is how many names of a node are told in a row.
const claimedMost = 3

// claimed are the names that a node has claims of.
func claimed(all []inspect.Claimed) (c Cell) {
	for i, of := range all {
		if i == claimedMost {
			return append(c, Piece{Says: fmt.Sprintf("and %d more", len(all)-i)})
		}
		says := string(of.Kind) + " " + text.Plain(of.Name)
		if of.Claims > 1 {
			says += fmt.Sprintf(" (%d)", of.Claims)
		}
		c = append(c, Piece{Says: says, To: Place{Of: "name", Kind: of.Kind, Name: of.Name}})
	}
	return c
}
