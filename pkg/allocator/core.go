package allocator

import (
	"cmp"
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/observe"
)

// core is a pool without its values: everything that does not depend on what the
// process makes of a resource.
type core struct {
	client   *Client
	name     string
	policy   Policy
	cooldown time.Duration
	shared   bool
	sharers  int
	turnID   string // of the turn that this node had last; the refresher's
	atOnce   int    // up to how many resources Inspect reads in one step

	// replacing has room for one: what this process replaces goes one after the other, so
	// that only another process can supersede it.
	replacing chan struct{}
}

// tell sends an event of the pool.
func (p *core) tell(ev observe.Event) {
	ev.Name = p.name
	p.client.tell.Send(ev)
}

// wants is what the server keeps of what a claim asks for; scripts/pool/wants.lua
// reads the same text.
func (p *core) wants(cooldown time.Duration, o AllocateOptions) string {
	kind := "o"
	if p.shared {
		kind = "s"
	}
	bindFor := int64(0)
	if o.BindFor != berth.Forever {
		bindFor = cmp.Or(o.BindFor, defaultBindFor).Milliseconds()
	}
	return p.policy.letter() + " " + kind + " " + line.Decimal(restMillis(cooldown)) + " " + line.Decimal(bindFor) + " " + o.Bind
}

// claim makes a claim on the pool.
func (p *core) claim(ctx context.Context, o AllocateOptions, wait bool) *engine.Claim {
	c := p.client
	return &engine.Claim{
		ID: c.node.Engine.ClaimID(), Name: p.name, MayWait: wait, Capacity: 1, Attrs: o.Attrs, Request: &request{},
		Record: engine.Record{
			Weight: 1, Wait: c.cfg.Lease, Lease: o.Lease, MaxHold: o.MaxHold,
			NoRenew: o.NoRenew || o.Lease == berth.Forever, Phase: 'w', Priority: o.Priority,
			Node: c.Node(), Owner: berth.Owner(ctx), Label: c.cfg.Label, Meta: o.Meta, Extra: p.wants(p.cooldown, o),
		},
	}
}

// acquire takes a claim to its hold.
func (p *core) acquire(ctx context.Context, claim *engine.Claim, maxWait time.Duration) (*engine.Hold, error) {
	if err := settings.Text("owner", claim.Record.Owner); err != nil {
		return nil, err
	}
	hold, err := p.client.node.Engine.Acquire(ctx, claim, maxWait)
	if err != nil {
		return nil, err
	}
	if p.shared {
		hold.Loosen()
	}
	return hold, nil
}

// allocateOnly leases one resource if it is free and nobody waits. It has no
// cooldown after that: nobody has used it. Its errors are those of Acquire.
func (p *core) allocateOnly(ctx context.Context, resource string) (*engine.Hold, error) {
	o := AllocateOptions{Lease: p.client.cfg.Lease}
	claim := p.claim(ctx, o, false)
	claim.Request.(*request).only = resource
	own := *p
	own.shared = false // what is being looked at is for nobody else
	claim.Record.Extra = own.wants(0, o)
	return p.client.node.Engine.Acquire(ctx, claim, 0)
}

// releaseResting gives a hold back, and has its resource rest.
func (p *core) releaseResting(ctx context.Context, h *engine.Hold, rest time.Duration, reason string) error {
	if h.Loose() {
		_ = h.Release(ctx) // sends nothing
		if rest == 0 {
			return nil
		}
		return p.rest(ctx, h.Resource(), rest, reason)
	}
	h.Claim().Request.(*request).ask(rest, reason)
	return h.Release(ctx)
}

// turn asks whether it is this node's turn to ask the source; left is how long it
// is until it may be. The next one may ask after every, unless stay moves that on.
func (p *core) turn(ctx context.Context, every time.Duration) (mine bool, left time.Duration, err error) {
	p.turnID = p.client.node.Engine.ClaimID()
	return p.refreshing(ctx, every, "0")
}

// stay moves on when the next one may ask the source, as the answer is not there yet.
func (p *core) stay(ctx context.Context, every time.Duration) error {
	_, _, err := p.refreshing(ctx, every, "1")
	return err
}

// absent returns those of the resources, up to 200, that are not in the pool.
func (p *core) absent(ctx context.Context, resources []string) ([]string, error) {
	_, page, err := p.describe(ctx, "", resources)
	var gone []string
	for _, info := range page {
		if info.State == Absent {
			gone = append(gone, info.Resource)
		}
	}
	return gone, err
}
