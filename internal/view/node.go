package view

import (
	"time"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/node"
)

// Node is a node of the swarm as a row.
type Node struct {
	node.SwarmNode
	at time.Time
}

// NodesAt is a row for each of the nodes, at a moment by the server's clock.
func NodesAt(all []node.SwarmNode, at time.Time) []Node {
	return rows(all, func(n *node.SwarmNode) Node { return Node{*n, at} })
}

// Nodes are the columns of a node. PROBED is how long ago it said that it lives, LIMIT after how long it counts as dead.
var Nodes = Columns[Node]{
	{Head: "NODE", Cell: func(n *Node) Cell { return to("node", n.Node, n.Node) }},
	{Head: "STATE", Cell: func(n *Node) Cell {
		switch {
		case n.Condemned:
			return Cell{{Says: "condemned", Look: Bad}}
		case n.Zombie:
			return Cell{{Says: "zombie", Look: Bad}}
		}
		return Cell{{Says: "alive", Look: Good}}
	}},
	{Head: "PROBED", Cell: func(n *Node) Cell { return lasted(n.at.Sub(n.ProbedAt), n.ProbedAt) }},
	{Head: "LIMIT", Cell: func(n *Node) Cell { return says(text.Human(n.ZombieAfter)) }},
	{Head: "LABEL", Cell: func(n *Node) Cell { return to("label", n.Label, n.Label) }},
}
