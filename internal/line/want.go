package line

import (
	"context"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// want asks for a hold back, of whatever node or only of the one given, and reports whether it is
// wanted now, also beside an error. It returns berth.ErrInvalidConfig for no id, berth.ErrNotHeld for a
// claim that waits, is not known or is another node's, berth.ErrExpired if its time had passed, or the
// server's error.
func (n *Face) want(ctx context.Context, name, id, node string) (wanted bool, err error) {
	r, err := n.Run(ctx, n.kind.Scripts.Want, scriptkit.Bounded, name, node, id)
	if err != nil {
		return false, err
	}
	switch r.Status() {
	case statusWanted:
		n.Tell.Send(observe.Event{Kind: observe.WantedBack, Context: ctx, Name: name, Claim: id, Count: 1})
		return true, r.Err()
	case statusWaits, statusNotHeld:
		return false, berth.ErrNotHeld
	case statusExpired:
		return false, berth.ErrExpired
	}
	return false, Unexpected(name, &r)
}
