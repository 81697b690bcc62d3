package line

import (
	"context"
	"strconv"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// weighed is how many expired holds Count weighs at most.
const weighed = 1000

// How much of the line a sweep looks at for claims that died waiting.
const (
	lookAtPart = "0"
	lookAtAll  = "1"
	lookOn     = "2" // what is left of all
)

// Counts are what a name looked like at one moment.
type Counts struct {
	// Held is the weight of all holds together.
	Held int
	// Holders is how many holds that is.
	Holders int
	// Waiting is how many claims wait in line; some may have died there since the last look.
	Waiting int
	// Expired is how many holds have expired and were not swept yet.
	Expired int
	// Capacity is the stored capacity, 0 for a name that is not known.
	Capacity int
}

// Count runs claim_stats, which only reads. It is repeated by Config.Retry. Of the
// expired holds 1000 are weighed; any beyond count as of weight 1, so that Held may
// be too high.
func (s *Calls) Count(ctx context.Context, name string) (Counts, error) {
	r, err := s.Run(ctx, s.stats, scriptkit.Bounded, name, strconv.Itoa(weighed))
	if err != nil {
		return Counts{}, err
	}
	if r.Status() != statusStats {
		return Counts{}, Unexpected(name, &r)
	}
	counts := Counts{
		Capacity: int(r.Int(1)), Held: int(r.Int(2)), Holders: int(r.Int(3)), Waiting: int(r.Int(4)), Expired: int(r.Int(5)),
	}
	return counts, r.Err()
}

// Sweep runs the kind's sweep once.
func (s *Calls) Sweep(ctx context.Context, name string) (engine.NextDeadline, error) {
	_, next, err := s.sweepOnce(ctx, name, scriptkit.Once, lookAtPart)
	return next, err
}

// SweepAll drops all that has expired, and returns how much that was, beside an error
// too. Calls are repeated by Config.Retry.
func (s *Calls) SweepAll(ctx context.Context, name string) (int, error) {
	for all, look := 0, lookAtAll; ; look = lookOn {
		dropped, next, err := s.sweepOnce(ctx, name, scriptkit.Bounded, look)
		all += dropped
		if err != nil || !next.More {
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
func (s *Calls) sweepOnce(ctx context.Context, name string, mode scriptkit.Mode, look string) (int, engine.NextDeadline, error) {
	r, err := s.Run(ctx, s.sweep, mode, name, s.ID, look)
	if err != nil {
		return 0, engine.NextDeadline{}, err
	}
	if r.Status() != statusSwept {
		return 0, engine.NextDeadline{}, Unexpected(name, &r)
	}
	dropped := int(r.Int(4))
	s.Tell.Swept(ctx, name, dropped)
	if s.cfg.Swept != nil {
		s.cfg.Swept(name, Texts(&r, 5))
	}
	return dropped, nextDeadline(&r), r.Err()
}
