package qlock

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/claims"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// calls is one node, and the only place that runs the lock's own scripts: typed
// arguments in, typed results out. With those that all lines share it is the
// engine's Scripts.
type calls struct {
	*claims.Calls

	// over is closed when the client has another node, or is closed.
	over chan struct{}

	acquire, release, requeue, force, extend, info *scriptkit.Script
}

var (
	_ engine.Scripts  = (*calls)(nil)
	_ engine.Requeuer = (*calls)(nil)
)

// newCalls makes a node of the client, with an id of its own.
func newCalls(c *Client) *calls {
	lib := claims.Library()
	node := engine.NodeID()
	s := &calls{
		Calls: claims.New(claims.Config{
			Runner: c.run, Space: c.space, Kind: keyspace.Lock, Node: node, Linger: c.cfg.Linger, Tell: c.tell,
			Renew: lib.Script("lock_renew"), Resume: lib.Script("lock_resume"),
			Swarm: func() time.Duration { return c.swarm.limit(node) },
		}),
		over:    make(chan struct{}),
		acquire: lib.Script("lock_acquire"),
		release: lib.Script("lock_release"),
		requeue: lib.Script("lock_requeue"),
		force:   lib.Script("lock_force_release"),
		extend:  lib.Script("lock_extend"),
		info:    lib.Script("lock_info"),
	}
	s.Engine = engine.New(engine.Config{
		Redis: c.redis, Scripts: s, Node: node, Channel: c.space.Wake(node),
		Wait: c.cfg.Lease, CallTimeout: c.cfg.CallTimeout, CleanupTimeout: c.cfg.CleanupTimeout,
		WarnAfter: max(c.cfg.WarnHeldLongerThan, 0), Retry: c.cfg.Retry, Observe: s.Tell, Clock: c.clock,
		Passed: func() bool { return c.swarm.passed(node) },
		Settle: func(ctx context.Context) { c.swarm.s.Settle(ctx, node) },
	})
	return s
}

// The statuses of the lock's own scripts that are read here; a test compares
// them, and those of internal/claims, with the headers.
const (
	statusGranted    = "granted"
	statusReentered  = "reentered"
	statusQueued     = "queued"
	statusHeld       = "held"
	statusAhead      = "ahead"
	statusCrowded    = "crowded"
	statusDeadlock   = "deadlock"
	statusGone       = "gone"
	statusForeign    = "foreign"
	statusReleased   = "released"
	statusNotHeld    = "not_held"
	statusOther      = "other"
	statusRequeued   = "requeued"
	statusNotWaiting = "not_waiting"
	statusExtended   = "extended"
	statusInfo       = "info"
)

// Acquire sends lock_acquire once.
func (s *calls) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	q, _ := c.Request.(request) // none for the trial of Check
	wait := "0"
	if c.MayWait && q.endless {
		wait = "2"
	} else if c.MayWait {
		wait = "1"
	}
	r, err := s.Run(ctx, s.acquire, scriptkit.Once, c.Name,
		c.ID, s.Node, c.Record.Tail(), c.Record.Owner, q.conflict.String(),
		q.access.String(), strconv.Itoa(c.Record.Priority), strconv.FormatUint(uint64(q.draw), 10),
		claims.Decimal(c.Record.Wait.Milliseconds()), claims.Decimal(c.Record.LeaseMillis()),
		claims.Decimal(c.Record.MaxHold.Milliseconds()), wait, s.Linger, s.Channel, c.Name)
	if err != nil {
		return engine.Answer{}, err
	}
	a := engine.Answer{Tide: engine.Tide{Next: -1}}
	switch r.Status() {
	case statusGranted, statusReentered:
		a.Granted, a.Ticket, a.Fence, a.Left, a.Confirmed = true, r.Int(1), r.Int(2), claims.Left(r.Int(3)), r.Int(4) == 1
		a.Tide.More = r.Int(5) == 1
		if r.Status() == statusReentered {
			a.Entry = entry(&r)
		}
	case statusQueued:
		a.Ticket, a.Place, a.Left, a.Ahead = r.Int(1), r.Int(2), claims.Millis(r.Int(3)), int(r.Int(4))
		a.Tide = claims.Tide(&r, 5, 7)
	case statusHeld, statusAhead, statusCrowded, statusDeadlock:
		s.refused(&a, c.Name, q.single, &r)
	case statusGone:
		a.Refused = &berth.AcquireError{Reason: berth.ReasonGone}
	case statusForeign:
		a.Refused = &berth.AcquireError{Reason: berth.ReasonFailed, Cause: fmt.Errorf("berth: the claim's id is on record for another node")}
	default:
		return a, claims.Unexpected(c.Name, &r)
	}
	return a, r.Err()
}

