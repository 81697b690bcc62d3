package line

import (
	"context"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// How much of the line a sweep looks at for claims that died waiting.
const (
	lookAtPart = "0"
	lookAtAll  = "1"
	lookOn     = "2" // what is left of all
)

// Sweep runs the kind's sweep once.
func (s *Calls) Sweep(ctx context.Context, name string) (engine.NextDeadline, error) {
	_, next, err := s.sweepOnce(ctx, name, scriptkit.Once, lookAtPart)
	return next, err
}

// SweepAll drops all that has expired, and returns how much that was, beside an error
// too. Calls are repeated by Config.Retry.
func (s *Calls) SweepAll(ctx context.Context, name string) (int, error) {
	var rounds engine.Rounds
	for all, look := 0, lookAtAll; ; look = lookOn {
		dropped, next, err := s.sweepOnce(ctx, name, scriptkit.Bounded, look)
		all += dropped
		if err != nil || !rounds.Next(&next) {
			return all, err
		}
	}
}

// SweepOn sweeps for as long as a script has stopped at its bound; more says
// whether the last one has.
func (s *Calls) SweepOn(ctx context.Context, name string, more bool) error {
	if !more {
		return nil
	}
	_, err := s.SweepAll(ctx, name)
	return err
}

// sweepOnce runs one sweep.
func (s *Calls) sweepOnce(ctx context.Context, name string, mode scriptkit.Mode, look string) (dropped int, next engine.NextDeadline, err error) {
	defer s.recovers("sweep", &err)
	r, err := s.Run(ctx, s.kind.Scripts.Sweep, mode, name, s.ID, look)
	if err != nil {
		return 0, engine.NextDeadline{}, err
	}
	if r.Status() != statusSwept {
		return 0, engine.NextDeadline{}, Unexpected(name, &r)
	}
	dropped = int(r.Int(4))
	told := Texts(&r, 5)
	s.Tell.Swept(ctx, name, dropped)
	if s.kind.Swept != nil {
		s.kind.Swept(name, told)
	}
	next = nextDeadline(&r)
	next.Dropped = dropped + len(told)
	return dropped, next, r.Err()
}
