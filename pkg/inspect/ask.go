package inspect

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// tries is how often a name is read that moves meanwhile.
const tries = 3

// Explain says why a name, or one claim of it, stands still, and what comes next by itself; claim "" is
// the name. A name or a claim that is not known, one that is damaged and one of a newer release are
// explained, too: its errors are berth.ErrInvalidConfig for a bad kind or name, or the server's.
//
// With the command INFO, which the reading user need not have, it also knows whether the server refuses writes.
func (r *Reader) Explain(ctx context.Context, kind keyspace.Kind, name, claim string) (Explanation, error) {
	if err := checkKind(kind); err != nil {
		return Explanation{}, err
	}
	if err := keyspace.CheckName(name); err != nil {
		return Explanation{}, err
	}
	s, err := r.snapshot(ctx, kind, name, claim)
	if err != nil {
		return Explanation{}, err
	}
	e := explain(s, claim)
	e.Trouble = s.trouble()
	return e, nil
}

// snapshot reads all that an explanation goes by.
func (r *Reader) snapshot(ctx context.Context, kind keyspace.Kind, name, claim string) (*snapshot, error) {
	found, err := r.read.Snapshots(ctx, nil, tries, reader.SnapLine, claimed(claim), berth.Ref{Kind: kind, Name: name})
	if err != nil {
		return nil, err
	}
	all, err := r.read.Notice(ctx, kind)
	if err != nil {
		return nil, err
	}
	s, err := r.filled(found[0], all)
	if err != nil {
		return nil, err
	}
	s.claim = s.Asked[claim]
	if said, err := r.read.Server(ctx, kind, name); err == nil {
		s.server = said
	}
	_, err = r.probed(ctx, 0, s)
	return s, err
}

// claimed are the claims that are asked for: one, or none for "".
func claimed(claim string) []string {
	if claim == "" {
		return nil
	}
	return []string{claim}
}

// probed asks the swarm about the nodes whose holds have no end, of which nothing else tells whether
// they live. now is the time of the swarm's server (ms), 0 where that is to be asked; it is returned.
func (r *Reader) probed(ctx context.Context, now int64, names ...*snapshot) (int64, error) {
	var rows []*reader.Row
	for _, s := range names {
		rows = append(rows, &s.Row)
	}
	nodes := probable(rows...)
	if len(nodes) == 0 {
		return now, nil
	}
	var probed map[string]reader.Node
	var err error
	if now == 0 {
		probed, now, err = r.read.Probed(ctx, nodes...)
	} else {
		probed, err = r.read.ProbedAt(ctx, now, nodes...)
	}
	if err != nil {
		return 0, err
	}
	for _, s := range names {
		s.nodes = maps.Clone(probed)
		for id, n := range s.nodes {
			n.Ends = n.Ends.Add(s.At.Sub(time.UnixMilli(now))) // by the clock of the name's server
			s.nodes[id] = n
		}
	}
	return now, nil
}

// probable are nodes of a swarm whose holds have no end.
func probable(rows ...*reader.Row) (nodes []string) {
	for _, n := range rows {
		for i := range n.Entries {
			if h := &n.Entries[i].Entry; h.Lease == berth.Forever && h.ZombieAfter > 0 && !slices.Contains(nodes, h.Node) {
				nodes = append(nodes, h.Node)
			}
		}
	}
	return nodes[:min(len(nodes), reader.Most/2)]
}
