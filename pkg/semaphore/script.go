package semaphore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// calls is the only place that runs the semaphore's scripts: typed arguments
// in, typed results out. It is the engine's Scripts.
type calls struct {
	client  *Client
	run     *scriptkit.Runner
	node    string
	linger  string
	channel string // what the scripts put before a node's id

	acquire, release, renew, restoring, sweep, resizing, forcing, resuming, holders, waiters *scriptkit.Script
}

var _ engine.Scripts = (*calls)(nil)

func newCalls(c *Client, node string) *calls {
	lib := library()
	return &calls{
		client:  c,
		node:    node,
		linger:  strconv.FormatInt(c.cfg.Linger.Milliseconds(), 10),
		channel: c.space.Wake(""),
		run: scriptkit.NewRunner(c.redis, scriptkit.Options{
			Retry: c.cfg.Retry, CallTimeout: c.cfg.CallTimeout, OnRetry: c.repeated,
		}),
		acquire:   lib.Script("semaphore_acquire"),
		release:   lib.Script("semaphore_release"),
		renew:     lib.Script("semaphore_renew"),
		restoring: lib.Script("semaphore_restore"),
		sweep:     lib.Script("semaphore_sweep"),
		resizing:  lib.Script("semaphore_resize"),
		forcing:   lib.Script("semaphore_force_release"),
		resuming:  lib.Script("semaphore_resume"),
		holders:   lib.Script("semaphore_holders"),
		waiters:   lib.Script("semaphore_waiters"),
	}
}

// The statuses of the semaphore's scripts; a test compares them with the
// headers.
const (
	statusGranted      = "granted"
	statusQueued       = "queued"
	statusFull         = "full"
	statusAhead        = "ahead"
	statusTooHeavy     = "too_heavy"
	statusDiffers      = "differs"
	statusGone         = "gone"
	statusForeign      = "foreign"
	statusIncompatible = "incompatible"
	statusReleased     = "released"
	statusCancelled    = "cancelled"
	statusExpired      = "expired"
	statusNotHeld      = "not_held"
	statusTaken        = "taken"
	statusRenewed      = "renewed"
	statusRestored     = "restored"
	statusSwept        = "swept"
	statusResized      = "resized"
	statusResumed      = "resumed"
	statusAttached     = "attached"
	statusPage         = "page"
)

// toldReleased is the word of a tombstone that a force call left.
const toldReleased = "released"

func (s *calls) keys(name string) []string {
	return []string{s.client.space.State(keyspace.Sem, name), s.client.space.Line(keyspace.Sem, name)}
}

// incompatible is the error for a state that a newer release has written.
func incompatible(name string, format int64) error {
	return fmt.Errorf("%w: the state of %q has format %d, which this release does not know", berth.ErrIncompatible, name, format)
}

// unexpected is the error for a status that Go does not know; the tests keep
// both sides equal.
func unexpected(name string, reply *scriptkit.Reply) error {
	if reply.Status() == statusIncompatible {
		return incompatible(name, reply.Int(1))
	}
	return fmt.Errorf("berth: unexpected status %q for %q", reply.Status(), name)
}

func millis(n int64) string { return strconv.FormatInt(n, 10) }

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// left reads milliseconds that are left, where -1 stands for no end.
func left(n int64) time.Duration {
	if n < 0 {
		return -1
	}
	return ms(n)
}

// tideAt reads next_ms and first at i, and more at j.
func tideAt(r *scriptkit.Reply, i, j int) engine.Tide {
	return engine.Tide{Next: left(r.Int(i)), First: r.Int(i+1) == 1, More: r.Int(j) == 1}
}

// Acquire sends semaphore_acquire once.
func (s *calls) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	wait := "0"
	if c.MayWait {
		wait = "1"
	}
	r, err := s.run.Run(ctx, s.acquire, scriptkit.Once, s.keys(c.Name), []string{
		c.ID, s.node, c.Record.Tail(), strconv.Itoa(c.Record.Weight), strconv.Itoa(c.Record.Priority),
		millis(c.Record.Wait.Milliseconds()), millis(c.Record.LeaseMillis()), millis(c.Record.MaxHold.Milliseconds()),
		strconv.Itoa(c.Capacity), s.client.cfg.CapacityPolicy.String(), wait, s.linger, s.channel, c.Name,
	})
	if err != nil {
		return engine.Answer{}, err
	}
	a := engine.Answer{Tide: engine.Tide{Next: -1}}
	switch r.Status() {
	case statusGranted:
		a.Granted, a.Ticket, a.Fence, a.Left, a.Confirmed = true, r.Int(1), r.Int(2), left(r.Int(3)), r.Int(4) == 1
		a.Capacity = int(r.Int(5))
		s.client.stored(c, a.Capacity)
		a.Tide.More = r.Int(6) == 1
	case statusQueued:
		a.Ticket, a.Place, a.Left, a.Ahead = r.Int(1), r.Int(2), ms(r.Int(3)), int(r.Int(4))
		a.Capacity = int(r.Int(7))
		s.client.stored(c, a.Capacity)
		a.Tide = tideAt(&r, 5, 8)
	case statusFull, statusAhead:
		a.Refused = refusal(berth.ReasonFull, &r)
		a.Refused.Swept = int(r.Int(4))
		s.client.swept(c.Name, a.Refused.Swept)
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
		return a, unexpected(c.Name, &r)
	}
	return a, r.Err()
}

