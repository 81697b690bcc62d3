package reader

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Row is a name as it was read. Its Pause is not known yet: see Under.
type Row struct {
	berth.Name
	Own     Pause                 // its own; one of all names is in the notice
	Entries []Found[berth.Holder] // the holds that were read
}

// Under is the name while all names of its kind are paused by a notice, with its Pause.
func (n *Row) Under(all notice.Field) berth.Name {
	found := n.Name
	if n.Err == nil {
		found.Pause = n.Own.Under(all, n.At.UnixMilli())
	}
	return found
}

// longest notes who has held longest.
func (n *Row) longest(found []Found[berth.Holder]) {
	for i := range found {
		if h := &found[i]; h.Err == nil && (n.Longest == nil || h.Entry.Held > n.Oldest) {
			n.Oldest, n.Longest = h.Entry.Held, &h.Entry
		}
	}
}

// deadIf counts a claim that waits if it is dead.
func (n *Row) deadIf(w *berth.Waiter) {
	if w.Alive <= 0 {
		n.Dead++
	}
}

// Name reads one name. Its errors are berth.ErrInvalidConfig for a bad name, berth.ErrIncompatible,
// state.ErrDamaged, or the server's.
func (r *Reader) Name(ctx context.Context, kind keyspace.Kind, name string) (Row, error) {
	var found Row
	t, moving, err := r.alone(ctx, "name", kind, name, tries, func(t *turn) (still bool, err error) {
		found, still, err = t.row(held)
		return still, err
	})
	if err != nil {
		return unread(kind, name, err), err
	}
	return found.of(t, moving), nil
}

// unread is a name of which nothing else is known.
func unread(kind keyspace.Kind, name string, err error) Row {
	return Row{Name: berth.Name{Kind: kind, Name: name, Err: err}}
}

// of completes what a turn has read.
func (n Row) of(t *turn, moving bool) Row {
	if t.replica {
		n.Dead = 0 // it may lag behind those who call
	}
	n.Kind, n.Name.Name, n.Replica, n.Moving, n.At = t.kind, t.name, t.replica, moving, t.at()
	return n
}

// Rows reads names that lie on one server, up to k holds and as many expired entries of each. node is
// that server's client; nil for one name. Of a name that moves no second reading is made. form is what is known of each, which
// the reading goes by and mends; nil for nothing. An error is that of all.
func (r *Reader) Rows(ctx context.Context, node rueidis.Client, k int, form func(berth.Ref) *Form, refs ...berth.Ref) ([]Row, error) {
	rows := make([]Row, len(refs))
	return wholly(rows, r.each(ctx, "names", node, refs, func(i int, t *turn) error {
		if form != nil {
			t.form = form(refs[i])
		}
		moving, err := t.again(1, func() (still bool, err error) {
			rows[i], still, err = t.row(k)
			return still, err
		})
		rows[i] = rows[i].of(t, moving)
		return err
	}, func(i int, t *turn, err error) { rows[i] = unread(t.kind, t.name, err) }))
}

// runs asks for what is kept of runs, nil for nothing. That is one hash, so never torn.
func (t *turn) runs() (*berth.RunsInfo, error) {
	var p trip
	fields := p.fields(t.key(keyspace.StatePart), "", state.RunsFields...)
	if err := t.ask(&p); err != nil {
		return nil, err
	}
	values := p.texts(fields)
	if p.err != nil {
		return nil, p.err
	}
	runs, err := state.ParseRuns(t.name, values)
	if err != nil || runs == (state.Runs{}) {
		return nil, err
	}
	return runsOf(&runs), nil
}

func runsOf(r *state.Runs) *berth.RunsInfo {
	var found berth.RunsInfo
	if run := r.Run; run != nil {
		found = berth.RunsInfo{Outcome: run.Outcome, Begun: state.Instant(run.Begun), Label: run.Label, Fence: run.Fence}
		if run.Ended > 0 {
			found.Ended = state.Instant(run.Ended)
		}
	}
	of, more := r.Run, int64(0)
	switch {
	case r.Success != nil:
		of, more, found.Success = r.Success, 1, state.Instant(r.Success.Ended)
	case r.Run.Outcome == state.RunBegun:
		more = 1
	}
	every := of.Over - of.Start
	found.Due, found.Every = state.Instant(of.Over+more*every), state.Millis(every)
	return &found
}

// text asks for the text of a thin name, unless the name is known to be none.
func (t *turn) text() (text string, thin bool, err error) {
	if t.knows() {
		return "", false, nil
	}
	key := t.key(keyspace.StatePart)
	if letter, known := t.long.letter(key, ""); known && !t.decide {
		return letter, true, nil
	}
	var p trip
	mget := p.add("MGET", key)
	if err := t.ask(&p); err != nil {
		return "", false, err
	}
	all, err := p.result(mget).ToArray()
	if err != nil || all[0].IsNil() {
		return "", false, err
	}
	text, err = all[0].ToString()
	return t.long.whole(key, text), true, err
}

// slight is the row of a thin name: one text, so never torn.
func (t *turn) slight(text string) (n Row, err error) {
	thin, number, ok := state.ParseThin(text)
	if !ok || t.kind == keyspace.Pool { // no pool is thin
		return n, t.odd("string", number)
	}
	n.Capacity, n.Fence = 1, thin.Fence
	if thin.Claim == "" {
		return n, nil
	} else if thin.Ends <= t.now {
		n.Expired = 1
		return n, nil
	}
	n.Held, n.Holders = 1, 1
	h, err := Holder(t.name, thin.Claim, t.at(), thin.Ends, thin.Record)
	n.Entries = []Found[berth.Holder]{{Entry: h, Err: err}}
	n.longest(n.Entries)
	if t.kind == keyspace.Lock {
		n.Lock = lockOf(nil, n.Entries)
	}
	return n, nil
}
