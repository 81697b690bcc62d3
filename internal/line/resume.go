package line

import (
	"context"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Detach stops renewing a hold of this node, and returns the token by which it
// can be taken up.
func (n *Face) Detach(ctx context.Context, h *engine.Hold) (berth.Token, error) {
	if err := h.Detach(ctx); err != nil {
		return berth.Token{}, err
	}
	c := h.Claim()
	return berth.Token{
		Kind: n.kind.Kind, Namespace: n.cfg.Space.Namespace(), Name: c.Name, Claim: c.ID, Node: h.Node(), Fence: h.Fence(),
	}, nil
}

// checkToken refuses a token that cannot be of this kind's holds.
func (n *Face) checkToken(token berth.Token) error {
	if token.Kind != n.kind.Kind {
		return berth.Invalid("token.Kind", "%q is not what is resumed here, %q", token.Kind, n.kind.Kind)
	}
	if token.Namespace != n.cfg.Space.Namespace() {
		return berth.Invalid("token.Namespace", "%q is not this node's, %q", token.Namespace, n.cfg.Space.Namespace())
	}
	if err := keyspace.CheckName(token.Name); err != nil {
		return err
	}
	if token.Claim == "" || token.Node == "" {
		return berth.Invalid("token", "it names no claim or no node")
	}
	return nil
}

// Resume takes up a hold that was detached, and has it kept from now on. own sets what of its claim the server does not know, nil for nothing. It
// returns berth.ErrInvalidConfig for a token of another kind or namespace, or
// for a hold that is not detached, berth.ErrNotHeld if the hold has ended,
// berth.ErrReleased if somebody else has resumed or released it,
// berth.ErrDraining, berth.ErrClosed, or the server's error.
func (n *Face) Resume(ctx context.Context, token berth.Token, own func(*engine.Claim)) (*engine.Hold, error) {
	if err := n.checkToken(token); err != nil {
		return nil, err
	}
	if told := n.cfg.Notice; told != nil {
		told.Sure(ctx, n.kind.Kind)
		if err := told.Draining(); err != nil {
			return nil, err
		}
	}
	if err := n.Engine.Begin(); err != nil {
		return nil, err
	}
	defer n.Engine.End()
	start := n.Engine.Now()
	r, err := n.Run(ctx, n.kind.Scripts.Resume, scriptkit.Bounded, token.Name,
		n.ID, token.Claim, token.Node, n.mode(engine.ModeBeat, true))
	if scriptkit.MaybeRan(err) {
		n.Engine.Doubt(token.Claim)
	}
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
		return nil, Unexpected(token.Name, &r)
	}
	remaining, limit := Left(r.Int(1)), r.Int(2)
	record, err := state.ParseRecord(r.Str(3))
	resource := text(&r, 4)
	if r.Err() != nil {
		return nil, r.Err()
	}
	if err != nil {
		return nil, err
	}
	if r.Status() == statusAttached && (record.Node != n.ID || !r.Unanswered && !n.Engine.MayAdopt(token.Claim)) {
		return nil, berth.Invalid("token", "the hold is not detached")
	}
	if limit > 0 {
		record.MaxHold = state.Millis(limit) // what is left of it, from this call on
	}
	claim := &engine.Claim{ID: token.Claim, Kind: n.kind.Kind, Name: token.Name, Record: record, Capacity: record.Weight}
	if own != nil {
		own(claim)
	}
	if n.kind.Request != nil {
		claim.Request = n.kind.Request()
	}
	return n.Engine.Adopt(ctx, claim, start, record.Fence, resource, remaining)
}
