package line

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/settings"
	texts "github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// drainPause is how long after the begin of a pass over the names the next one begins.
const drainPause = time.Second

// Drain has processes get nothing new, asks for all that they hold, and cancels what they have waiting, until
// nothing is left, or within has passed (0 = as long as ctx): then what is left ends by force. It returns
// *berth.ConfigError, berth.ErrStale, ctx's error, or the server's errors.
func (n *Node) Drain(ctx context.Context, t berth.DrainTarget, within time.Duration) (berth.Drained, error) {
	if within < 0 {
		return berth.Drained{}, berth.Invalid("within", "%s is negative", within)
	}
	d := &drain{n: n, target: t, asked: make(map[string]bool)}
	if err := d.say(ctx, notice.Drain); err != nil {
		return berth.Drained{}, err
	}
	said := n.cfg.Clock.Now()
	for {
		began, before := n.cfg.Clock.Now(), d.found
		err := d.pass(ctx, false)
		now := n.cfg.Clock.Now()
		switch {
		case ctx.Err() != nil:
			d.found.Left, d.found.Detached = before.Left, before.Detached // it did not come to its end
			return d.found, scriptkit.CallersEnd(ctx)
		case err == nil && d.found.Left == 0 && began-said >= heard:
			return d.found, nil
		case within > 0 && now-said >= within:
			return d.end(ctx)
		}
		pause := began + drainPause - now
		if within > 0 {
			pause = min(pause, said+within-now)
		}
		timer := time.NewTimer(max(0, pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// StopDrain ends a drain of the same target: processes that have heard of the drain hear of its end within some
// seconds. It returns *berth.ConfigError, berth.ErrStale, or the server's errors.
func (n *Node) StopDrain(ctx context.Context, t berth.DrainTarget) error {
	return (&drain{n: n, target: t}).say(ctx, notice.Stop)
}

// drain is a walk over all names that asks processes for what they have.
type drain struct {
	n      *Node
	target berth.DrainTarget
	asked  map[string]bool // the claims that were asked for
	found  berth.Drained
}

// say sets the field of the target.
func (d *drain) say(ctx context.Context, word string) error {
	t := d.target
	field := notice.Node + t.Node
	switch {
	case (t.Node == "") == (t.Label == ""):
		return berth.Invalid("target", "a node or a label is needed, and not both")
	case t.Label != "":
		field = notice.Label + t.Label
		if err := settings.Text("Label", t.Label); err != nil {
			return err
		}
	default:
		if err := settings.Text("Node", t.Node); err != nil {
			return err
		}
	}
	_, err := d.n.say(ctx, d.n.Engine.ClaimID(), field, 0, word)
	return err
}

// matches says whether the target means a claim.
func (d *drain) matches(node, label string) bool {
	if d.target.Node != "" {
		return node == d.target.Node
	}
	return texts.Fits(d.target.Label, label)
}

// end ends the rest by force, and looks once more: a process that cannot read the notice may have taken
// something again.
func (d *drain) end(ctx context.Context) (berth.Drained, error) {
	if err := d.pass(ctx, true); err != nil {
		return d.found, err
	}
	err := d.pass(ctx, false)
	if err == nil && d.found.Left > 0 {
		err = fmt.Errorf("berth: %d claims came while the rest was ended by force: a process that has not heard goes on", d.found.Left)
	}
	return d.found, err
}

// pass goes through all names once.
func (d *drain) pass(ctx context.Context, force bool) error {
	d.found.Left, d.found.Detached = 0, 0
	_, err := each(ctx, d.n.allNames(ctx), func(name string) (int, error) { return 0, d.name(ctx, name, force) })
	return err
}

// name goes through the claims of a name: those that wait first, so that none of them is granted what the holds leave.
func (d *drain) name(ctx context.Context, name string, force bool) error {
	var errs []error
	for w, err := range d.n.Waiters(ctx, name) {
		if err == nil && d.matches(w.Node, w.Label) {
			err = d.cancel(ctx, name, w.ID, w.Node)
		}
		if err != nil {
			errs = append(errs, err)
		}
		if pointless(ctx, err) {
			return errors.Join(errs...)
		}
	}
	for h, err := range d.n.Holders(ctx, name) {
		if err == nil && d.matches(h.Node, h.Label) {
			err = d.hold(ctx, name, &h, force)
		}
		if err != nil {
			errs = append(errs, err)
		}
		if pointless(ctx, err) {
			break
		}
	}
	return errors.Join(errs...)
}

// cancel ends a wait. What was granted meanwhile is asked for by the next pass.
func (d *drain) cancel(ctx context.Context, name, id, node string) error {
	d.found.Left++
	ended, err := d.n.endBy(ctx, name, id, node, true)
	if ended {
		d.found.Cancelled++
	}
	return unlessOver(err)
}

// hold asks for a hold, or ends it.
func (d *drain) hold(ctx context.Context, name string, h *berth.Holder, force bool) error {
	switch {
	case h.Detached:
		d.found.Detached++
		return nil
	case force:
		d.found.Left++
		ended, err := d.n.forceRelease(ctx, name, h.ID, h.Node)
		if ended {
			d.found.Ended++
		}
		return unlessOver(err)
	}
	d.found.Left++
	if h.Wanted > 0 && d.asked[h.ID] {
		return nil
	}
	wanted, err := d.n.want(ctx, name, h.ID, h.Node)
	if wanted && !d.asked[h.ID] {
		d.asked[h.ID] = true
		d.found.Asked++
	}
	return unlessOver(err)
}

// unlessOver drops the error of a claim that has ended by itself meanwhile.
func unlessOver(err error) error {
	if errors.Is(err, berth.ErrNotHeld) {
		return nil
	}
	return err
}
