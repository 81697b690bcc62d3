package reader

import (
	"context"
	"strconv"
	"time"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// swarmName is the name of the only swarm of a namespace.
const swarmName = "nodes"

// Node is what the swarm knows of a node.
type Node struct {
	ID, Label string
	Ends      time.Time // when it is dead unless it probes before, or was
	Limit     time.Duration
	Zombie    bool // it was dead when it was read
	Condemned bool
}

// Probed is when its last probe came.
func (n *Node) Probed() time.Time { return n.Ends.Add(-n.Limit) }

// swarm makes the turn of a swarm's reading.
func (r *Reader) swarm(ctx context.Context, read func(t *turn) error) (now int64, err error) {
	t, _, err := r.alone(ctx, "swarm", keyspace.Swarm, swarmName, 1, func(t *turn) (bool, error) { return true, read(t) })
	if err != nil {
		return 0, err
	}
	return t.now, nil
}

// nodes reads what the swarm knows of nodes, and leaves out those that it does not know. The scores come first:
// the record of a node that is condemned then says when it was dead.
func (t *turn) nodes(ids ...string) (found []Node, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var p trip
	members := make([]string, 0, 2*len(ids))
	for _, id := range ids {
		members = append(members, "p:"+id, "c:"+id)
	}
	scores := p.scores(t.key(keyspace.ProbesPart), "", members...)
	records := p.fields(t.key(keyspace.StatePart), "n:", ids...)
	if err := t.ask(&p); err != nil {
		return nil, err
	}
	at, texts := p.at(scores), p.texts(records)
	for i, id := range ids {
		stored, ok := state.ParseNode(texts[i])
		ends, condemned := at[2*i], at[2*i+1] != absent
		if condemned {
			ends = stored.Ends
		}
		if !ok || ends == absent {
			continue
		}
		found = append(found, Node{id, stored.Label, time.UnixMilli(min(ends, state.Forever)), state.Millis(stored.Limit), ends <= t.now, condemned})
	}
	return found, p.err
}

// Probed reads what the swarm knows of nodes, and when that was (ms by the server's clock); of those that it does
// not know, nothing.
func (r *Reader) Probed(ctx context.Context, ids ...string) (found map[string]Node, now int64, err error) {
	now, err = r.swarm(ctx, func(t *turn) (err error) {
		found, err = t.probed(ids...)
		return err
	})
	return found, now, err
}

// ProbedAt is Probed for whoever knows what time the swarm's server has: it asks neither for that nor who answers.
func (r *Reader) ProbedAt(ctx context.Context, now int64, ids ...string) (found map[string]Node, err error) {
	t := &turn{Reader: r, kind: keyspace.Swarm, name: swarmName, memory: &Memory{}, now: now}
	t.do = func() (err error) {
		found, err = t.probed(ids...)
		return err
	}
	if err := r.together(ctx, "swarm", nil, t); err != nil {
		return nil, err
	}
	return found, t.err
}

func (t *turn) probed(ids ...string) (map[string]Node, error) {
	nodes, err := t.nodes(ids...)
	found := make(map[string]Node, len(nodes))
	for _, n := range nodes {
		found[n.ID] = n
	}
	return found, err
}

// NodesPage reads some nodes of the swarm, in no order. A cursor of 0 is where
// the first page begins, and what the last one returns. The pages promise what SCAN promises. The error is
// berth.ErrIncompatible, state.ErrDamaged for a key of another type, or the server's.
func (r *Reader) NodesPage(ctx context.Context, cursor string) (found []Node, next string, err error) {
	_, err = r.swarm(ctx, func(t *turn) (err error) {
		var p trip
		format := p.fields(t.key(keyspace.StatePart), "", "fmt")
		scan := p.scan(t.key(keyspace.StatePart), cursor, "n:*", scannedFields)
		if err := t.ask(&p); err != nil {
			return err
		}
		var fields []pair
		if fields, next = p.scanned(scan, "n:"); p.err != nil {
			return p.err
		}
		if err := state.CheckSwarm(p.texts(format)[0]); err != nil {
			return err
		}
		var ids []string
		for _, f := range fields {
			ids = append(ids, f.name)
		}
		found, err = t.nodes(ids...)
		return err
	})
	return found, next, err
}

// Dead are the nodes that are to be flushed, or may be.
type Dead struct {
	Overdue   []string // have not probed within their own limit, the longest dead first
	Condemned []string // within the memory
	Next      int64    // where the next page of the condemned begins
	More      bool     // there are others
	Damaged   []error  // of probes of no node
}

// Dead reads up to so many overdue nodes, and as many condemned ones: those of the last so many milliseconds, from one on. Its
// errors are those of NodesPage.
func (r *Reader) Dead(ctx context.Context, memory, from int64, most int) (d Dead, err error) {
	_, err = r.swarm(ctx, func(t *turn) error {
		var p trip
		format := p.fields(t.key(keyspace.StatePart), "", "fmt")
		if err := t.ask(&p); err != nil {
			return err
		}
		if text := p.texts(format)[0]; p.err != nil {
			return p.err
		} else if err := state.CheckSwarm(text); err != nil {
			return err
		}
		p = trip{}
		probes := t.key(keyspace.ProbesPart)
		overdue := p.ranged(probes, 0, t.now, most)
		condemned := p.ranged(probes, max(state.Condemned+t.now-memory+1, from), state.Left-1, most)
		if err := t.ask(&p); err != nil {
			return err
		}
		d = Dead{Next: from}
		probing, gone := p.members(overdue), p.members(condemned)
		for _, m := range gone {
			d.Next = m.score + 1
		}
		d.More = len(probing) >= most || len(gone) >= most
		var odd, damaged []member
		_, d.Overdue, odd = sound(probing, func(m string) (string, error) { return state.Behind(m, "p:") })
		_, d.Condemned, damaged = sound(gone, func(m string) (string, error) { return state.Behind(m, "c:") })
		for _, m := range append(odd, damaged...) {
			d.Damaged = append(d.Damaged, state.Damaged(m.name))
		}
		return p.err
	})
	return d, err
}

// scannedFields is about how many entries of a hash one HSCAN reads.
const scannedFields = 100

// scan adds an HSCAN of the fields that a pattern matches.
func (p *trip) scan(key, cursor, match string, count int) int {
	return p.add("HSCAN", key, cursor, "MATCH", match, "COUNT", strconv.Itoa(count))
}

// pair is a field of a hash without what it begins with, and its value.
type pair struct{ name, value string }

// scanned are the fields of its answer that are sound, and where the next one begins.
func (p *trip) scanned(i int, begins string) (fields []pair, next string) {
	entry, err := p.result(i).AsScanEntry()
	if p.fail(err) {
		return nil, "0"
	}
	for n := 0; n+1 < len(entry.Elements); n += 2 {
		if name, err := state.Behind(entry.Elements[n], begins); err == nil {
			fields = append(fields, pair{name, state.Bounded(entry.Elements[n+1])})
		}
	}
	return fields, strconv.FormatUint(entry.Cursor, 10)
}
