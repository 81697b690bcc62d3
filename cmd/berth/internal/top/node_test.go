package top

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestNodesAreListedAndOpened(t *testing.T) {
	p := begin(t, 120, 24)
	p.names(contended("gpu", 1))
	p.keys("N")
	require.Equal(t, subject{topic: nodes}, p.top().subject())
	p.shows("Nodes: what each holds and waits for", "Reading ...")
	node := func(id string, state inspect.NodeState, ago time.Duration, holds ...string) inspect.Node {
		n := inspect.Node{ID: id, Label: "host/" + id, State: state, Heard: inspect.Heard{At: noon.Add(-ago)}}
		for _, name := range holds {
			n.Holds = append(n.Holds, inspect.Claimed{Kind: keyspace.Lock, Name: name, Claims: 1})
		}
		return n
	}
	drained := node("n2", inspect.NodeAlive, time.Second, "a", "b", "c", "d", "e\x1b[2J")
	drained.Drain = &berth.Drain{}
	drained.Waits = []inspect.Claimed{{Kind: keyspace.Sem, Name: "gpu", Claims: 2}}
	p.reads(inspect.Page[inspect.Node]{At: noon, Partial: true, Items: []inspect.Node{node("n1", inspect.NodeZombie, time.Hour, "reports"), drained}})
	p.shows("2 nodes, 1 dead that have left something, 0s ago; there is more that was not read", "> zombie 1h00m lock reports - host/n1",
		"alive, draining 1s lock a, lock b, lock c,+ sem gpu (2) host/n2")
	p.keys("down d")
	p.shows("drain", "n2")
	p.keys("esc enter")
	require.Equal(t, subject{topic: ofNode, node: "n2"}, p.top().subject())
	p.keys("esc esc")
	p.shows("The most contended")
}
