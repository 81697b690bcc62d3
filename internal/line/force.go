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
func (n *Node) ForceRelease(ctx context.Context, name, id, node string) error {
	if err := keyspace.CheckName(name); err != nil {
		return err
	}
	if id == "" {
		return berth.Invalid("id", "it is empty")
	}
	stays := Decimal(engine.Tombstone.Milliseconds())
	r, err := n.Run(ctx, n.force, scriptkit.Bounded, name, node, id, stays)
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
		return Unexpected(name, &r)
	}
	more := More(&r, 1)
	if r.Err() != nil {
		return r.Err()
	}
	n.Tell.Send(observe.Event{Kind: observe.ForceReleased, Context: ctx, Name: name, Claim: id, Count: 1, Detail: r.Status()})
	if err := n.SweepOn(ctx, name, more); err != nil {
		return err
	}
	return result
}
