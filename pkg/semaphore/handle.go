package semaphore

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Permit is what Acquire grants. The node renews it until it is released or lost, or
// until the node is closed. It is safe for concurrent use.
type Permit struct {
	face *line.Face
	hold *engine.Hold
}

var _ berth.Hold = (*Permit)(nil)

// ID is the id of the claim.
func (p *Permit) ID() string { return p.hold.Claim().ID }

// Name is the semaphore's name.
func (p *Permit) Name() string { return p.hold.Claim().Name }

// Weight is how much of the capacity the permit takes.
func (p *Permit) Weight() int { return p.hold.Claim().Record.Weight }

// Fence is the number of the grant, strictly rising per name. Pass it on to
// whatever the permit protects, and refuse smaller ones there.
func (p *Permit) Fence() int64 { return p.hold.Fence() }

// Node is the id of the node that holds the permit.
func (p *Permit) Node() string { return p.hold.Node() }

// Granted is when this process heard of the grant, or resumed the permit, by the
// process's own clock.
func (p *Permit) Granted() time.Time { return p.hold.Granted() }

// Lease is the lease that was asked for, berth.Forever for none.
func (p *Permit) Lease() time.Duration { return p.hold.Lease() }

// Waited is how long the acquire took.
func (p *Permit) Waited() time.Duration { return p.hold.Waited() }

// Context returns the permit's context. It has the values of the acquiring context, and
// ends with the permit, not with the acquiring context. Its context.Cause
// matches berth.ErrLost, berth.ErrExpired or berth.ErrReleased.
func (p *Permit) Context() context.Context { return p.hold.Context() }

// Within returns a context that ends with ctx or with the permit, whichever
// comes first. It carries the permit's owner. Call the CancelFunc when the work under
// the context is done.
func (p *Permit) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return p.hold.Within(ctx)
}

// Done is closed when the permit has ended.
func (p *Permit) Done() <-chan struct{} { return p.hold.Context().Done() }

// Err is nil while the permit is held; afterwards it matches berth.ErrLost, berth.ErrExpired
// or berth.ErrReleased. Err compares the clock itself, so it is right
// even when a timer is late, as after a suspension.
// Of a nil Permit, which an Acquire returns beside its error, it is berth.ErrNotHeld.
func (p *Permit) Err() error {
	if p == nil {
		return berth.ErrNotHeld
	}
	return p.hold.Err()
}

// Left is the time until the local deadline: berth.Forever for no end, 0 once the permit
// has ended. A renewal lengthens it.
func (p *Permit) Left() time.Duration { return p.hold.Left() }

// Wanted is closed when somebody has asked for the permit back: an operator, or a claim that waits with
// WantAfter. The permit goes on, and a server that loses its data forgets who has asked. Whoever can, finishes
// its work and releases.
func (p *Permit) Wanted() <-chan struct{} { return p.hold.Wanted() }

// Release gives the permit back. The same script grants the freed place to the first in
// line. The permit's context ends before anything is sent. Release may be called from
// several goroutines and more than once; after a success it returns nil.
//
// Release works after ctx or the hold has ended, too. It then waits for node.Config.CleanupTimeout at
// most; if the server has not answered by then, an open node goes on in the background.
//
// It returns berth.ErrLost or berth.ErrExpired, which match berth.ErrNotHeld, if the
// server had ended the permit before; berth.ErrReleased if somebody else had released it;
// or the server's error. After the server's error the permit ends with its lease, and
// Release may be called again.
// Of a nil Permit it returns berth.ErrNotHeld.
func (p *Permit) Release(ctx context.Context) error {
	if p == nil {
		return berth.ErrNotHeld
	}
	return p.hold.Release(ctx)
}

// Renew starts the lease anew. Permits renew by themselves unless NoRenew was set. Renew
// returns berth.ErrLost, berth.ErrExpired or berth.ErrReleased if the permit has ended,
// ctx's error, or the server's.
func (p *Permit) Renew(ctx context.Context) error { return p.hold.Renew(ctx) }

// Detach stops renewing and keeps the permit until its lease ends, also through Close of
// the node. A lease that renews by itself starts anew with the call; a fixed one goes
// on. The handle ends with berth.ErrReleased. Whoever has the token, this process too,
// gets a new handle by Semaphore.Resume. A Release of the old handle does nothing and
// returns nil, so a deferred one may stay.
//
// Its errors are those of Renew. After the server's or ctx's error the permit may or may
// not be detached on the server; if it is, it ends with its lease. The handle lives on:
// call Detach again, or Release.
func (p *Permit) Detach(ctx context.Context) (berth.Token, error) {
	return p.face.Detach(ctx, p.hold)
}

// Resume takes up a permit of this semaphore that was detached, in this or another process. The node
// renews it if it was renewed before. Resume returns berth.ErrNotHeld if the permit has
// ended, berth.ErrReleased if another node has resumed or released it, berth.ErrLost if this node was found dead
// meanwhile, and berth.ErrInvalidConfig for a token of another kind, namespace or name, or for a permit that
// is not detached.
func (s *Semaphore) Resume(ctx context.Context, token berth.Token) (*Permit, error) {
	if s.bad != nil {
		return nil, s.bad
	}
	if token.Name != s.name {
		return nil, berth.Invalid("token.Name", "%q is not this semaphore's, %q", token.Name, s.name)
	}
	face, hold, err := s.p.Resume(ctx, keyspace.Sem, token, nil)
	if err != nil {
		return nil, err
	}
	return &Permit{face: face, hold: hold}, nil
}
