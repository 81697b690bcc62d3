package qlock

import (
	"context"
	"time"

	"github.com/rs/xid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// Operator has the calls for operators: it changes the locks of the namespace, whoever
// holds them. Package inspect shows them. Its methods have the same names in all primitives.
// In a swarm it goes on when the client gets another node. It is safe for concurrent use.
//
// A call for a whole namespace goes on after an error. After three names of one server in
// a row without an answer it leaves out the other names of that server, and its error
// matches berth.ErrUnavailable.
type Operator struct {
	client *Client
}

// Release ends holds and waits by force, and returns how many claims that were, also
// beside an error; see berth.Target. Every entry of a hold is a claim. With the last
// entry of a hold the first in line gets the lock, in the same step. The holder's process
// hears of it, and its handle ends with berth.ErrReleased, a wait with ReasonGone. Until
// the process has heard, two may be inside.
//
// A name alone ends the hold that Release finds, with all its entries in one step, and no
// later hold. Release returns berth.ErrNotHeld if the target has a name and nothing of
// it was ended, berth.ErrExpired if the time of the claim given had passed,
// berth.ErrInvalidConfig for a target that cannot be, or the server's error.
func (o *Operator) Release(ctx context.Context, target berth.Target) (int, error) {
	return o.client.face().ReleaseTarget(ctx, target, o.releaseWhole)
}

// releaseWhole ends all entries of a lock, of the hold that it finds.
func (o *Operator) releaseWhole(ctx context.Context, name string) (int, error) {
	entries, fence, err := o.held(ctx, name)
	if err != nil || entries == 0 {
		return 0, err
	}
	return forceRelease(ctx, o.client.face(), name, fence, entries)
}

// held reads by how many entries a lock is held, 0 if it is free, and the fence of the hold.
func (o *Operator) held(ctx context.Context, name string) (entries int, fence int64, err error) {
	_, found, err := o.client.face().Decide.Entries(ctx, name)
	for _, e := range found {
		if e.Err == nil { // all have the same fence
			return len(found), e.Entry.Fence, nil
		}
		err = e.Err // damaged, as all others are
	}
	return 0, 0, err
}

// Want asks for the holds of a target back, and returns for how many, also beside an error. Nothing ends: the
// process hears with a heartbeat, which a message prompts, and the handle's Wanted is closed. A claim
// that waits is left alone. A hold that is detached is wanted for whoever resumes it.
//
// Want returns berth.ErrNotHeld if the target has a Name and nothing of it is wanted now, berth.ErrExpired if the time of
// its Claim had passed, berth.ErrInvalidConfig for a target that berth.Target does not allow, or the server's error.
func (o *Operator) Want(ctx context.Context, target berth.Target) (int, error) {
	return o.client.face().WantTarget(ctx, target)
}

// Sweep drops what has expired from the locks given or, without any, from all of the
// namespace, and returns how many claims that were, also beside an error. Calls that
// write drop some on their way; Sweep is for who wants all of it done now. It returns
// berth.ErrInvalidConfig for a bad name, or the server's errors.
func (o *Operator) Sweep(ctx context.Context, names ...string) (int, error) {
	return o.client.face().SweepNames(ctx, names...)
}

// Pause has nothing granted of a lock for so long: whole milliseconds, above 0, at most 8784h.
// The pause ends by itself, by the server's clock, and the first in line is then granted what is
// free. Meanwhile holds, renewals, extensions, re-entries and Resume go on; who waits keeps its
// place, who comes joins the line, and a call that does not wait gets ReasonPaused. A later Pause
// sets another end, nearer or further; a pause of all names that lasts longer goes on. The reason is any text of up to 512 bytes.
//
// Pause returns berth.ErrInvalidConfig; berth.ErrStale if another call has paused the name, or
// ended its pause, since this one began; berth.ErrIncompatible; or the server's error. A flush of
// the server ends the pause.
func (o *Operator) Pause(ctx context.Context, name string, lasts time.Duration, reason string) error {
	return o.client.face().Pause(ctx, name, lasts, reason)
}

// Unpause ends the pause of a lock now, and its part in one of all names; the first in line gets what is free in the same step. It
// does the same where there is none, so that no older Pause can still come. Its errors are those of Pause.
func (o *Operator) Unpause(ctx context.Context, name string) error {
	return o.client.face().Unpause(ctx, name)
}

// PauseAll has nothing granted in the whole namespace, of this kind, for so long, as Pause has it. PauseAll
// tells all clients, which pause each name before they ask for it, and pauses the names that are in use.
//
// When PauseAll has returned without an error, after 7 s and a walk over the names, nothing is granted any more until the
// pause ends, except:
//   - of names that an operator has unpaused since, until they have been idle for a minute;
//   - to processes that may not read the notice, or whose read of it is not answered though the name's server answers;
//   - to processes that begin after the server has lost the notice (a flush, a restart without data, a failover);
//   - to claims that wait already, of a name whose server has lost the pause but not those claims.
//
// A process that was cut off reads the notice before it hands out what it is granted. A process that has heard of the
// pause keeps to it, whatever the server loses, until the end or a newer PauseAll or UnpauseAll. A
// repeat sets another end. After an error, or the end of this process, call it again.
//
// PauseAll returns the errors of Pause, or ctx's; berth.PausedAll also beside an error of some names.
func (o *Operator) PauseAll(ctx context.Context, lasts time.Duration, reason string) (berth.PausedAll, error) {
	return o.client.p.PauseAll(ctx, lasts, reason, keyspace.Lock)
}

// UnpauseAll ends the pause of all names, in the same way, and with the same errors. What an operator
// has paused by Pause stays paused. A name that a client pauses while UnpauseAll ends is listed as
// paused, and its pause ends by itself.
func (o *Operator) UnpauseAll(ctx context.Context) (berth.PausedAll, error) {
	return o.client.p.UnpauseAll(ctx, keyspace.Lock)
}

// Drain is Drain of the node's Operator: it is of all kinds.
func (o *Operator) Drain(ctx context.Context, target berth.DrainTarget, within time.Duration) (berth.Drained, error) {
	return o.client.p.Drain(ctx, target, within)
}

// StopDrain is StopDrain of the node's Operator.
func (o *Operator) StopDrain(ctx context.Context, target berth.DrainTarget) error {
	return o.client.p.StopDrain(ctx, target)
}

// Extend moves the deadline of a lock's hold further off by so much, whoever has it:
// whole milliseconds, above 0. Extend never shortens, and MaxHold still bounds the hold.
// The holder's handle hears of it with its next heartbeat. Extend returns
// berth.ErrNotHeld if the lock is free, berth.ErrInvalidConfig, or the server's error.
func (o *Operator) Extend(ctx context.Context, name string, by time.Duration) error {
	if err := keyspace.CheckName(name); err != nil {
		return err
	}
	if err := checkExtension(by); err != nil {
		return err
	}
	entries, fence, err := o.held(o.client.face().For(ctx, "Extend", name), name)
	if err != nil {
		return err
	}
	if entries == 0 {
		return berth.ErrNotHeld
	}
	return forceExtend(ctx, o.client.face(), name, fence, by)
}

// forceRelease runs lock_force_hold for the hold with that fence and so many entries: a repeated call
// must not end that of the next in line. It returns how many entries it ended, 0 where the hold
// has ended by itself.
func forceRelease(ctx context.Context, f *line.Face, name string, fence int64, held int) (int, error) {
	stays := line.Decimal(engine.Tombstone.Milliseconds())
	r, err := f.Run(ctx, composed.LockForceHold, scriptkit.Bounded, name, line.Decimal(fence), stays)
	if err != nil {
		return 0, err
	}
	switch r.Status() {
	case statusReleased:
	case statusNotHeld, statusOther:
		if r.Unanswered {
			return held, nil // an earlier attempt of this very call, or its holder
		}
		return 0, nil
	default:
		return 0, line.Unexpected(name, &r)
	}
	more, entries := line.More(&r, 1), int(r.Int(3))
	if r.Err() != nil {
		return 0, r.Err()
	}
	f.Tell.Send(observe.Event{Kind: observe.ForceReleased, Context: ctx, Name: name, Count: entries, Detail: r.Status()})
	return entries, f.SweepOn(ctx, name, more)
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
