package line

import (
	"context"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// ForceRelease ends somebody's hold or wait by its id alone, of whatever node or
// only of the one given, and hands on. It returns berth.ErrInvalidConfig for a
// bad name or no id, berth.ErrNotHeld for a claim that is not known or is
// another node's, berth.ErrExpired if its time had passed, or the server's
// error.
func (n *Face) ForceRelease(ctx context.Context, name, id, node string) error {
	_, err := n.forceRelease(ctx, name, id, node)
	return err
}

// forceRelease is ForceRelease that says whether the call has ended the claim, also beside an error.
func (n *Face) forceRelease(ctx context.Context, name, id, node string) (ended bool, err error) {
	return n.endBy(ctx, name, id, node, false)
}

// endBy is forceRelease, of a claim that waits alone if waits is set: a hold is berth.ErrNotHeld then.
func (n *Face) endBy(ctx context.Context, name, id, node string, waits bool) (ended bool, err error) {
	if err := keyspace.CheckName(name); err != nil {
		return false, err
	}
	if id == "" {
		return false, berth.Invalid("id", "it is empty")
	}
	stays := Decimal(engine.Tombstone.Milliseconds())
	r, err := n.Run(ctx, n.kind.Scripts.ForceRelease, scriptkit.Bounded, name, node, id, stays, Flag(waits))
	if err != nil {
		return false, err
	}
	switch r.Status() {
	case statusReleased, statusCancelled:
		ended = true
	case statusExpired:
	case statusNotHeld:
		if r.Unanswered && r.Str(1) == toldReleased {
			return true, nil // an earlier attempt of this very call
		}
		return false, berth.ErrNotHeld
	default:
		return false, Unexpected(name, &r)
	}
	more := More(&r, 1)
	if r.Err() != nil {
		return false, r.Err()
	}
	n.Tell.Send(observe.Event{Kind: observe.ForceReleased, Context: ctx, Name: name, Claim: id, Count: 1, Detail: r.Status()})
	if err := n.SweepOn(ctx, name, more); err != nil {
		return ended, err
	}
	if !ended {
		return false, berth.ErrExpired
	}
	return true, nil
}
