package reader

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Row is a semaphore, a lock or a pool as it was when it was read. One that is not there has no Capacity. One of the kind
// once has nothing but Runs.
type Row struct {
	Kind     keyspace.Kind
	Name     string
	Capacity int // stored; of a lock 1; of a pool its resources, those that are leaving included
	Held     int // weight of all holds; of a lock 1 or 0; of a pool the resources that are leased
	Holders  int // how many claims hold; of a lock the entries of its owner
	Waiting  int // how many wait; dead ones that no script has met yet may be among them
	Expired  int // holds, and resources, that have ended and are not dropped yet; the other counts leave them out
	// Oldest is how long the longest of the holds that were read is held.
	Oldest  time.Duration
	Longest *berth.Holder // who holds since then, nil for nobody
	// First are the first in line of each priority, the highest first; with Random and LIFO others may
	// have waited longer. One whose Alive is 0 is dead.
	First []berth.Waiter
	// Partial: not all was read. Holds may be older than Oldest, more priorities wait, and of what has
	// expired some may be counted as if it had not.
	Partial         bool
	Pause           Pause       // its own; one of all names is in the notice
	Fence, Revision int64       // of the last grant; of the last call of an operator, 0 for none
	Lock            *Lock       // of a lock that is held
	Pool            *Pool       // of a pool that is there
	Runs            *state.Runs // of the kind once, if anything is kept
	Replica, Moving bool
	At              time.Time
	Err             error // nothing else is known of it

	entries []Found[berth.Holder]
}

// Lock is who has a lock, and what its owner did.
type Lock struct {
	Owner           string        // the claim's id where no owner was given
	Claim, Label    string        // of the outermost entry
	Left            time.Duration // if nothing renews it; berth.Forever for no end
	Reentries       int           // entries that were made after the first
	WorkedThroughAt time.Time     // when the last WorkThrough was granted
	Extended        time.Duration // what ExtendAndWorkThrough has added in all
	LastLease       time.Duration // of the last one
	ExtendedAt      time.Time     // when that one was granted
}

// Pool are the counts that only a pool has: those that a sweep would leave.
type Pool struct {
	Free, Resting, Leaving int
	Apart                  int // how many of Waiting wait for one resource
	Settings               state.Settings
}

// longest notes who has held longest.
func (n *Row) longest(found []Found[berth.Holder]) {
	for i := range found {
		if h := &found[i]; h.Err == nil && (n.Longest == nil || h.Entry.Held > n.Oldest) {
			n.Oldest, n.Longest = h.Entry.Held, &h.Entry
		}
	}
}

// Ref is a name of a kind.
type Ref struct {
	Kind keyspace.Kind
	Name string
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
		return Row{Kind: kind, Name: name, Err: err}, err
	}
	return found.of(t, moving), nil
}

// of completes what a turn has read.
func (n Row) of(t *turn, moving bool) Row {
	n.Kind, n.Name, n.Replica, n.Moving, n.At = t.kind, t.name, t.replica, moving, t.at()
	return n
}

// Rows reads names that lie on one server, up to k holds and as many expired entries of each. node is
// that server's client; nil for one name. Of a name that moves no second reading is made. An error is that of all.
func (r *Reader) Rows(ctx context.Context, node rueidis.Client, k int, refs ...Ref) ([]Row, error) {
	rows := make([]Row, len(refs))
	return wholly(rows, r.each(ctx, "names", node, refs, func(i int, t *turn) error {
		moving, err := t.again(1, func() (still bool, err error) {
			rows[i], still, err = t.row(k)
			return still, err
		})
		rows[i] = rows[i].of(t, moving)
		return err
	}, func(i int, t *turn, err error) { rows[i] = Row{Kind: t.kind, Name: t.name, Err: err} }))
}

// runs asks for what is kept of runs, nil for nothing. That is one hash, so never torn.
func (t *turn) runs() (*state.Runs, error) {
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
	return &runs, nil
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
	n.entries = []Found[berth.Holder]{{Entry: h, Err: err}}
	n.longest(n.entries)
	if t.kind == keyspace.Lock {
		n.Lock = lockOf(nil, n.entries)
	}
	return n, nil
}
