package reader

import (
	"context"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Claim is one claim of a name: it holds, it waits, it has ended not long ago, or it is not known.
type Claim struct {
	Holder *berth.Holder
	Waiter *berth.Waiter // a dead one, too: Alive is 0
	// Ended is what became of a claim that has left a tombstone, gone or released; "" for others.
	Ended           string
	Replica, Moving bool
	Now             int64 // when it was read (ms by the server's clock)
}

// Claim reads one claim of a name. Its errors are those of Name.
func (r *Reader) Claim(ctx context.Context, kind keyspace.Kind, name, id string) (Claim, error) {
	var c Claim
	t, moving, err := r.alone(ctx, "claim", kind, name, tries, func(t *turn) (still bool, err error) {
		c, still, err = t.claim(id)
		return still, err
	})
	if err != nil {
		return Claim{}, err
	}
	c.Replica, c.Moving, c.Now = t.replica, moving, t.now
	return c, nil
}

func (t *turn) claim(id string) (c Claim, still bool, err error) {
	text, thin, err := t.text()
	if err != nil {
		return c, false, err
	} else if thin {
		n, err := t.slight(text)
		if err == nil && len(n.Entries) > 0 && n.Entries[0].Entry.ID == id {
			c.Holder, err = &n.Entries[0].Entry, n.Entries[0].Err
		}
		return c, true, err
	}
	var p trip
	fields, line := t.key(keyspace.StatePart), t.key(keyspace.LinePart)
	values := p.marks(t)
	known, ends := p.add("HMGET", fields, "c:"+id, "r:"+id, "q:"+id), p.scores(line, "h:", id)
	if err := t.ask(&p); err != nil {
		return c, false, err
	}
	before, there, err := t.read(&p, values)
	if err != nil || !there {
		return c, true, err
	}
	texts := p.texts(known)
	switch record, held := texts[0], deadline(p.at(ends)[0]); {
	case p.err != nil || record == "":
		return c, true, p.err
	case record[0] == '!':
		c.Ended = state.Brief(record[1:])
	case state.Waits(record):
		return t.waiting(id, texts, before)
	case held > t.now:
		h, err := Holder(t.name, id, t.at(), held, record)
		h.Resource = resource(texts[1])
		c.Holder = &h
		return c, true, err
	}
	return c, true, nil
}

// waiting is a claim that waits.
func (t *turn) waiting(id string, texts []string, before marks) (c Claim, still bool, err error) {
	w, r, err := Waiter(t.name, id, t.at(), texts[0])
	if err != nil {
		return c, true, err
	}
	if w.Resource = ""; texts[2] != "" {
		if w.BindWait, w.Resource, err = t.bindWait(texts[2]); err != nil {
			return c, true, err
		}
	}
	var p trip
	line, place := t.key(keyspace.LinePart), r.Place+"-"+id
	rank, lane := p.add("ZRANK", line, place), p.scores(line, "", place)
	values := p.marksLast(t)
	if err := t.ask(&p); err != nil {
		return c, false, err
	}
	now, _, err := t.read(&p, values)
	if err != nil {
		return c, false, err
	}
	if score := p.at(lane)[0]; score != absent {
		w.Ahead = int(p.int(rank))
		if score > state.LastLane {
			w.Ahead, err = t.aheadApart(w.Ahead, score)
		}
	}
	c.Waiter = &w
	if err == nil {
		err = p.err
	}
	return c, before.still(now), err
}

// aheadApart is how many stand before a rank in its own lane.
func (t *turn) aheadApart(rank int, lane int64) (int, error) {
	var p trip
	before := p.add("ZCOUNT", t.key(keyspace.LinePart), "-inf", "("+number(lane))
	if err := t.ask(&p); err != nil {
		return 0, err
	}
	return rank - int(p.int(before)), p.err
}

// Revision is how far the changes of a name by operators are, 0 for none. Its errors are those of Name.
func (r *Reader) Revision(ctx context.Context, kind keyspace.Kind, name string) (revision int64, err error) {
	_, _, err = r.alone(ctx, "revision", kind, name, 1, func(t *turn) (bool, error) {
		var p trip
		thin, values := p.add("MGET", t.key(keyspace.StatePart)), p.marks(t)
		if err := t.ask(&p); err != nil {
			return false, err
		}
		if text := p.texts(thin)[0]; text != "" {
			_, err := t.slight(text)
			return true, err
		}
		m, _, err := t.read(&p, values)
		revision = m.values.Revision
		return true, err
	})
	return revision, err
}
