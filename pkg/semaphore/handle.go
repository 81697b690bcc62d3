package semaphore

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Permit is the handle of a granted claim. The node renews the permit until it is released or
// lost, or until the node is closed. A Permit is safe for concurrent use.
type Permit struct {
	face *line.Face
	hold *engine.Hold
}

var _ berth.Hold = (*Permit)(nil)

// ID returns the id of the claim.
func (p *Permit) ID() string { return p.hold.Claim().ID }

// Name returns the semaphore's name.
func (p *Permit) Name() string { return p.hold.Claim().Name }

// Weight returns how much of the capacity the permit takes.
func (p *Permit) Weight() int { return p.hold.Claim().Record.Weight }

// Fence returns the fencing token of the grant, which rises with every grant of a name. Pass
// the token to the system that the permit protects, and refuse smaller tokens there.
func (p *Permit) Fence() int64 { return p.hold.Fence() }

// Node returns the id of the node that holds the permit.
func (p *Permit) Node() string { return p.hold.Node() }

// Granted returns when this process learned of the grant, or resumed the permit, by the
// process's own clock.
func (p *Permit) Granted() time.Time { return p.hold.Granted() }

// Lease returns the requested lease, berth.Forever for a permit without end.
func (p *Permit) Lease() time.Duration { return p.hold.Lease() }

// Waited returns how long the acquire took.
func (p *Permit) Waited() time.Duration { return p.hold.Waited() }

// Context returns the permit's context, which has the values of the acquiring context but ends
// only with the permit. Its context.Cause matches berth.ErrLost, berth.ErrExpired or
// berth.ErrReleased.
func (p *Permit) Context() context.Context { return p.hold.Context() }

// Within returns a context that carries the permit's owner and ends with ctx or with the
// permit, whichever ends first. Call the CancelFunc when the work under the context is done.
func (p *Permit) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return p.hold.Within(ctx)
}

// Done returns a channel that is closed when the permit has ended.
func (p *Permit) Done() <-chan struct{} { return p.hold.Context().Done() }

// Err returns nil while the permit is held, and afterwards an error that matches berth.ErrLost,
// berth.ErrExpired or berth.ErrReleased. Err compares the clock itself, so it is right even if
// a timer is late, for example after a suspension. Err of a nil Permit, which Acquire returns
// with an error, is berth.ErrNotHeld.
func (p *Permit) Err() error {
	if p == nil {
		return berth.ErrNotHeld
	}
	return p.hold.Err()
}

// Left returns the time until the local deadline: berth.Forever for no end, 0 once the permit
// has ended. A renewal moves the deadline.
func (p *Permit) Left() time.Duration { return p.hold.Left() }

// Wanted returns a channel that is closed when somebody has asked for the permit back: an operator, or a claim
// that waits with WantAfter. The permit goes on: finish the work early if possible, and release. A server that
// loses its data forgets the request.
func (p *Permit) Wanted() <-chan struct{} { return p.hold.Wanted() }

// Release gives the permit back, and the same script grants the freed place to the first in
// line. The permit's context ends before anything is sent. Release may be called from several
// goroutines and more than once; after a success it returns nil.
//
// Release also works after ctx or the hold has ended. Release then waits for at most
// node.Config.CleanupTimeout; if the server has not answered by then, an open node keeps trying in
// the background.
//
// Release returns berth.ErrLost or berth.ErrExpired, which match berth.ErrNotHeld, if the
// server had ended the permit before; berth.ErrReleased if somebody else had released it; or
// the server's error. After the server's error the permit ends with its lease, and Release may
// be called again. Release of a nil Permit returns berth.ErrNotHeld.
func (p *Permit) Release(ctx context.Context) error {
	if p == nil {
		return berth.ErrNotHeld
	}
	return p.hold.Release(ctx)
}

// Renew restarts the lease from now. Permits renew by themselves unless NoRenew is set. Renew
// returns berth.ErrLost, berth.ErrExpired or berth.ErrReleased if the permit has ended, ctx's
// error, or the server's error.
func (p *Permit) Renew(ctx context.Context) error { return p.hold.Renew(ctx) }

// Detach ends the handle with berth.ErrReleased and stops renewals. The permit stays until its
// lease ends, even if the node is closed. The call restarts a lease that renews by itself; a
// fixed lease goes on. Semaphore.Resume, in this or any other process, makes a new handle from
// the token. Release of the old handle does nothing and returns nil, so a deferred Release may
// stay.
//
// Detach returns the errors of Renew. After the server's or ctx's error the permit may or may
// not be detached on the server; a detached permit ends with its lease. The handle lives on:
// call Detach again, or Release.
func (p *Permit) Detach(ctx context.Context) (berth.Token, error) {
	return p.face.Detach(ctx, p.hold)
}

// Resume takes over a detached permit of this semaphore, whichever process detached it. The node renews the
// permit if it was renewed before.
//
// Resume returns berth.ErrNotHeld if the permit has ended, berth.ErrReleased if another node has resumed or
// released it, and berth.ErrLost if this node was found dead meanwhile. Resume returns berth.ErrInvalidConfig
// for a token of another kind, namespace or name, and for a permit that is not detached.
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
