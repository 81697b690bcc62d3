package node

import (
	"context"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Operator has the calls for operators: it changes what processes hold and wait for, of all kinds, whoever they are. What only one
// kind has its own Operator does, in packages qlock, semaphore and allocator; package inspect shows who holds and who waits.
// In a swarm it goes on when the process gets another node. It is safe for concurrent use.
//
// A call for a whole namespace goes on after an error. After three names of one server in
// a row without an answer it leaves out the other names of that server, and its error
// matches berth.ErrUnavailable.
type Operator struct{ n *Node }

// Release ends holds and waits by force, and returns how many claims that were, also
// beside an error; see berth.Target. Every entry of a lock is a claim. What comes free goes to the first in line, in the same
// step; a resource rests as after every other end. The holder's process
// hears of it, and its handle ends with berth.ErrReleased, a wait with ReasonGone. Until
// the process has heard, two may be inside.
//
// A lock's name alone ends the hold that Release finds, with all its entries in one step, and no
// later hold. Release returns berth.ErrNotHeld if the target has a Name and nothing of
// it was ended, berth.ErrExpired if the time of its Claim had passed,
// berth.ErrInvalidConfig for a target that berth.Target does not allow, or the server's error.
func (o *Operator) Release(ctx context.Context, target berth.Target) (int, error) {
	return o.n.p.ReleaseTarget(ctx, target)
}

// Want asks for the holds of a target back, and returns for how many, also beside an error. Nothing ends: the
// process hears with a heartbeat, which a message prompts, and the handle's Wanted is closed. A claim
// that waits is left alone. A hold that is detached is wanted for whoever resumes it. The errors are those of Release.
func (o *Operator) Want(ctx context.Context, target berth.Target) (int, error) {
	return o.n.p.WantTarget(ctx, target)
}

// Sweep drops what has expired from the names given or, without any, from all names: of the kind, of all kinds where kind is "". It
// returns how many entries that were (holds and waits; of pools also rests, resources and bindings), also beside an error. Nothing
// needs Sweep: every call that writes drops some, too. It returns berth.ErrInvalidConfig
// for a bad name or kind, or the server's errors.
func (o *Operator) Sweep(ctx context.Context, kind keyspace.Kind, names ...string) (int, error) {
	if kind != "" {
		if err := line.CheckKind("kind", kind); err != nil {
			return 0, err
		}
	}
	return o.n.p.Each(kind, func(f *line.Face) (int, error) { return f.SweepNames(ctx, names...) })
}

// Pause has nothing granted of a name for so long: whole milliseconds, above 0, at most 8784h.
// The pause ends by itself, by the server's clock, and the first in line is then granted what is
// free; of a pool, waits for one resource that are over, and resources that have left, show then. Meanwhile holds, renewals,
// extensions, re-entries, rests, Resume, and what is added, removed or resized go on; who waits keeps its
// place, who comes joins the line, and a call that does not wait, or a Swap, gets ReasonPaused. A later Pause
// sets another end, nearer or further; a pause of all names that lasts longer goes on. The reason is any text of up to 512 bytes.
//
// Pause returns berth.ErrInvalidConfig; berth.ErrOvertaken if another call has paused the name, or
// ended its pause, since this one began; berth.ErrIncompatible; or the server's error. A flush of
// the server ends the pause.
func (o *Operator) Pause(ctx context.Context, kind keyspace.Kind, name string, lasts time.Duration, reason string) error {
	if err := line.CheckKind("kind", kind); err != nil {
		return err
	}
	return o.n.p.Face(kind).Pause(ctx, name, lasts, reason)
}

// Unpause ends the pause of a name now, and its part in one of all names; the first in line gets what is free in the same step. It
// does the same where there is none, so that no older Pause can still come. Its errors are those of Pause.
func (o *Operator) Unpause(ctx context.Context, kind keyspace.Kind, name string) error {
	if err := line.CheckKind("kind", kind); err != nil {
		return err
	}
	return o.n.p.Face(kind).Unpause(ctx, name)
}

// PauseAll has nothing granted of any name of the kinds given, all without any, for so long, as Pause has it. PauseAll
// tells all processes, which pause each name before they ask for it, and pauses the names that are in use.
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
// PauseAll returns berth.ErrInvalidConfig; berth.ErrOvertaken if another call has paused one of the kinds, or ended its pause,
// since this one began; ctx's error; or the server's; berth.PausedAll also beside an error of some names.
func (o *Operator) PauseAll(ctx context.Context, lasts time.Duration, reason string, kinds ...keyspace.Kind) (berth.PausedAll, error) {
	kinds, err := all(kinds)
	if err != nil {
		return berth.PausedAll{}, err
	}
	return o.n.p.PauseAll(ctx, lasts, reason, kinds...)
}

// UnpauseAll ends the pause of all names of the kinds given, all without any, in the same way, and with the same errors. What an
// operator has paused by Pause stays paused. A name that a process pauses while UnpauseAll ends is listed as
// paused, and its pause ends by itself.
func (o *Operator) UnpauseAll(ctx context.Context, kinds ...keyspace.Kind) (berth.PausedAll, error) {
	kinds, err := all(kinds)
	if err != nil {
		return berth.PausedAll{}, err
	}
	return o.n.p.UnpauseAll(ctx, kinds...)
}

// all are the kinds given, each once, or all of them.
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

// Drain has the processes of a target finish: they refuse what they are asked for with berth.ErrDraining, but an
// owner who holds may take the same lock again; their waits are ended, and all that they hold, of all kinds, is asked for,
// so that its Wanted is closed. Drain goes through the names until nothing of theirs is left, at least for 7 s;
// or, with Force, until ForceAfter has passed: then it ends the rest by force. ForceAfter below 7 s a process may hear of the
// drain after that. Detached holds are left.
//
// After Drain has returned without an error, none of the processes that matched and reach the server has anything, or gets
// anything, until StopDrain, or until the drain ends by itself after For, by each process's own clock. A process that cannot be
// reached keeps what it believes in until its local deadline, and hears of the drain before it is given anything new.
// Processes that start later under the label are not drained. A flush of the server ends no drain that was heard, but
// nobody sees it any more. If this process dies, those that have heard stay drained: call it again, or StopDrain.
//
// Drain returns berth.ErrInvalidConfig; berth.ErrOvertaken as soon as it finds that another call has changed the same drain,
// StopDrain among them, since this one began; berth.ErrAbsent if the drain has ended by itself before; ctx's error, with those of the
// last pass; what is wrong with names that cannot be read, where nothing else is left; the server's errors; or an error if
// something was there again after the end by force; berth.Drained also beside an error.
func (o *Operator) Drain(ctx context.Context, target berth.DrainTarget, opts *berth.DrainOptions) (berth.Drained, error) {
	return o.n.p.Drain(ctx, target, opts)
}

// StopDrain ends the drain of exactly that target: who has heard of it hears of its end within 5 s. It returns
// berth.ErrInvalidConfig, berth.ErrOvertaken, or the server's error.
func (o *Operator) StopDrain(ctx context.Context, target berth.DrainTarget) error {
	return o.n.p.StopDrain(ctx, target)
}