// refusal reads the counts that the refusing replies share.
func refusal(reason berth.Reason, r *scriptkit.Reply) *berth.AcquireError {
	return &berth.AcquireError{Reason: reason, Capacity: int(r.Int(1)), Held: int(r.Int(2)), Waiting: int(r.Int(3))}
}

// Release sends semaphore_release, repeated by Config.Retry.
func (s *calls) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	r, err := s.run.Run(ctx, s.release, scriptkit.Bounded, s.keys(c.Name), []string{
		c.ID, s.node, strconv.FormatInt(stays.Milliseconds(), 10), s.linger, s.channel, c.Name,
	})
	if err != nil {
		return engine.Parting{}, err
	}
	p := engine.Parting{Word: engine.Released(r.Status()), Unanswered: r.Unanswered}
	switch r.Status() {
	case statusReleased, statusCancelled, statusExpired:
		p.More = r.Int(1) == 1
	case statusNotHeld:
		if r.Str(1) == toldReleased {
			p.Word = engine.ForceReleased
		}
	case statusTaken:
	default:
		return p, unexpected(c.Name, &r)
	}
	return p, r.Err()
}

// Beat sends semaphore_renew once.
func (s *calls) Beat(ctx context.Context, name string, mode engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	args := make([]string, 0, 4+2*len(claims))
	args = append(args, s.node, s.linger, s.channel, name)
	for _, c := range claims {
		args = append(args, c.ID, string(c.Mode(mode)))
	}
	r, err := s.run.Run(ctx, s.renew, scriptkit.Once, s.keys(name), args)
	if err != nil {
		return engine.Round{}, err
	}
	if r.Status() != statusRenewed {
		return engine.Round{}, unexpected(name, &r)
	}
	const fixed, each = 5, 3
	round := engine.Round{Tide: tideAt(&r, 1, 4), Status: make([]engine.Status, len(claims))}
	for i := range claims {
		at := fixed + each*i
		round.Status[i] = engine.Status{Word: engine.Word(r.Str(at)), Left: left(r.Int(at + 1)), Fence: r.Int(at + 2)}
	}
	return round, r.Err()
}

// Restore sends semaphore_restore once.
func (s *calls) Restore(ctx context.Context, name string, claims []*engine.Claim) (engine.Round, error) {
	args := make([]string, 0, 5+3*len(claims))
	args = append(args, s.node, strconv.Itoa(claims[0].Capacity), s.linger, s.channel, name)
	for _, c := range claims {
		place, text := c.Standing()
		args = append(args, c.ID, strconv.FormatInt(place, 10), text)
	}
	r, err := s.run.Run(ctx, s.restoring, scriptkit.Once, s.keys(name), args)
	if err != nil {
		return engine.Round{}, err
	}
	if r.Status() != statusRestored {
		return engine.Round{}, unexpected(name, &r)
	}
	const fixed = 5
	round := engine.Round{Tide: tideAt(&r, 1, 4), Status: make([]engine.Status, len(claims))}
	for i := range claims {
		round.Status[i] = engine.Status{Word: engine.Word(r.Str(fixed + i))}
	}
	return round, r.Err()
}

// Sweep sends semaphore_sweep once.
func (s *calls) Sweep(ctx context.Context, name string) (engine.Tide, error) {
	_, tide, err := s.count(ctx, name, scriptkit.Once)
	return tide, err
}

