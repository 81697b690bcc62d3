package node

import (
	"context"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Operator has the calls for operators, which act on the holds and waits of all processes, of all kinds. Packages qlock,
// semaphore and allocator have an Operator for calls specific to their kind; package inspect lists holders and waiters. In
// a swarm an Operator stays usable when the process gets another node. An Operator is safe for concurrent use.
//
// A call for a whole namespace goes on after an error. After three names in a row without an
// answer from one server, the call skips the other names of that server, and its error matches
// berth.ErrUnavailable.
type Operator struct{ n *Node }

// Release ends holds and waits by force, and returns how many claims it ended, even with an error; see berth.Target. Every
// entry of a lock is a claim. A freed place goes to the first in line in the same step; a resource rests as after any other
// end. The handle of an ended hold ends with berth.ErrReleased, and an ended wait with berth.ReasonGone, once their process
// learns of the release. Until then two holders may be inside.
//
// With only a lock's name, Release ends the hold that it finds, with all its entries in one
// step, and no later hold. Release returns berth.ErrNotHeld if the target has a Name and no
// claim of that name was ended, berth.ErrExpired if the deadline of its Claim had passed,
// berth.ErrInvalidConfig for a target that berth.Target does not allow, or the server's error.
func (o *Operator) Release(ctx context.Context, target berth.Target) (int, error) {
	return o.n.p.ReleaseTarget(ctx, target)
}

// Want asks for the holds of a target back, and returns how many it asked for, even with an error. No hold ends: the
// process learns of the request with a heartbeat, which a message prompts, and the handle's Wanted is closed. Waiting
// claims are left alone. A detached hold stays wanted after a Resume. Want returns the errors of Release.
func (o *Operator) Want(ctx context.Context, target berth.Target) (int, error) {
	return o.n.p.WantTarget(ctx, target)
}

// Sweep drops expired entries of the given names or, without names, of all names of the kind; with kind "", of all kinds.
// Entries are holds and waits and, in pools, also rests, resources and bindings. Sweep returns how many it dropped, even
// with an error. Sweep is never necessary, since every call that writes also drops some expired entries. Sweep returns
// berth.ErrInvalidConfig for a bad name or kind, or the server's errors.
func (o *Operator) Sweep(ctx context.Context, kind keyspace.Kind, names ...string) (int, error) {
	if kind != "" {
		if err := line.CheckKind("kind", kind); err != nil {
			return 0, err
		}
	}
	return o.n.p.Each(kind, func(f *line.Face) (int, error) { return f.SweepNames(ctx, names...) })
}

// Pause stops all grants of a name for the time lasts: whole milliseconds, above 0, at most 8784h. The pause ends by
// itself, by the server's clock, and free places are then granted in line order. The reason is any text of up to 512 bytes.
//
// During the pause holds, renewals, extensions, re-entries, rests, Resume, Add, Remove and Resize go on. Waiting claims
// keep their places, and new claims join the line. A call that does not wait, or a Swap, gets berth.ReasonPaused. A pool's
// claim whose BindWait expires, or whose resource is removed, during the pause learns of it when the pause ends.
//
// A later Pause sets another end, earlier or later; a pause of all names that lasts longer stays in force.
//
// Pause returns berth.ErrInvalidConfig; berth.ErrOvertaken if another call has paused the name, or
// ended its pause, since this call began; berth.ErrIncompatible; or the server's error. A flush of
// the server ends the pause.
func (o *Operator) Pause(ctx context.Context, kind keyspace.Kind, name string, lasts time.Duration, reason string) error {
	if err := line.CheckKind("kind", kind); err != nil {
		return err
	}
	return o.n.p.Face(kind).Pause(ctx, name, lasts, reason)
}

// Unpause ends the pause of a name now, and exempts the name from a pause of all names. Free places are granted in line
// order in the same step. Unpause also acts on a name that is not paused, so that an older Pause still on its way has no
// effect. Unpause returns the errors of Pause.
func (o *Operator) Unpause(ctx context.Context, kind keyspace.Kind, name string) error {
	if err := line.CheckKind("kind", kind); err != nil {
		return err
	}
	return o.n.p.Face(kind).Unpause(ctx, name)
}

// PauseAll pauses all names of the given kinds, or of all kinds if none is given, for the time lasts; see Pause.
// PauseAll tells all processes, which then pause each name before they ask for it, and pauses the names that are in
// use.
//
// PauseAll returns after 7 s and a walk over the names. After a return without an error nothing is granted until the
// pause ends, with these exceptions:
//   - names that an operator has unpaused since, until they have been idle for a minute;
//   - processes that may not read the notice, or whose reading is not answered although the name's server answers;
//   - processes that start after the server has lost the notice (by a flush, a restart without data, or a
//     failover);
//   - claims that already wait for a name whose server has lost the pause but not these claims.
//
// A process that was cut off reads the notice before it passes a grant to its caller. A process that knows of the
// pause observes it until the pause ends or a newer PauseAll or UnpauseAll comes, whatever data the server loses. A
// repeated call sets another end. After an error, or if this process ends during the call, call PauseAll again.
//
// PauseAll returns berth.ErrInvalidConfig; berth.ErrOvertaken if another call has paused one of the kinds, or ended its
// pause, since this call began; ctx's error; or the server's error. The berth.PausedAll is valid even with an error of some
// names.
func (o *Operator) PauseAll(ctx context.Context, lasts time.Duration, reason string, kinds ...keyspace.Kind) (berth.PausedAll, error) {
	kinds, err := all(kinds)
	if err != nil {
		return berth.PausedAll{}, err
	}
	return o.n.p.PauseAll(ctx, lasts, reason, kinds...)
}

// UnpauseAll ends the pause of all names of the given kinds, or of all kinds if none is given, and returns the errors of
// PauseAll. Names that an operator has paused by Pause stay paused. A name that a process pauses while UnpauseAll is under
// way is listed as paused, and its pause ends by itself.
func (o *Operator) UnpauseAll(ctx context.Context, kinds ...keyspace.Kind) (berth.PausedAll, error) {
	kinds, err := all(kinds)
	if err != nil {
		return berth.PausedAll{}, err
	}
	return o.n.p.UnpauseAll(ctx, kinds...)
}

// all returns the given kinds, each once, or all kinds if none is given.
func all(kinds []keyspace.Kind) (some []keyspace.Kind, err error) {
	if len(kinds) == 0 {
		return line.Kinds, nil
	}
	for _, kind := range kinds {
		if err := line.CheckKind("kinds", kind); err != nil {
			return nil, err
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(kinds))), nil
}

// Drain makes the processes of a target finish their work. They refuse new claims with berth.ErrDraining, except further
// entries of a lock by an owner who already holds it. Drain ends their waits, and asks for all their holds, of all kinds,
// back, so that each hold's Wanted is closed.
//
// Drain walks over the names for at least 7 s, until the processes have no claims left or, with Force, until ForceAfter has
// passed; then Drain ends the rest by force. With a ForceAfter below 7 s a process may learn of the drain only after the
// forced end. Detached holds are left alone.
//
// After Drain has returned without an error, no matching process that reaches the server holds or gets anything until
// StopDrain, or until For has passed by that process's own clock. A process that cannot be reached keeps its holds until
// their local deadlines, and learns of the drain before it gets anything new.
//
// Processes that start later under the label are not drained. A flush of the server does not end a drain that processes
// know of, but listings no longer show the drain. If this process dies, processes that know of the drain stay drained: call
// Drain again, or StopDrain.
//
// Drain returns berth.ErrOvertaken once it finds that another call, such as StopDrain, has changed the same drain since
// this call began, and berth.ErrAbsent if the drain has ended by itself before. It returns berth.ErrInvalidConfig; ctx's
// error, joined with those of the last pass; the server's errors; the errors of unreadable names if nothing else is left;
// and an error if claims were found again after the forced end. The berth.Drained is valid even with an error.
func (o *Operator) Drain(ctx context.Context, target berth.DrainTarget, opts *berth.DrainOptions) (berth.Drained, error) {
	return o.n.p.Drain(ctx, target, opts)
}

// StopDrain ends the drain of exactly this target. The draining processes learn of the end within 5 s.
// StopDrain returns berth.ErrInvalidConfig, berth.ErrOvertaken, or the server's error.
func (o *Operator) StopDrain(ctx context.Context, target berth.DrainTarget) error {
	return o.n.p.StopDrain(ctx, target)
}
