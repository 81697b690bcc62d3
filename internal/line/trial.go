package line

import (
	"context"
	"time"

	"github.com/berth-go/berth/internal/engine"
)

// Trial goes through the scripts of an uncontended claim, on a name of its own: those of a thin
// name, and with a lease that a thin name does not take the kind's own. calls are the
// primitive's, lease and label its client's.
func (s *Calls) Trial(ctx context.Context, calls engine.Scripts, lease time.Duration, label string) error {
	for _, length := range []time.Duration{lease, 2 * lease} {
		claim := &engine.Claim{
			ID: s.Engine.ClaimID(), Name: "berth check " + s.Node, Capacity: 1,
			Record: engine.Record{Weight: 1, Wait: lease, Lease: length, Phase: 'w', Node: s.Node, Label: label},
		}
		if _, err := calls.Acquire(ctx, claim); err != nil {
			return err
		}
		if _, err := calls.Beat(ctx, claim.Name, engine.ModeBeat, []*engine.Claim{claim}); err != nil {
			return err
		}
		if _, err := calls.Release(ctx, claim, 0); err != nil {
			return err
		}
	}
	return nil
}
