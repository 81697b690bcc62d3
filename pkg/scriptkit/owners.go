package scriptkit

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// owners tells which node of a Redis Cluster has which slots. It is a hint for what shares
// a pipeline, and never decides where a command is sent: rueidis does, and where the two
// disagree a pipeline waits for one node more. So it is asked for seldom.
type owners struct {
	asked atomic.Int64 // when, counted from Runner.made; 0 for never
	last  atomic.Pointer[nodes]
}

// ownersAge is for how long the nodes are taken to be the same.
const ownersAge = 10 * time.Second

// outdated reports whether to learn of the nodes anew. It says so to one caller only.
func (o *owners) outdated(now time.Duration) bool {
	asked := o.asked.Load()
	if asked != 0 && now-time.Duration(asked) < ownersAge {
		return false
	}
	return o.asked.CompareAndSwap(asked, max(1, int64(now)))
}

// learn asks the cluster. What it does not answer stays as it was.
func (o *owners) learn(ctx context.Context, r *Runner) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.CallTimeout)
	defer cancel()
	answer, err := r.client.Do(ctx, r.client.B().ClusterSlots().Build()).ToArray()
	if err != nil {
		return
	}
	found := make(nodes, 0, len(answer))
	number := make(map[string]int)
	for i := range answer {
		name, run, ok := readSlots(&answer[i])
		if !ok {
			return // another form, of which nothing is known
		}
		if _, known := number[name]; !known {
			number[name] = len(number)
		}
		run.node = number[name]
		found = append(found, run)
	}
	slices.SortFunc(found, func(a, b slots) int { return int(a.first - b.first) })
	o.last.Store(&found)
}

// readSlots reads an element of CLUSTER SLOTS: the first and the last slot, and then the
// nodes that have them, the master first, each with its address, port and id.
func readSlots(m *rueidis.RedisMessage) (master string, s slots, ok bool) {
	run, err := m.ToArray()
	if err != nil || len(run) < 3 {
		return "", s, false
	}
	node, err := run[2].ToArray()
	if err != nil || len(node) < 3 {
		return "", s, false
	}
	master, err = node[2].ToString()
	if err != nil {
		return "", s, false
	}
	s.first, _ = run[0].ToInt64()
	s.last, err = run[1].ToInt64()
	return master, s, err == nil
}

// known are the nodes as they were last heard of, nil if they never were.
func (o *owners) known() nodes {
	if last := o.last.Load(); last != nil {
		return *last
	}
	return nil
}

// nodes are the slots of a cluster, in their order.
type nodes []slots

// slots are the slots from first to last, which one node has.
type slots struct {
	first, last int64
	node        int
}

// Server tells which node of a Redis Cluster runs the scripts of a key, as far as is known, by a number; 0 of every key
// elsewhere. It does no I/O: calls of RunMany learn of the nodes.
func (r *Runner) Server(key string) int {
	if r.client.Mode() != rueidis.ClientModeCluster {
		return 0
	}
	command := r.client.B().Exists().Key(key).Build()
	return r.owners.known().of(command.Slot())
}

// Nodes that slots are taken to belong to.
const (
	// noNode has the slots of which the cluster says that no node does.
	noNode = -1
	// runOfSlots is how many slots in a row are taken to be one node's while nothing is
	// known: most clusters give each node few runs of slots, and long ones.
	runOfSlots = 1024
)

// of is the number of the node that has a slot.
func (n nodes) of(slot uint16) int {
	if n == nil {
		return int(slot / runOfSlots)
	}
	i, _ := slices.BinarySearchFunc(n, int64(slot), func(s slots, slot int64) int { return int(s.last - slot) })
	if i == len(n) || n[i].first > int64(slot) {
		return noNode
	}
	return n[i].node
}
