package line

import (
	"context"
	"time"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Kind is what only one kind has. Its functions are about all claims of the kind, whoever has made them.
type Kind struct {
	// Kind is that of its keys.
	Kind keyspace.Kind
	// Of is what the kind keeps of a process; nil for nothing.
	Of any
	// Scripts are those of what every kind does.
	Scripts Scripts
	// Parts are keys of a name beyond its state and its line, for scripts that take
	// them.
	Parts []string

	// AcquireArgs returns what only the kind's acquire takes of a claim: whether it may wait, 0, 1
	// or what only that script knows, what is to happen where another capacity is stored, and the kind's own arguments.
	AcquireArgs func(c *engine.Claim) (waits, policy string, own []string)
	// AcquireReply adds to an answer what only the kind's acquire says, such as extra, and why nothing
	// was got; nil for nothing. A thin name's answer is whole already.
	AcquireReply func(c *engine.Claim, a engine.Answer, extra string) (engine.Answer, error)
	// ReleaseArgs returns what only the kind's release takes of a claim; nil for nothing.
	ReleaseArgs func(c *engine.Claim) (own []string)
	// ReleaseReply adds to the end of a hold what only the kind's release says of it; nil for nothing.
	ReleaseReply func(c *engine.Claim, p engine.Parting, extra string) (engine.Parting, error)
	// Empty is told that a pool on which claims of this process wait has no resources;
	// nil for nobody.
	Empty func(name string)
	// Swept is given what only the kind's own sweep tells; nil for nobody.
	Swept func(name string, told []string)
	// Request returns the Request of a claim that is resumed; nil for none.
	Request func() any
	// Trial goes through the scripts of an uncontended claim; nil for the way of names that need nothing else.
	Trial func(ctx context.Context) error
}

// Scripts are those of a kind for what every kind does.
type Scripts struct {
	Acquire, Release, Renew, Resume, Restore, Sweep, ForceRelease, Pause, Want *scriptkit.Script
	// Requeue and ForceHold are of locks alone.
	Requeue, ForceHold *scriptkit.Script
}

// Face is a node as one kind sees it: the calls of that kind, and the engine that carries the claims of all kinds.
type Face struct {
	*Calls
	Engine *engine.Engine
	Node   *Node
}

// trialName begins the names that trials are on.
const trialName = "berth check "

// trial goes through the scripts of an uncontended claim, on a name of its own: those of a thin
// name, and with a lease that a thin name does not take the kind's own.
func (f *Face) trial(ctx context.Context) error {
	if f.kind.Trial != nil {
		return f.kind.Trial(ctx)
	}
	lease, label := f.cfg.Settings.Lease, f.cfg.Settings.Label
	for _, length := range []time.Duration{lease, 2 * lease} {
		claim := &engine.Claim{
			ID: f.Engine.ClaimID(), Kind: f.kind.Kind, Name: trialName + f.ID, Capacity: 1,
			Record: engine.Record{Weight: 1, Wait: lease, Lease: length, Phase: 'w', Node: f.ID, Label: label},
		}
		if _, err := f.Acquire(ctx, claim); err != nil {
			return err
		}
		if _, err := f.Beat(ctx, claim.Name, engine.ModeBeat, []*engine.Claim{claim}); err != nil {
			return err
		}
		if _, err := f.Release(ctx, claim, 0); err != nil {
			return err
		}
	}
	return nil
}

// newFace returns a node as a kind sees it.
func newFace(n *Node, k *Kind) *Face {
	cfg := n.p.Config
	return &Face{Engine: n.Engine, Node: n, Calls: &Calls{
		ID:      n.ID,
		Linger:  Decimal(cfg.Settings.Linger.Milliseconds()),
		Tell:    cfg.Tell.from(n.ID, k.Kind),
		Decide:  n.p.decide,
		cfg:     cfg,
		kind:    k,
		channel: cfg.Space.Wake(""),
		thin:    k.Kind != keyspace.Pool,
		waits:   &n.waits,
	}}
}
