package semaphore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// calls is what only semaphores say to their scripts and hear of them. With the calls that
// every kind has it is the engine's Scripts.
type calls struct {
	*line.Calls
	client   *Client
	resizing *scriptkit.Script
}

var _ engine.Scripts = (*calls)(nil)

func newCalls(c *Client, node string, watch clock.Clock) *calls {
	run := scriptkit.NewRunner(c.redis, scriptkit.Options{
		Retry: c.cfg.Retry, CallTimeout: c.cfg.CallTimeout, OnRetry: c.tell.Repeated,
	})
	return &calls{
		Calls: line.New(line.Config{
			Runner: run, Space: c.space, Kind: keyspace.Sem, Scripts: "semaphore", Node: node, Clock: watch, Linger: c.cfg.Linger, Tell: c.tell,
		}),
		client:   c,
		resizing: line.Library().Script("semaphore_resize"),
	}
}

// The statuses of the scripts that only semaphores have; a test compares them with the
// headers.
const (
	statusResized = "resized"
	statusAbsent  = "absent"
)

// Acquire sends semaphore_acquire once.
func (s *calls) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	a, _, err := s.Calls.Acquire(ctx, c, line.Flag(c.MayWait),
		strconv.Itoa(c.Capacity), s.client.cfg.CapacityPolicy.String())
	if err != nil {
		return a, err
	}
	reason := berth.Reason("")
	if a.Refused != nil {
		reason = a.Refused.Reason
	}
	switch reason {
	case berth.ReasonTooHeavy:
		a.Refused.Cause = berth.Invalid("Weight", "%d is above the stored capacity, %d", c.Record.Weight, a.Capacity)
	case berth.ReasonCapacity:
		a.Refused.Cause = berth.Invalid("capacity", "%d is not the stored one, %d", c.Capacity, a.Capacity)
	case berth.ReasonGone, berth.ReasonFailed:
	default:
		s.client.stored(c, a.Capacity)
	}
	return a, nil
}

// Release sends semaphore_release, repeated by Config.Retry.
func (s *calls) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	p, _, err := s.Calls.Release(ctx, c, stays)
	return p, err
}

// resize sends semaphore_resize, and sweeps on where it stopped at its bound.
func (s *calls) resize(ctx context.Context, name string, capacity int, opts ResizeOptions) error {
	r, err := s.Write(ctx, s.resizing, scriptkit.Bounded, name,
		strconv.Itoa(capacity), line.Flag(opts.Keep), line.Flag(opts.Create))
	if err != nil {
		return err
	}
	switch r.Status() {
	case statusResized:
	case statusAbsent:
		return fmt.Errorf("%w: %q", ErrAbsent, name)
	default:
		return line.Unexpected(name, &r)
	}
	before, held, waiting, more := r.Int(1), r.Int(2), r.Int(3), line.More(&r, 4)
	if r.Err() != nil {
		return r.Err()
	}
	s.Tell.Send(observe.Event{
		Kind: observe.Resized, Name: name, Capacity: capacity, Count: int(before),
		Detail: fmt.Sprintf("held %d, waiting %d", held, waiting),
	})
	return s.SweepOn(ctx, name, more)
}
