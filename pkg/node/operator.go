package node

import (
	"context"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Operator has the calls for operators that are about whole processes, and about all names. What is about one name has the
// Operator of its kind. It is safe for concurrent use.
type Operator struct{ n *Node }

// PauseAll has nothing granted of any name of the kinds given, all without any, for so long: whole milliseconds, above 0, at
// most 8784h. Holds, renewals, extensions, re-entries and Resume go on; who waits keeps its place. The reason is any text of up
// to 512 bytes. PauseAll tells all clients, which pause each name before they ask for it, and pauses the names that are in use.
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
// PauseAll returns berth.ErrInvalidConfig; berth.ErrStale if another call has paused one of the kinds, or ended its pause,
// since this one began; ctx's error; or the server's; berth.PausedAll also beside an error of some names.
func (o *Operator) PauseAll(ctx context.Context, lasts time.Duration, reason string, kinds ...keyspace.Kind) (berth.PausedAll, error) {
	kinds, err := all(kinds)
	if err != nil {
		return berth.PausedAll{}, err
	}
	return o.n.p.PauseAll(ctx, lasts, reason, kinds...)
}

// UnpauseAll ends the pause of all names of the kinds given, all without any, in the same way, and with the same errors. What an
// operator has paused by its name stays paused. A name that a client pauses while UnpauseAll ends is listed as
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
		if !slices.Contains(line.Kinds, kind) {
			return nil, berth.Invalid("kinds", "%q is none of sem, lock and pool", string(kind))
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(kinds))), nil
}

// Drain has the processes of a target finish: they refuse what they are asked for with berth.ErrDraining, but an
// owner who holds may take the same lock again; their waits are ended, and all that they hold, of all kinds, is asked for,
// so that its Wanted is closed. Drain goes through the names until nothing of theirs is left, at least for 7 s;
// or until within has passed, 0 for never: then it ends the rest by force. Within below 7 s a process may hear of the drain
// after that. Detached holds are left.
//
// After Drain has returned without an error, none of the processes that matched and reach the server has anything, or gets
// anything, until StopDrain. A process that cannot be reached keeps what it believes in until its local deadline, and hears of
// the drain before it is given anything new.
// Processes that start later under the label are not drained. A flush of the server ends no drain that was heard. If
// this process dies, those that have heard stay drained: call it again, or StopDrain.
//
// Drain returns berth.ErrInvalidConfig; berth.ErrStale as soon as it finds that another call has changed the same drain,
// StopDrain among them, since this one began; ctx's error, with those of the last pass; what is wrong with names that
// cannot be read, where nothing else is left; the server's errors; or an error if something was there again after the
// end by force; berth.Drained also beside an error.
func (o *Operator) Drain(ctx context.Context, target berth.DrainTarget, within time.Duration) (berth.Drained, error) {
	return o.n.p.Drain(ctx, target, within)
}

// StopDrain ends the drain of exactly that target: who has heard of it hears of its end within 5 s. It returns
// berth.ErrInvalidConfig, berth.ErrStale, or the server's error.
func (o *Operator) StopDrain(ctx context.Context, target berth.DrainTarget) error {
	return o.n.p.StopDrain(ctx, target)
}
