package semaphore

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
)

// Permit is what Acquire grants. It is safe for concurrent use. A permit that
// is neither released nor lost is renewed until the client is closed.
type Permit struct {
	client *Client
	hold   *engine.Hold
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

// Node is the id of the client's node that holds it.
func (p *Permit) Node() string { return p.hold.Node() }

// Granted is when this process heard of the grant, or resumed the hold, by its own clock.
func (p *Permit) Granted() time.Time { return p.hold.Granted() }

// Lease is the lease that was asked for, berth.Forever for none.
func (p *Permit) Lease() time.Duration { return p.hold.Lease() }

// Waited is how long the acquire took.
func (p *Permit) Waited() time.Duration { return p.hold.Waited() }

// Context carries the values of the acquiring context but not its end. It ends
// with the permit; context.Cause says why: berth.ErrLost, berth.ErrExpired,
// berth.ErrReleased or berth.ErrClosed.
func (p *Permit) Context() context.Context { return p.hold.Context() }

// Within returns a context that ends with ctx or with the permit, whichever
// comes first, and that carries the permit's owner. Call the CancelFunc when what
// runs under it is done.
func (p *Permit) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return p.hold.Within(ctx)
}

// Done is closed when the permit has ended.
func (p *Permit) Done() <-chan struct{} { return p.hold.Context().Done() }

// Err is nil while the permit lives; afterwards berth.ErrLost, berth.ErrExpired,
// berth.ErrReleased or berth.ErrClosed. It looks at the clock itself, so it is
// right even where a timer is late, as after a suspension.
func (p *Permit) Err() error { return p.hold.Err() }

// Left is how long the holder may still believe in the permit if nothing renews
// it, by the local deadline: berth.Forever for no end, 0 once it has ended. A
// renewal lengthens it.
func (p *Permit) Left() time.Duration { return p.hold.Left() }

// Release gives the permit back, to the first in line if somebody waits. The
// permit's context ends before anything is sent. Release may be called more than
// once and from several goroutines, and is nil ever after it has succeeded; it
// works after ctx has ended, and then waits for at most Config.CleanupTimeout; what
// is not answered by then goes on in the background, where the client is open.
//
// It returns berth.ErrLost or berth.ErrExpired, which match berth.ErrNotHeld, if
// the server had ended the permit before; berth.ErrReleased if somebody else had given it
// back; or the server's error: then the permit ends with its lease, and Release
// may be called again.
func (p *Permit) Release(ctx context.Context) error { return p.hold.Release(ctx) }

// Renew sets the end of the lease anew, counted from now. Permits renew by
// themselves unless NoRenew was set. It returns berth.ErrLost, berth.ErrExpired
// or berth.ErrReleased if the permit has ended, ctx's error, or the server's.
func (p *Permit) Renew(ctx context.Context) error { return p.hold.Renew(ctx) }

// Detach stops renewing and keeps the permit until its lease ends, also through
// Close of the client. A lease that renews by itself starts anew with the call, a
// fixed one goes on. The handle ends with berth.ErrReleased: whoever has the token,
// this process too, takes the permit up with Client.Resume and works on under that
// handle. Release does nothing from then on and returns nil, so that a deferred one
// may stay.
//
// Its errors are those of Renew. After the server's or ctx's error the permit stays
// this handle's, detached on the server or not, and ends with its lease if it is:
// call Detach again, or Release.
func (p *Permit) Detach(ctx context.Context) (berth.Token, error) {
	return p.client.node.Detach(ctx, p.hold)
}

// Resume takes up a permit that was detached, in this or another process. It is
// renewed again if it was before. It returns berth.ErrNotHeld if the permit has
// ended, berth.ErrReleased if another node has resumed or released it,
// berth.ErrInvalidConfig for a token of another kind or namespace, or for a
// permit that is not detached.
func (c *Client) Resume(ctx context.Context, token berth.Token) (*Permit, error) {
	hold, err := c.node.Resume(ctx, token)
	if err != nil {
		return nil, err
	}
	return &Permit{client: c, hold: hold}, nil
}
