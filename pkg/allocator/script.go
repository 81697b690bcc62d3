package allocator

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/claims"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// calls is the only place that runs the pool's own scripts for a claim: typed
// arguments in, typed results out. With those that all lines share it is the
// engine's Scripts. What is asked of a pool without a claim is in poolcalls.go.
type calls struct {
	*claims.Calls
	client *Client

	acquire, release, swapping, counting          *scriptkit.Script
	adding, removing, replacing, resting, binding *scriptkit.Script
	bindings, resources, refreshing, inspecting   *scriptkit.Script
	holding, mending                              *scriptkit.Script
}

var _ engine.Scripts = (*calls)(nil)

func newCalls(c *Client, node string) *calls {
	lib := claims.Library()
	run := scriptkit.NewRunner(c.redis, scriptkit.Options{
		Retry: c.cfg.Retry, CallTimeout: c.cfg.CallTimeout, OnRetry: c.tell.Repeated,
	})
	return &calls{
		Calls: claims.New(claims.Config{
			Runner: run, Space: c.space, Kind: keyspace.Pool, Node: node, Linger: c.cfg.Linger, Tell: c.tell,
			Renew: lib.Script("pool_renew"), Resume: lib.Script("pool_resume"), Restore: lib.Script("pool_restore"),
			Sweep: lib.Script("pool_sweep"), Force: lib.Script("pool_force_release"),
			Parts: []string{keyspace.ItemsPart, keyspace.FreePart, keyspace.BindingsPart}, Resources: true,
			Request: func() any { return &request{} }, Empty: c.empty,
			Swept: func(name string, r *scriptkit.Reply) { c.calls.found(name, r) },
		}),
		client:     c,
		acquire:    lib.Script("pool_acquire"),
		release:    lib.Script("pool_release"),
		swapping:   lib.Script("pool_swap"),
		counting:   lib.Script("pool_stats"),
		adding:     lib.Script("pool_add"),
		removing:   lib.Script("pool_remove"),
		replacing:  lib.Script("pool_replace"),
		resting:    lib.Script("pool_rest"),
		binding:    lib.Script("pool_bind"),
		bindings:   lib.Script("pool_bindings"),
		resources:  lib.Script("pool_resources"),
		refreshing: lib.Script("pool_refresh"),
		inspecting: lib.Script("pool_inspect"),
		holding:    lib.Script("pool_holds"),
		mending:    lib.Script("pool_mend"),
	}
}

// The statuses of the pool's own scripts that are read here; a test compares
// them, and those of internal/claims, with the headers.
const (
	statusGranted    = "granted"
	statusQueued     = "queued"
	statusFull       = "full"
	statusAhead      = "ahead"
	statusGone       = "gone"
	statusForeign    = "foreign"
	statusSwapped    = "swapped"
	statusNotHeld    = "not_held"
	statusTaken      = "taken"
	statusStats      = "stats"
	statusAdded      = "added"
	statusRemoved    = "removed"
	statusSeen       = "seen"
	statusBegun      = "begun"
	statusSuperseded = "superseded"
	statusRested     = "rested"
	statusAbsent     = "absent"
	statusBound      = "bound"
	statusUnbound    = "unbound"
	statusPage       = "page"
	statusTurn       = "turn"
	statusLater      = "later"
	statusPart       = "part"
)

// request is what only a pool's own scripts need of a claim.
type request struct {
	only string // the only resource that will do, "" for any

	mu     sync.Mutex
	rest   time.Duration // guarded by mu: how long the resource rests when it is given back
	reason string        // guarded by mu: why
	asked  int           // guarded by mu: how often that was said
	left   bool          // guarded by mu: the resource has left the pool with its release
}

// ask has the resource rest when it is given back.
func (q *request) ask(rest time.Duration, reason string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.rest, q.reason = rest, reason
	q.asked++
}

// take returns what was asked for, and forgets it: it is for the resource that is given
// back now. back says that this one stays after all.
func (q *request) take() (rest time.Duration, reason string, back func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	rest, reason, asked := q.rest, q.reason, q.asked
	q.rest, q.reason = 0, ""
	return rest, reason, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.asked == asked {
			q.rest, q.reason = rest, reason
		}
	}
}

// resting is how long the resource is to rest, and why.
func (q *request) resting() (time.Duration, string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.rest, q.reason
}

// forever is how the scripts are told of a rest without an end: 2^44 - 1.
const forever = 1<<44 - 1

// restMillis is a rest as the scripts count it, rounded up.
func restMillis(d time.Duration) int64 {
	if d == berth.Forever {
		return forever
	}
	return min(int64(math.Ceil(float64(d)/float64(time.Millisecond))), forever)
}

