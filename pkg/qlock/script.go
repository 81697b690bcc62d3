package qlock

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// calls is one node: what only locks say to their scripts and hear of them. With the
// calls that every kind has it is the engine's Scripts.
type calls struct {
	*line.Calls

	// over is closed when the client has another node, or is closed.
	over chan struct{}

	requeue, force, extend, info *scriptkit.Script
}

var (
	_ engine.Scripts  = (*calls)(nil)
	_ engine.Requeuer = (*calls)(nil)
)

// newCalls makes a node of the client, with an id of its own.
func newCalls(c *Client) *calls {
	lib := line.Library()
	node := engine.NodeID()
	s := &calls{
		Calls: line.New(line.Config{
			Runner: c.run, Space: c.space, Kind: keyspace.Lock, Scripts: "lock", Node: node, Clock: c.clock, Linger: c.cfg.Linger,
			Tell: c.tell, Swarm: func() time.Duration { return c.swarm.limit(node) },
		}),
		over:    make(chan struct{}),
		requeue: lib.Script("lock_requeue"),
		force:   lib.Script("lock_force_hold"),
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

// The statuses of the scripts that only locks have; a test compares them with the headers.
const (
	statusReleased   = "released"
	statusNotHeld    = "not_held"
	statusOther      = "other"
	statusNotWaiting = "not_waiting"
	statusExtended   = "extended"
	statusInfo       = "info"
)

// Acquire sends lock_acquire once.
func (s *calls) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	q, _ := c.Request.(request) // none for the trial of Check
	wait := line.Flag(c.MayWait)
	if c.MayWait && q.endless {
		wait = "2"
	}
	a, extra, err := s.Calls.Acquire(ctx, c, wait, q.text(c.Record.Owner))
	a.Capacity = 0 // a lock has none
	if err == nil && extra != "" {
		a.Entry, err = entry(extra)
	}
	if r := a.Refused; r != nil && q.single && (r.Reason == berth.ReasonHeld || r.Reason == berth.ReasonQueuedAhead) {
		r.Reason = berth.ReasonAttempts
	}
	return a, err
}

// text says how a claim of an owner asks, as scripts/owner/ask.lua reads it.
func (q *request) text(owner string) string {
	if owner == "" && q.access == Queued {
		return ""
	}
	return fmt.Sprintf("%s %s %d %s", q.conflict, q.access, q.draw, owner)
}

// entry reads the terms of an entry of an owner that held the lock already, as
// scripts/owner/reentered.lua writes them.
func entry(text string) (*engine.Entry, error) {
	var lease, limit, extends, common int64
	var kind string
	if _, err := fmt.Sscanf(text, "%d %s %d %d %d", &lease, &kind, &limit, &extends, &common); err != nil {
		return nil, fmt.Errorf("berth: the terms of an entry, %q, cannot be read: %w", text, err)
	}
	e := &engine.Entry{
		Terms:   engine.Terms{Lease: line.Millis(lease), NoRenew: kind == "f"},
		Extends: line.Millis(extends), Common: line.Left(common),
	}
	if e.Lease == 0 {
		e.Lease = berth.Forever
	}
	if limit >= 0 {
		e.MaxHold = max(line.Millis(limit), time.Millisecond)
	}
	return e, nil
}

// Release sends lock_release, repeated by Config.Retry.
func (s *calls) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	p, extra, err := s.Calls.Release(ctx, c, stays, c.Heralded()...)
	if err == nil && p.Word == engine.GivenBack && extra != "" {
		p.Entries, err = strconv.Atoi(extra)
	}
	return p, err
}

// Requeue sends lock_requeue once.
func (s *calls) Requeue(ctx context.Context, c *engine.Claim) (a engine.Answer, ok bool, err error) {
	r, err := s.Write(ctx, s.requeue, scriptkit.Once, c.Name,
		s.Node, c.ID, line.Decimal(c.Ticket()), line.Lane(c.Record.Priority))
	if err != nil || r.Status() == statusNotWaiting {
		return a, false, err
	}
	a, err = line.Requeued(c.Name, &r)
	return a, err == nil, err
}
