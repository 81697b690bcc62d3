package semaphore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/claims"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// calls is the only place that runs the semaphore's own scripts: typed
// arguments in, typed results out. With those that all lines share it is the
// engine's Scripts.
type calls struct {
	*claims.Calls
	client *Client

	acquire, release, resizing *scriptkit.Script
}

var _ engine.Scripts = (*calls)(nil)

func newCalls(c *Client, node string) *calls {
	lib := claims.Library()
	run := scriptkit.NewRunner(c.redis, scriptkit.Options{
		Retry: c.cfg.Retry, CallTimeout: c.cfg.CallTimeout, OnRetry: c.tell.Repeated,
	})
	return &calls{
		Calls: claims.New(claims.Config{
			Runner: run, Space: c.space, Kind: keyspace.Sem, Node: node, Linger: c.cfg.Linger, Tell: c.tell,
			Renew: lib.Script("semaphore_renew"), Resume: lib.Script("semaphore_resume"),
		}),
		client:   c,
		acquire:  lib.Script("semaphore_acquire"),
		release:  lib.Script("semaphore_release"),
		resizing: lib.Script("semaphore_resize"),
	}
}

// The statuses of the semaphore's own scripts that are read here; a test
// compares them, and those of internal/claims, with the headers.
const (
	statusGranted  = "granted"
	statusQueued   = "queued"
	statusFull     = "full"
	statusAhead    = "ahead"
	statusTooHeavy = "too_heavy"
	statusDiffers  = "differs"
	statusGone     = "gone"
	statusForeign  = "foreign"
	statusResized  = "resized"
	statusAbsent   = "absent"
)

// Acquire sends semaphore_acquire once.
func (s *calls) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	wait := "0"
	if c.MayWait {
		wait = "1"
	}
	r, err := s.Run(ctx, s.acquire, scriptkit.Once, c.Name,
		c.ID, s.Node, c.Record.Tail(), strconv.Itoa(c.Record.Weight), strconv.Itoa(c.Record.Priority),
		claims.Decimal(c.Record.Wait.Milliseconds()), claims.Decimal(c.Record.LeaseMillis()),
		claims.Decimal(c.Record.MaxHold.Milliseconds()),
		strconv.Itoa(c.Capacity), s.client.cfg.CapacityPolicy.String(), wait, s.Linger, s.Channel, c.Name)
	if err != nil {
		return engine.Answer{}, err
	}
	a := engine.Answer{Tide: engine.Tide{Next: -1}}
	switch r.Status() {
	case statusGranted:
		a.Granted, a.Ticket, a.Fence, a.Left, a.Confirmed = true, r.Int(1), r.Int(2), claims.Left(r.Int(3)), r.Int(4) == 1
		a.Capacity = int(r.Int(5))
		s.client.stored(c, a.Capacity)
		a.Tide.More = r.Int(6) == 1
	case statusQueued:
		a.Ticket, a.Place, a.Left, a.Ahead = r.Int(1), r.Int(2), claims.Millis(r.Int(3)), int(r.Int(4))
		a.Capacity = int(r.Int(7))
		s.client.stored(c, a.Capacity)
		a.Tide = claims.Tide(&r, 5, 8)
	case statusFull, statusAhead:
		a.Refused = refusal(berth.ReasonFull, &r)
		a.Refused.Swept = int(r.Int(4))
		s.Tell.Swept(c.Name, a.Refused.Swept)
		a.Tide.More = r.Int(5) == 1
		if r.Status() == statusAhead {
			a.Refused.Reason = berth.ReasonQueuedAhead
		}
		s.client.stored(c, a.Refused.Capacity)
	case statusTooHeavy:
		a.Refused = refusal(berth.ReasonTooHeavy, &r)
		a.Refused.Cause = berth.Invalid("Weight", "%d is above the stored capacity, %d", c.Record.Weight, a.Refused.Capacity)
	case statusDiffers:
		a.Refused = refusal(berth.ReasonCapacity, &r)
		a.Refused.Cause = berth.Invalid("capacity", "%d is not the stored one, %d", c.Capacity, a.Refused.Capacity)
	case statusGone:
		a.Refused = &berth.AcquireError{Reason: berth.ReasonGone}
	case statusForeign:
		a.Refused = &berth.AcquireError{Reason: berth.ReasonFailed, Cause: fmt.Errorf("berth: the claim's id is on record for another node")}
	default:
		return a, claims.Unexpected(c.Name, &r)
	}
	return a, r.Err()
}

// refusal reads the counts that the refusing replies share.
func refusal(reason berth.Reason, r *scriptkit.Reply) *berth.AcquireError {
	return &berth.AcquireError{Reason: reason, Capacity: int(r.Int(1)), Held: int(r.Int(2)), Waiting: int(r.Int(3))}
}

// Release sends semaphore_release, repeated by Config.Retry.
func (s *calls) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	r, err := s.Run(ctx, s.release, scriptkit.Bounded, c.Name,
		c.ID, s.Node, claims.Decimal(stays.Milliseconds()), s.Linger, s.Channel, c.Name)
	if err != nil {
		return engine.Parting{}, err
	}
	return claims.Parting(c.Name, &r)
}

// resize sends semaphore_resize, and sweeps on where it stopped at its bound.
func (s *calls) resize(ctx context.Context, name string, capacity int, opts ResizeOptions) error {
	flag := map[bool]string{true: "1", false: "0"}
	r, err := s.Run(ctx, s.resizing, scriptkit.Bounded, name,
		strconv.Itoa(capacity), flag[opts.Keep], s.Linger, s.Channel, name, flag[opts.Create])
	if err != nil {
		return err
	}
	switch r.Status() {
	case statusResized:
	case statusAbsent:
		return fmt.Errorf("%w: %q", ErrAbsent, name)
	default:
		return claims.Unexpected(name, &r)
	}
	before, held, waiting, more := r.Int(1), r.Int(2), r.Int(3), r.Int(4) == 1
	if r.Err() != nil {
		return r.Err()
	}
	s.Tell.Send(observe.Event{
		Kind: observe.Resized, Name: name, Capacity: capacity, Count: int(before),
		Detail: fmt.Sprintf("held %d, waiting %d", held, waiting),
	})
	return s.SweepOn(ctx, name, more)
}