// entry reads the terms of an entry of an owner that held the lock already.
func entry(r *scriptkit.Reply) *engine.Entry {
	e := &engine.Entry{
		Terms:   engine.Terms{Lease: claims.Millis(r.Int(6)), NoRenew: r.Str(7) == "f"},
		Extends: claims.Millis(r.Int(9)), Common: claims.Left(r.Int(10)),
	}
	if e.Lease == 0 {
		e.Lease = berth.Forever
	}
	if limit := r.Int(8); limit >= 0 {
		e.MaxHold = max(claims.Millis(limit), time.Millisecond)
	}
	return e
}

// refused reads the refusing replies.
func (s *calls) refused(a *engine.Answer, name string, single bool, r *scriptkit.Reply) {
	a.Refused = &berth.AcquireError{Held: int(r.Int(1)), Waiting: int(r.Int(2)), Swept: int(r.Int(3))}
	a.Tide.More = r.Int(4) == 1
	s.Tell.Swept(name, a.Refused.Swept)
	switch r.Status() {
	case statusDeadlock:
		a.Refused.Reason, a.Refused.Cause = berth.ReasonDeadlock, berth.ErrDeadlock
		return
	case statusCrowded:
		a.Refused.Reason, a.Refused.Cause = berth.ReasonTooManyEntries, berth.ErrTooManyEntries
		return
	case statusAhead:
		a.Refused.Reason = berth.ReasonQueuedAhead
	default:
		a.Refused.Reason = berth.ReasonHeld
	}
	if single {
		a.Refused.Reason = berth.ReasonAttempts
	}
}

// Release sends lock_release, repeated by Config.Retry.
func (s *calls) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	args := []string{c.ID, s.Node, claims.Decimal(stays.Milliseconds()), s.Linger, s.Channel, c.Name}
	r, err := s.Run(ctx, s.release, scriptkit.Bounded, c.Name, append(args, c.Heralded()...)...)
	if err != nil {
		return engine.Parting{}, err
	}
	parting, err := claims.Parting(c.Name, &r)
	if err != nil {
		return parting, err
	}
	if r.Status() == statusReleased {
		parting.Entries = int(r.Int(3))
	}
	return parting, r.Err()
}

// Requeue sends lock_requeue once.
func (s *calls) Requeue(ctx context.Context, c *engine.Claim) (a engine.Answer, ok bool, err error) {
	r, err := s.Run(ctx, s.requeue, scriptkit.Once, c.Name,
		c.ID, s.Node, claims.Decimal(c.Ticket()), strconv.Itoa(c.Record.Priority), s.Linger, s.Channel, c.Name)
	if err != nil {
		return a, false, err
	}
	switch r.Status() {
	case statusRequeued:
		a.Ticket, a.Place, a.Left, a.Ahead = r.Int(1), r.Int(2), claims.Millis(r.Int(3)), int(r.Int(4))
		a.Tide = claims.Tide(&r, 5, 7)
		return a, true, r.Err()
	case statusNotWaiting:
		return a, false, nil
	}
	return a, false, claims.Unexpected(c.Name, &r)
}
