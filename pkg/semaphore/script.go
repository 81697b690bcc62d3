package semaphore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// kind has the scripts, arguments and replies that are specific to semaphores.
var kind = line.Kind{
	Kind: keyspace.Sem,
	Scripts: line.Scripts{
		Acquire: composed.SemaphoreAcquire, Release: composed.SemaphoreRelease, Renew: composed.SemaphoreRenew, Resume: composed.SemaphoreResume,
		Restore: composed.SemaphoreRestore, Sweep: composed.SemaphoreSweep, ForceRelease: composed.SemaphoreForceRelease, Pause: composed.SemaphorePause,
		Want: composed.SemaphoreWant,
	},
	AcquireArgs: acquireArgs, AcquireReply: acquireReply,
}

// The statuses of the scripts that are specific to semaphores; a test compares them with the
// headers.
const (
	statusResized = "resized"
	statusAbsent  = "absent"
	statusStale   = "stale"
)

// acquireArgs returns the arguments that are specific to semaphore_acquire: the policy for
// another stored capacity, and the capacity.
func acquireArgs(claim *engine.Claim) (waits, policy string, own []string) {
	waits = line.Flag(claim.MayWait)
	if s, _ := claim.Request.(*Semaphore); s != nil { // nil for the trial of Check
		return waits, s.policy.String(), s.calm
	}
	return waits, CapacityStored.String(), []string{state.Calm(claim.Capacity)}
}

// acquireReply adds the cause of a refusal, and compares the stored capacity.
func acquireReply(claim *engine.Claim, a engine.Answer, _ string) (engine.Answer, error) {
	reason := berth.Reason("")
	if a.Refused != nil {
		reason = a.Refused.Reason
	}
	switch reason {
	case berth.ReasonTooHeavy:
		a.Refused.Cause = berth.Invalid("Weight", "%d is above the stored capacity, %d", claim.Record.Weight, a.Capacity)
	case berth.ReasonCapacity:
		a.Refused.Cause = berth.Invalid("capacity", "%d is not the stored one, %d", claim.Capacity, a.Capacity)
	case berth.ReasonGone, berth.ReasonFailed:
	default:
		if s, _ := claim.Request.(*Semaphore); s != nil {
			s.stored(claim, a.Capacity)
		}
	}
	return a, nil
}

// resize runs semaphore_resize, and continues the sweep if the script stopped at its limit.
func resize(ctx context.Context, f *line.Face, name string, capacity int, opts ResizeOptions) error {
	seen, err := f.Revision(ctx, "Resize", name)
	if err != nil {
		return err
	}
	r, err := f.Run(ctx, composed.SemaphoreResize, scriptkit.Bounded, name,
		strconv.Itoa(capacity), line.Flag(opts.Keep), line.Flag(opts.Create), line.Decimal(seen), f.Engine.ClaimID())
	if err != nil {
		return err
	}
	switch r.Status() {
	case statusResized:
	case statusAbsent:
		return fmt.Errorf("%w: %q", berth.ErrAbsent, name)
	case statusStale:
		stale, _ := line.Stale(name, &r)
		if r.Err() != nil {
			return r.Err()
		}
		return stale
	default:
		return line.Unexpected(name, &r)
	}
	before, held, waiting, more := r.Int(1), r.Int(2), r.Int(3), line.More(&r, 4)
	if r.Err() != nil {
		return r.Err()
	}
	f.Tell.Send(observe.Event{
		Kind: observe.Resized, Context: ctx, Name: name, Capacity: capacity, Count: int(before),
		Detail: fmt.Sprintf("held %d, waiting %d", held, waiting),
	})
	return f.SweepOn(ctx, name, more)
}

// stored compares the stored capacity with the claim's, and reports a different one once.
func (s *Semaphore) stored(claim *engine.Claim, capacity int) {
	if capacity == claim.Capacity {
		return
	}
	if before, told := s.differs.Swap(claim.Name, capacity); told && before == capacity {
		return
	}
	s.face().Tell.Send(observe.Event{
		Kind: observe.CapacityDiffers, Context: claim.Caller(), Name: claim.Name, Claim: claim.ID, Owner: claim.Record.Owner,
		Capacity: capacity, Count: claim.Capacity, Attrs: claim.Attrs,
	})
}