// count sends semaphore_sweep, which counts as well.
func (s *calls) count(ctx context.Context, name string, mode scriptkit.Mode) (Stats, engine.Tide, error) {
	r, err := s.run.Run(ctx, s.sweep, mode, s.keys(name), []string{s.node, s.linger, s.channel, name})
	if err != nil {
		return Stats{}, engine.Tide{}, err
	}
	if r.Status() != statusSwept {
		return Stats{}, engine.Tide{}, unexpected(name, &r)
	}
	stats := Stats{
		Name: name, Swept: int(r.Int(1)), Held: int(r.Int(2)), Holders: int(r.Int(3)),
		Waiting: int(r.Int(4)), Capacity: int(r.Int(5)),
	}
	s.client.swept(name, stats.Swept)
	tide := tideAt(&r, 6, 8)
	return stats, tide, r.Err()
}

// resize sends semaphore_resize, and sweeps on where it stopped at its bound.
func (s *calls) resize(ctx context.Context, name string, capacity int, keep bool) error {
	kept := "0"
	if keep {
		kept = "1"
	}
	r, err := s.run.Run(ctx, s.resizing, scriptkit.Bounded, s.keys(name), []string{
		strconv.Itoa(capacity), kept, s.linger, s.channel, name,
	})
	if err != nil {
		return err
	}
	if r.Status() != statusResized {
		return unexpected(name, &r)
	}
	before, held, waiting, more := r.Int(1), r.Int(2), r.Int(3), r.Int(4) == 1
	if r.Err() != nil {
		return r.Err()
	}
	s.client.event(observe.Event{
		Kind: observe.Resized, Name: name, Capacity: capacity, Count: int(before),
		Detail: fmt.Sprintf("held %d, waiting %d", held, waiting),
	})
	return s.sweepOn(ctx, name, more)
}

// sweepOn sweeps for as long as a script has stopped at its bound.
func (s *calls) sweepOn(ctx context.Context, name string, more bool) error {
	for more {
		_, tide, err := s.count(ctx, name, scriptkit.Bounded)
		if err != nil {
			return err
		}
		more = tide.More
	}
	return nil
}

// forceRelease sends semaphore_force_release.
func (s *calls) forceRelease(ctx context.Context, name, id string) error {
	stays := s.client.engine.Tombstone()
	r, err := s.run.Run(ctx, s.forcing, scriptkit.Bounded, s.keys(name), []string{
		id, strconv.FormatInt(stays.Milliseconds(), 10), s.linger, s.channel, name,
	})
	if err != nil {
		return err
	}
	result := error(nil)
	switch r.Status() {
	case statusReleased, statusCancelled:
	case statusExpired:
		result = berth.ErrExpired
	case statusNotHeld:
		if r.Unanswered && r.Str(1) == toldReleased {
			return nil // an earlier attempt of this very call
		}
		return berth.ErrNotHeld
	default:
		return unexpected(name, &r)
	}
	more := r.Int(1) == 1
	if r.Err() != nil {
		return r.Err()
	}
	s.client.event(observe.Event{Kind: observe.ForceReleased, Name: name, Claim: id, Count: 1, Detail: r.Status()})
	if err := s.sweepOn(ctx, name, more); err != nil {
		return err
	}
	return result
}

// resume sends semaphore_resume, and has the hold kept from now on.
func (s *calls) resume(ctx context.Context, token berth.Token) (*engine.Hold, error) {
	if !s.client.engine.Begin() {
		return nil, berth.ErrClosed
	}
	defer s.client.engine.End()
	start := s.client.engine.Now()
	r, err := s.run.Run(ctx, s.resuming, scriptkit.Bounded, s.keys(token.Name), []string{
		token.Claim, token.Node, s.node, s.linger, s.channel, token.Name,
	})
	if err != nil {
		return nil, err
	}
	switch r.Status() {
	case statusResumed:
	case statusAttached: // by an attempt of this call or of an earlier one, or still in use
	case statusNotHeld:
		if r.Str(1) == toldReleased {
			return nil, berth.ErrReleased
		}
		return nil, berth.ErrNotHeld
	case statusTaken:
		return nil, berth.ErrReleased
	default:
		return nil, unexpected(token.Name, &r)
	}
	span, limit := left(r.Int(1)), r.Int(2)
	record, err := engine.ParseRecord(r.Str(3))
	if r.Err() != nil {
		return nil, r.Err()
	}
	if err != nil {
		return nil, err
	}
	if r.Status() == statusAttached && (record.Node != s.node || !r.Unanswered && !s.client.engine.MayAdopt(token.Claim)) {
		return nil, berth.Invalid("token", "the permit is not detached")
	}
	if limit > 0 {
		record.MaxHold = ms(limit) // what is left of it, from this call on
	}
	claim := &engine.Claim{ID: token.Claim, Name: token.Name, Record: record, Capacity: record.Weight}
	return s.client.engine.Adopt(ctx, claim, start, record.Fence, span)
}
