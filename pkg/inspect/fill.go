package inspect

import (
	"errors"

	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

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
	s.Holds, s.Line, s.Lanes, s.Bindings, s.Group, s.Asked = of.Holds, of.Line, of.Apart, of.Bindings, of.Group, of.Asked
	if of.Pool != nil {
		s.Pool = &pool{
			Resources: of.Capacity, Free: of.Pool.Free, Leased: of.Held, Resting: of.Pool.Resting, Leaving: of.Pool.Leaving,
			RestsLeft: of.RestsLeft, Leaves: state.Instant(of.Leaves), Filled: of.Filled, Refresh: state.Instant(of.Refresh),
		}
		s.Items = of.Items
	}
	return s, nil
}
