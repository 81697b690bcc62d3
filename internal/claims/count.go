package claims

import (
	"context"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Counts are what a name looked like at one moment.
type Counts struct {
	// Dropped is how many expired entries the call has dropped.
	Dropped int
	// Held is the weight of all holds together.
	Held int
	// Holders is how many holds that is.
	Holders int
	// Waiting is how many claims wait in line.
	Waiting int
	// Capacity is the stored capacity, 0 for a name that is not known.
	Capacity int
}

// Sweep sends claim_sweep once.
func (s *Calls) Sweep(ctx context.Context, name string) (engine.Tide, error) {
	_, tide, err := s.sweepOnce(ctx, name, scriptkit.Once)
	return tide, err
}

// SweepOnce drops what has expired, as much as one script does, and returns how
// much that was. Calls are repeated by Config.Retry.
func (s *Calls) SweepOnce(ctx context.Context, name string) (int, error) {
	counts, _, err := s.sweepOnce(ctx, name, scriptkit.Bounded)
	return counts.Dropped, err
}

// Count drops what has expired, however much it is, and counts. Calls are
// repeated by Config.Retry. The counts are zero with an error.
func (s *Calls) Count(ctx context.Context, name string) (Counts, error) {
	dropped := 0
	for {
		counts, tide, err := s.sweepOnce(ctx, name, scriptkit.Bounded)
		if err != nil {
			return Counts{}, err
		}
		dropped += counts.Dropped
		if !tide.More {
			counts.Dropped = dropped
			return counts, nil
		}
	}
}

// SweepOn sweeps for as long as a script has stopped at its bound; more says
// whether the last one has.
func (s *Calls) SweepOn(ctx context.Context, name string, more bool) error {
	if !more {
		return nil
	}
	_, err := s.Count(ctx, name)
	return err
}

// sweepOnce sends one claim_sweep, which counts as well.
func (s *Calls) sweepOnce(ctx context.Context, name string, mode scriptkit.Mode) (Counts, engine.Tide, error) {
	r, err := s.Run(ctx, s.sweep, mode, name, s.Node, s.Linger, s.Channel, name)
	if err != nil {
		return Counts{}, engine.Tide{}, err
	}
	if r.Status() != statusSwept {
		return Counts{}, engine.Tide{}, Unexpected(name, &r)
	}
	counts := Counts{
		Dropped: int(r.Int(1)), Held: int(r.Int(2)), Holders: int(r.Int(3)), Waiting: int(r.Int(4)), Capacity: int(r.Int(5)),
	}
	s.Tell.Swept(name, counts.Dropped)
	tide := Tide(&r, 6, 8)
	return counts, tide, r.Err()
}
