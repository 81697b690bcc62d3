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
	return s.sweepOnce(ctx, name, scriptkit.Once, lookAtPart)
}

// SweepAll drops all that has expired, and returns how much that was, beside an error
// too. Calls are repeated by Config.Retry.
func (s *Calls) SweepAll(ctx context.Context, name string) (int, error) {
	var rounds engine.Rounds
	for all, look := 0, lookAtAll; ; look = lookOn {
		next, err := s.sweepOnce(ctx, name, scriptkit.Bounded, look)
		all += next.Dropped
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
func (s *Calls) sweepOnce(ctx context.Context, name string, mode scriptkit.Mode, look string) (engine.NextDeadline, error) {
	r, err := s.Run(ctx, s.sweep, mode, name, s.ID, look)
	if err != nil {
		return engine.NextDeadline{}, err
	}
	if r.Status() != statusSwept {
		return engine.NextDeadline{}, Unexpected(name, &r)
	}
	next := nextDeadline(&r)
	next.Dropped = int(r.Int(4))
	s.Tell.Swept(ctx, name, next.Dropped)
	if s.cfg.Swept != nil {
		s.cfg.Swept(name, Texts(&r, 5))
	}
	return next, r.Err()
}
