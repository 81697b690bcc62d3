package inspect

import (
	"errors"
	"time"

	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// moment is one of the server's clock, zero for none and for never.
func moment(ms int64) time.Time {
	if ms >= state.Forever {
		return time.Time{}
	}
	return state.Instant(ms)
}

// filled is what a reading found, as the rules look at it. The error is that of the server.
func (r *Reader) filled(of *reader.Snapshot, all notice.Field) (*snapshot, error) {
	s := &snapshot{
		Kind: of.Kind, Namespace: r.namespace, Name: of.Name, At: of.At, Replica: of.Replica, Moving: of.Moving,
		Known: of.Known, Capacity: of.Capacity, Held: of.Held, Waiting: of.Waiting,
		HoldsLeft: of.HoldsLeft, LineLeft: of.LineLeft, LanesLeft: of.ApartLeft, Damaged: of.Damaged,
	}
	if p := of.Pause.Under(all, s.At.UnixMilli()); p.Until > 0 {
		s.Pause = &pause{Until: state.Instant(p.Until), Reason: p.Reason}
	}
	var format *state.FormatError
	if errors.As(of.Err, &format) {
		s.Newer = -1
		if format.Number > 0 {
			s.Newer = int(format.Number)
		}
		return s, nil
	} else if of.Err != nil {
		return nil, of.Err
	}
	if s.Kind == keyspace.Lock {
		s.Held = len(of.Holds) + of.HoldsLeft
	}
	for i := range of.Holds {
		s.Holds = append(s.Holds, holdOf(of, &of.Holds[i]))
	}
	s.Line, s.Lanes, s.Bindings = of.Line, of.Apart, of.Bindings
	s.Asked = map[string]*found{}
	for claim, asked := range of.Asked {
		s.Asked[claim] = foundOf(of, &asked)
	}
	if of.Pool != nil {
		s.Pool = &pool{
			Resources: of.Capacity, Free: of.Pool.Free, Leased: of.Held, Resting: of.Pool.Resting, Leaving: of.Pool.Leaving,
			RestsLeft: of.RestsLeft, Leaves: state.Instant(of.Leaves), Filled: of.Filled, Refresh: state.Instant(of.Refresh),
		}
		s.Items = of.Items
	}
	return s, nil
}

func holdOf(of *reader.Snapshot, h *reader.Held) hold {
	r := &h.Record
	found := hold{
		Holder: h.Holder, Deadline: moment(h.Ends), Limit: r.Limit, Phase: r.Phase, Wait: r.Wait, Reach: r.Reach,
		Fresh: h.Fresh, Called: h.Called, Renewed: state.Instant(h.Since), Wanted: r.Wanted,
	}
	if of.Group != nil {
		found.More = state.Millis(of.Group.More)
	}
	if w, err := state.ParseWants(r.Extra); err == nil && of.Kind == keyspace.Pool {
		found.Cooldown, found.Alone, found.Shared = state.Millis(w.Cooldown), w.Alone, w.Shared
	}
	return found
}

func foundOf(of *reader.Snapshot, asked *reader.Asked) *found {
	c := &found{Record: asked.Word, Wait: asked.Wait, Rank: asked.Rank}
	if asked.Hold != nil {
		h := holdOf(of, asked.Hold)
		c.Hold = &h
	}
	return c
}
