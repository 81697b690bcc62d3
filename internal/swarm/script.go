package swarm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// name is whose keys a swarm has: there is one in a namespace.
const name = "nodes"

// pageSize is how many nodes one script enters, or one reading finds.
const pageSize = 100

// The statuses of the scripts; a test compares them with the headers.
const (
	statusProbed       = "probed"
	statusCondemned    = "condemned"
	statusLeft         = "left"
	statusAlive        = "alive"
	statusUnknown      = "unknown"
	statusExpected     = "expected"
	statusIncompatible = "incompatible"
)

// calls is the only place that runs the swarm's scripts, and reads its keys.
type calls struct {
	run                  *scriptkit.Runner
	look, decide         *reader.Reader
	keys                 []string
	label, limit, memory string
}

func newCalls(cfg *Config) *calls {
	return &calls{
		run:    cfg.Runner,
		look:   reader.New(cfg.Runner, cfg.Space, false),
		decide: reader.New(cfg.Runner, cfg.Space, true),
		keys:   []string{cfg.Space.State(keyspace.Swarm, name), cfg.Space.Probes(name)},
		label:  cfg.Label,
		limit:  millis(cfg.ZombieAfter),
		memory: millis(memory),
	}
}

func millis(d time.Duration) string { return line.Decimal(d.Milliseconds()) }

// said is what a node's own call was told.
type said struct {
	status     string
	more       bool // more could be dropped
	known      bool // the node was in the swarm before the probe
	unanswered bool // an attempt may still run
	err        error
}

// Probe sends swarm_probe.
func (c *calls) Probe(ctx context.Context, mode scriptkit.Mode, node string, run int64) said {
	r, err := c.run.Run(ctx, composed.SwarmProbe, mode, c.keys, []string{node, line.Decimal(run), c.label, c.limit, c.memory})
	s := said{status: r.Status(), unanswered: r.Unanswered, err: err}
	if err != nil {
		return s
	}
	switch r.Status() {
	case statusProbed, statusCondemned:
		s.more, s.known = r.Int(1) == 1, r.Int(2) == 1
		s.err = r.Err()
	default: // left as well: the run that probes has not
		s.err = unexpected(&r)
	}
	return s
}

// Leave sends swarm_leave once, with a tombstone if a probe may still run.
func (c *calls) Leave(ctx context.Context, node string, run int64, doubt bool) said {
	stays := time.Duration(0)
	if doubt {
		stays = tombstone
	}
	r, err := c.run.Run(ctx, composed.SwarmLeave, scriptkit.Once, c.keys,
		[]string{node, line.Decimal(run), millis(stays), c.memory})
	s := said{status: r.Status(), unanswered: r.Unanswered, err: err}
	if err == nil && s.status != statusLeft && s.status != statusCondemned {
		s.err = unexpected(&r)
	}
	return s
}

// Condemn sends swarm_condemn until nothing more is to be dropped. mine says that
// this call was the one that condemned the node.
func (c *calls) Condemn(ctx context.Context, node string) (condemned, mine bool, err error) {
	for {
		r, err := c.run.Run(ctx, composed.SwarmCondemn, scriptkit.Bounded, c.keys, []string{node, c.memory})
		if err != nil {
			return condemned, mine, err
		}
		switch r.Status() {
		case statusCondemned:
		case statusAlive, statusUnknown: // it has probed since, or has left
			return condemned, mine, nil
		default:
			return condemned, mine, unexpected(&r)
		}
		// An attempt of this very call may have done it without an answer.
		condemned, mine = true, mine || r.Int(1) == 1 || r.Unanswered
		if more := r.Int(2) == 1; !more || r.Err() != nil {
			return condemned, mine, r.Err()
		}
	}
}

// Expect sends swarm_expect, and returns how many of the nodes the swarm did not know.
func (c *calls) Expect(ctx context.Context, nodes []Node) (entered int, err error) {
	for page := range slices.Chunk(nodes, pageSize) {
		args := append(make([]string, 0, 1+3*len(page)), c.memory)
		for _, n := range page {
			args = append(args, n.ID, millis(n.ZombieAfter), n.Label)
		}
		r, err := c.run.Run(ctx, composed.SwarmExpect, scriptkit.Bounded, c.keys, args)
		switch {
		case err != nil:
			return entered, err
		case r.Status() != statusExpected:
			return entered, unexpected(&r)
		case r.Err() != nil:
			return entered, r.Err()
		}
		entered += int(r.Int(1))
	}
	return entered, nil
}

// Nodes reads a page of nodes. The cursor is "0" to begin with, and when all have been seen.
func (c *calls) Nodes(ctx context.Context, cursor string) (page []Node, next string, err error) {
	found, next, err := c.look.NodesPage(ctx, cursor)
	for _, n := range found {
		page = append(page, Node{
			ID: n.ID, Label: n.Label, ProbedAt: n.Probed(), ZombieAfter: n.Limit, Zombie: n.Zombie, Condemned: n.Condemned,
		})
	}
	return page, next, err
}

// Dead reads a page of nodes that are to be flushed, or may be.
func (c *calls) Dead(ctx context.Context, from int64) (reader.Dead, error) {
	return c.decide.Dead(ctx, memory.Milliseconds(), from, pageSize)
}

// unexpected is the error for a reply that is none of those which the caller
// reads.
func unexpected(r *scriptkit.Reply) error {
	if r.Status() == statusIncompatible {
		return state.IncompatibleSwarm(r.Int(1))
	}
	return fmt.Errorf("berth: unexpected status %q of the swarm", r.Status())
}
