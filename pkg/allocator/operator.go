package allocator

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Operator has the calls for operators: it changes the pools of the namespace, whoever
// holds their resources, and shows what only pools have; package inspect shows the rest. It
// knows no values, so one Operator is for pools of every type, and a pool need not be open
// in this process. Its methods have the same names in all primitives. It is safe for concurrent use.
//
// A call for a whole namespace goes on after an error. After three names of one server in
// a row without an answer it leaves out the other names of that server, and its error
// matches berth.ErrUnavailable.
type Operator struct {
	client *Client
	atOnce int // up to how many resources Inspect reads in one step
}

// Release ends holds and waits by force, and returns how many, also beside an error;
// see berth.Target. Each resource is handed on in the same step, or rests as after
// every other end. The holder's process hears of it, and its hold ends with
// berth.ErrReleased, a wait with ReasonGone. Until the process has heard, two may use
// the resource.
//
// Release returns berth.ErrNotHeld if the target has a name and nothing of it was ended,
// berth.ErrExpired if the time of the claim given had passed, berth.ErrInvalidConfig
// for a target that cannot be, or the server's error.
func (o *Operator) Release(ctx context.Context, target berth.Target) (int, error) {
	return o.client.face().ReleaseTarget(ctx, target, nil)
}

// Want asks for the holds of a target back, and returns for how many, also beside an error. Nothing ends: the
// process hears with a heartbeat, which a message prompts, and the hold's Wanted is closed. A claim
// that waits is left alone. A hold that is detached is wanted for whoever resumes it.
//
// Want returns berth.ErrNotHeld if the target has a Name and nothing of it is wanted now, berth.ErrExpired if the time of
// its Claim had passed, berth.ErrInvalidConfig for a target that berth.Target does not allow, or the server's error.
func (o *Operator) Want(ctx context.Context, target berth.Target) (int, error) {
	return o.client.face().WantTarget(ctx, target)
}

// Sweep drops what has expired from the pools given or, without any, from all of the
// namespace, and returns how many entries that were (holds, rests, resources, bindings),
// also beside an error. Calls that write drop some on their way; Sweep is for who wants
// all of it done now. It returns berth.ErrInvalidConfig for a bad name, or the server's
// errors.
func (o *Operator) Sweep(ctx context.Context, names ...string) (int, error) {
	return o.client.face().SweepNames(ctx, names...)
}

// Pause has nothing granted of a pool for so long: whole milliseconds, above 0, at most 8784h.
// The pause ends by itself, by the server's clock, and the first in line is then granted what is
// free; waits for one resource that are over, and resources that have left, show then. Meanwhile holds, renewals, rests, what is added or removed, and Resume go on; who waits keeps its
// place, who comes joins the line, and a call that does not wait, or a Swap, gets
// ReasonPaused. A later Pause
// sets another end, nearer or further; a pause of all names that lasts longer goes on. The reason is any text of up to 512 bytes.
//
// Pause returns berth.ErrInvalidConfig; berth.ErrStale if another call has paused the name, or
// ended its pause, since this one began; berth.ErrIncompatible; or the server's error. A flush of
// the server ends the pause.
func (o *Operator) Pause(ctx context.Context, name string, lasts time.Duration, reason string) error {
	return o.client.face().Pause(ctx, name, lasts, reason)
}

// Unpause ends the pause of a pool now, and its part in one of all names; the first in line gets what is free in the same step. It
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
	return o.client.p.PauseAll(ctx, lasts, reason, keyspace.Pool)
}

// UnpauseAll ends the pause of all names, in the same way, and with the same errors. What an operator
// has paused by Pause stays paused. A name that a client pauses while UnpauseAll ends is listed as
// paused, and its pause ends by itself.
func (o *Operator) UnpauseAll(ctx context.Context) (berth.PausedAll, error) {
	return o.client.p.UnpauseAll(ctx, keyspace.Pool)
}

// Drain is Drain of the node's Operator: it is of all kinds.
func (o *Operator) Drain(ctx context.Context, target berth.DrainTarget, within time.Duration) (berth.Drained, error) {
	return o.client.p.Drain(ctx, target, within)
}

// StopDrain is StopDrain of the node's Operator.
func (o *Operator) StopDrain(ctx context.Context, target berth.DrainTarget) error {
	return o.client.p.StopDrain(ctx, target)
}
