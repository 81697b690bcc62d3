package qlock

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/rs/xid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// kind has the scripts, arguments and replies that are specific to locks.
var kind = line.Kind{
	Kind: keyspace.Lock,
	Scripts: line.Scripts{
		Acquire: composed.LockAcquire, Release: composed.LockRelease, Renew: composed.LockRenew, Resume: composed.LockResume,
		Restore: composed.LockRestore, Sweep: composed.LockSweep, ForceRelease: composed.LockForceRelease, Pause: composed.LockPause,
		Want: composed.LockWant, Requeue: composed.LockRequeue, ForceHold: composed.LockForceHold,
	},
	AcquireArgs: acquireArgs, AcquireReply: acquireReply, ReleaseArgs: (*engine.Claim).Heralded, ReleaseReply: releaseReply,
}

// The statuses of the scripts that are specific to locks; a test compares them with the
// headers.
const (
	statusNotHeld  = "not_held"
	statusOther    = "other"
	statusExtended = "extended"
)

// acquireArgs returns the arguments that are specific to lock_acquire: whether the claim may
// wait, and its options as scripts/owner/ask.lua reads them.
func acquireArgs(c *engine.Claim) (waits, policy string, own []string) {
	q, _ := c.Request.(*ask) // nil for the trial of Check
	if q == nil {
		return line.Flag(c.MayWait), "-", []string{""}
	}
	waits, text := line.Flag(c.MayWait), ""
	if c.MayWait && q.endless {
		waits = "2"
	}
	if owner := c.Record.Owner; owner != "" || q.access != Queued {
		text = fmt.Sprintf("%s %s %d %s", q.conflict, q.access, q.draw, owner)
	}
	return waits, "-", []string{text}
}

// acquireReply reads the parts of a reply that are specific to lock_acquire.
func acquireReply(c *engine.Claim, a engine.Answer, extra string) (_ engine.Answer, err error) {
	a.Capacity = 0 // a lock has none
	if extra != "" {
		a.Entry, err = entry(extra)
	}
	q, _ := c.Request.(*ask)
	if r := a.Refused; r != nil && q != nil && q.single && (r.Reason == berth.ReasonHeld || r.Reason == berth.ReasonQueuedAhead) {
		r.Reason = berth.ReasonAttempts
	}
	return a, err
}

// entry reads the terms of a further entry of an owner, as scripts/owner/reentered.lua writes
// them.
func entry(text string) (*engine.Entry, error) {
	var lease, limit, extends, common int64
	var kind string
	if _, err := fmt.Sscanf(text, "%d %s %d %d %d", &lease, &kind, &limit, &extends, &common); err != nil {
		return nil, fmt.Errorf("berth: the terms of an entry, %q, cannot be read: %w", text, err)
	}
	e := &engine.Entry{
		Terms:   engine.Terms{Lease: state.Millis(lease), NoRenew: kind == "f"},
		Extends: state.Millis(extends), Common: line.Left(common),
	}
	if e.Lease == 0 {
		e.Lease = berth.Forever
	}
	if limit >= 0 {
		e.MaxHold = max(state.Millis(limit), time.Millisecond)
	}
	return e, nil
}

// releaseReply reads how many entries of the owner lock_release has left.
func releaseReply(_ *engine.Claim, p engine.Parting, extra string) (_ engine.Parting, err error) {
	if extra != "" {
		p.Entries, err = strconv.Atoi(extra)
	}
	return p, err
}

// forceExtend runs lock_extend for the hold with that fence.
func forceExtend(ctx context.Context, f *line.Face, name string, fence int64, by time.Duration) error {
	r, err := f.Run(ctx, composed.LockExtend, scriptkit.Bounded, name,
		line.Decimal(by.Milliseconds()), xid.New().String(), line.Decimal(fence))
	if err != nil {
		return err
	}
	switch r.Status() {
	case statusExtended:
	case statusNotHeld, statusOther:
		return berth.ErrNotHeld
	default:
		return line.Unexpected(name, &r)
	}
	left := line.Left(r.Int(1))
	if r.Err() != nil {
		return r.Err()
	}
	if left < 0 {
		left = berth.Forever
	}
	f.Tell.Send(observe.Event{Kind: observe.Extended, Context: ctx, Name: name, Fence: fence, Lease: by, Left: left})
	return nil
}
