package inspect

import (
	"context"
	"errors"
	"slices"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// trouble says how bad the state of a name is, by the holds that were read of it: the first rule that fits counts. dead are
// nodes that the swarm counts as dead, overdue says whether the process of a hold should have been heard of.
func trouble(n *berth.Name, holds []reader.Found[berth.Holder], dead map[string]bool, overdue func(h *berth.Holder) bool) berth.Trouble {
	if n.Err != nil || n.Kind == keyspace.Once {
		return unreadable(n.Err)
	}
	var claim, node string
	some := func(fits func(h *berth.Holder) bool) bool {
		i := slices.IndexFunc(holds, func(h reader.Found[berth.Holder]) bool { return h.Err == nil && fits(&h.Entry) })
		if i >= 0 {
			claim, node = holds[i].Entry.ID, holds[i].Entry.Node
		}
		return i >= 0
	}
	is := func(level berth.Level, why Code) berth.Trouble {
		return berth.Trouble{Level: level, Why: string(why), Claim: claim, Node: node}
	}
	behind := func(h *berth.Holder) bool { return h.Detached && h.Left == berth.Forever }
	waits, p := n.Live() > 0, n.Pool
	idle := p != nil && p.Free+n.Held == 0
	switch damaged, head := slices.IndexFunc(holds, isDamaged), tooHeavy(n); {
	case damaged >= 0:
		claim = holds[damaged].Entry.ID
		return is(berth.LevelStuck, Damaged)
	case !n.Replica && some(func(h *berth.Holder) bool { return h.Lease == berth.Forever && !h.Detached && dead[h.Node] }):
		return is(berth.LevelStuck, DeadHold)
	case waits && some(behind):
		return is(berth.LevelStuck, LeftBehind)
	case head != nil:
		claim, node = head.ID, head.Node
		return is(berth.LevelStuck, TooHeavy)
	case idle && p.Resting == p.Endless && n.Capacity > 0: // a source may fill an empty one
		return is(berth.LevelStuck, NothingBack)
	case !n.Replica && some(overdue):
		return is(berth.LevelOverdue, Silent)
	case n.Pause != nil:
		return is(berth.LevelMeant, Paused)
	case idle && p.Resting > 0:
		return is(berth.LevelMeant, Resting)
	case some(func(h *berth.Holder) bool { return h.Wanted > 0 }):
		return is(berth.LevelMeant, Asked)
	case some(behind):
		return is(berth.LevelMeant, LeftBehind)
	case n.Held > 0 || waits:
		return berth.Trouble{Level: berth.LevelBusy}
	}
	return berth.Trouble{Level: berth.LevelFree}
}

// unreadable is the trouble of a name of which nothing is known: none where a server has not answered.
func unreadable(err error) berth.Trouble {
	var format *state.FormatError
	switch {
	case errors.As(err, &format) && format.Number == 0:
		return berth.Trouble{Level: berth.LevelStuck, Why: string(Foreign)}
	case errors.Is(err, berth.ErrIncompatible):
		return berth.Trouble{Level: berth.LevelStuck, Why: string(Incompatible)}
	case errors.Is(err, state.ErrDamaged):
		return berth.Trouble{Level: berth.LevelStuck, Why: string(Damaged)}
	}
	return berth.Trouble{}
}

func isDamaged(h reader.Found[berth.Holder]) bool { return h.Err != nil }

// tooHeavy is the first living claim in line if it asks for more than the capacity, else nil.
func tooHeavy(n *berth.Name) *berth.Waiter {
	i := slices.IndexFunc(n.First, func(w berth.Waiter) bool { return w.Alive > 0 })
	if i < 0 || n.Kind != keyspace.Sem || n.First[i].Weight <= n.Capacity {
		return nil
	}
	return &n.First[i]
}

// named is a name as a listing tells it. all is the notice of its kind, dead are nodes that count as dead.
func named(row *reader.Row, all notice.Field, dead map[string]bool) berth.Name {
	n, least := row.Under(all), berth.Forever // the shortest lease of a lock's entries
	for _, h := range row.Entries {
		least = min(least, h.Entry.Lease)
	}
	n.Trouble = trouble(&n, row.Entries, dead, func(h *berth.Holder) bool {
		if n.Kind != keyspace.Lock {
			return Standing(h, h.Lease) == Overdue
		}
		return !n.Partial && Standing(h, least) == Overdue
	})
	return n
}

// tell puts names on a page as a listing tells them.
func (r *Reader) tell(ctx context.Context, page *Page[berth.Name], rows []reader.Row, noticed map[keyspace.Kind]notice.Field) {
	all := make([]*reader.Row, len(rows))
	for i := range rows {
		all[i] = &rows[i]
	}
	dead, err := r.dead(ctx, probable(all...))
	if err != nil {
		page.Partial, page.Problems = true, append(page.Problems, err)
	}
	for _, row := range all {
		n := named(row, noticed[row.Kind], dead)
		if page.Items = append(page.Items, n); n.Trouble.Level == berth.LevelStuck {
			page.Stuck++
		}
	}
}

// dead says of nodes whether they count as dead for the swarm.
func (r *Reader) dead(ctx context.Context, nodes []string) (map[string]bool, error) {
	if len(nodes) == 0 {
		return nil, nil
	}
	probed, _, err := r.read.Probed(ctx, nodes...)
	return deadOf(probed), err
}

func deadOf(nodes map[string]reader.Node) map[string]bool {
	dead := map[string]bool{}
	for id, n := range nodes {
		dead[id] = n.Zombie // one that a flush has condemned is, too
	}
	return dead
}

// troubles are those of the names that cycles go through; a certain one comes before others. Without cycles there are none.
func (c *Cycles) troubles() map[berth.Ref]berth.Trouble {
	found := map[berth.Ref]berth.Trouble{}
	if c == nil {
		return found
	}
	for _, cycle := range slices.Backward(c.Cycles) {
		for _, l := range cycle.Links {
			t := berth.Trouble{Level: berth.LevelStuck, Why: string(InCycle), Claim: l.Wait.ID(), Node: l.Wait.Node(), Possible: !cycle.Certain}
			if t.Possible { // two goroutines of a process may wait for each other's holds, and for their own: that is work
				t.Level = berth.LevelBusy
			}
			found[berth.Ref{Kind: l.Wait.Kind, Name: l.Wait.Name}] = t
		}
	}
	return found
}

// mark has a name be in a cycle if it is in one, was held and waited for when it was read, and is not in a worse state.
func mark(n *berth.Name, cycles map[berth.Ref]berth.Trouble) {
	if t, in := cycles[berth.Ref{Kind: n.Kind, Name: n.Name}]; in && n.Live() > 0 && n.Holders > 0 && t.Level.Compare(n.Trouble.Level) <= 0 {
		n.Trouble = t
	}
}

// Marked tells of the names of a page which of them are in a cycle, as a search has found it that was made beside: no reading of
// a name sees that. nil is for no search.
//
// An Overview has Mark for that.
func Marked(page *Page[berth.Name], c *Cycles) {
	cycles := c.troubles()
	for i := range page.Items {
		n, was := &page.Items[i], page.Items[i].Trouble.Level
		if mark(n, cycles); n.Trouble.Level == berth.LevelStuck && was != berth.LevelStuck {
			page.Stuck++
		}
	}
}

// trouble is that of the name, by all that a snapshot tells.
func (s *snapshot) trouble() berth.Trouble {
	t := trouble(&s.Name, s.Entries, deadOf(s.nodes), func(h *berth.Holder) bool {
		c := s.Among(h.ID)
		return c != nil && c.Hold != nil && s.process(c.Hold) == Overdue
	})
	for _, w := range s.Lanes {
		switch i, known := s.Items[w.Resource]; {
		case t.Level == berth.LevelStuck || !s.alive(w) || !w.Until.IsZero():
		case known && i.Damaged:
			return berth.Trouble{Level: berth.LevelStuck, Why: string(OneDamaged), Claim: w.ID, Node: w.Node}
		case !known || i.Absent:
			return berth.Trouble{Level: berth.LevelStuck, Why: string(OneAbsent), Claim: w.ID, Node: w.Node}
		}
	}
	return t
}