// Acquire sends pool_acquire once.
func (s *calls) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	q := c.Request.(*request)
	wait := "0"
	if c.MayWait {
		wait = "1"
	}
	r, err := s.Run(ctx, s.acquire, scriptkit.Once, c.Name,
		c.ID, s.Node, c.Record.Tail(), strconv.Itoa(c.Record.Priority),
		claims.Decimal(c.Record.Wait.Milliseconds()), claims.Decimal(c.Record.LeaseMillis()),
		claims.Decimal(c.Record.MaxHold.Milliseconds()), q.only, wait, s.Linger, s.Channel, c.Name)
	if err != nil {
		return engine.Answer{}, err
	}
	a := engine.Answer{Tide: engine.Tide{Next: -1}}
	switch r.Status() {
	case statusGranted:
		a.Granted, a.Ticket, a.Fence, a.Left, a.Confirmed = true, r.Int(1), r.Int(2), claims.Left(r.Int(3)), r.Int(4) == 1
		a.Capacity, a.Tide.More, a.Resource = int(r.Int(5)), r.Int(6) == 1, r.Str(7)
	case statusQueued:
		a.Ticket, a.Place, a.Left, a.Ahead = r.Int(1), r.Int(2), claims.Millis(r.Int(3)), int(r.Int(4))
		a.Capacity = int(r.Int(7))
		a.Tide = claims.Tide(&r, 5, 8)
	case statusFull, statusAhead:
		a.Refused, a.Tide.More = s.refusal(c.Name, &r)
		a.Capacity = a.Refused.Capacity
	case statusGone:
		a.Refused = &berth.AcquireError{Reason: berth.ReasonGone}
	case statusForeign:
		a.Refused = &berth.AcquireError{Reason: berth.ReasonFailed, Cause: fmt.Errorf("berth: the claim's id is on record for another node")}
	default:
		return a, claims.Unexpected(c.Name, &r)
	}
	if !a.Granted && a.Capacity == 0 {
		s.client.empty(c.Name)
	}
	return a, r.Err()
}

// refusal reads the replies that nothing is free, or that others wait.
func (s *calls) refusal(name string, r *scriptkit.Reply) (refused *berth.AcquireError, more bool) {
	refused = &berth.AcquireError{
		Reason: berth.ReasonFull, Capacity: int(r.Int(1)), Held: int(r.Int(2)), Waiting: int(r.Int(3)), Swept: int(r.Int(4)),
	}
	switch {
	case r.Status() == statusAhead:
		refused.Reason = berth.ReasonQueuedAhead
	case refused.Capacity == 0:
		refused.Reason = berth.ReasonEmpty
	case refused.Held == 0:
		refused.Reason = berth.ReasonResting
	}
	s.Tell.Swept(name, refused.Swept)
	return refused, r.Int(5) == 1
}

// Release sends pool_release, repeated by Config.Retry.
func (s *calls) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	q := c.Request.(*request)
	rest, reason := q.resting()
	if c.Loose() {
		rest = 0 // its handle is still in use
	}
	r, err := s.Run(ctx, s.release, scriptkit.Bounded, c.Name,
		c.ID, s.Node, claims.Decimal(stays.Milliseconds()), claims.Decimal(restMillis(rest)), reason, s.Linger, s.Channel, c.Name,
		claims.Decimal(c.Fence()))
	if err != nil {
		return engine.Parting{}, err
	}
	parting, err := claims.Parting(c.Name, &r)
	if err == nil && parting.Word == engine.GivenBack {
		q.mu.Lock()
		q.left = r.Int(3) == 0
		q.mu.Unlock()
		if rest > 0 && r.Int(3) == 1 && parting.Fence == c.Fence() {
			parting.Then = func() { s.rested(c, c.Resource(), rest, reason) }
		}
	}
	return parting, err
}

// found tells of the damaged resources that a sweep was the first to tell of.
func (s *calls) found(name string, r *scriptkit.Reply) {
	for _, resource := range texts(r, 5) {
		s.Tell.Send(observe.Event{Kind: observe.Damaged, Name: name, Resource: resource})
	}
}

// rested tells that a resource rests as its holder has asked.
func (s *calls) rested(c *engine.Claim, resource string, rest time.Duration, reason string) {
	s.Engine.Event(observe.Rested, c, func(ev *observe.Event) { ev.Resource, ev.Left, ev.Detail = resource, rest, reason })
}

// swap sends pool_swap once. left says that the old resource has left the pool.
func (s *calls) swap(ctx context.Context, c *engine.Claim, rest time.Duration, reason string) (x engine.Exchanged, left bool, err error) {
	r, err := s.Run(ctx, s.swapping, scriptkit.Once, c.Name,
		c.ID, s.Node, claims.Decimal(c.Fence()), claims.Decimal(restMillis(rest)), reason, s.Linger, s.Channel, c.Name)
	if err != nil {
		return x, false, err
	}
	switch r.Status() {
	case statusSwapped:
		x.Fence, x.Resource, x.More = r.Int(1), r.Str(2), r.Int(4) == 1
		left = r.Int(5) == 0
	case statusFull, statusAhead:
		refused, more := s.refusal(c.Name, &r)
		refused.Name, refused.Claim = c.Name, c.ID
		x.Refused, x.More = refused, more
	case statusNotHeld:
		x.Ended = berth.ErrLost
		if r.Str(1) != "" {
			x.Ended = berth.ErrReleased // by an operator
		}
	case statusTaken:
		x.Ended = berth.ErrReleased
	default:
		return x, false, claims.Unexpected(c.Name, &r)
	}
	return x, left, r.Err()
}
