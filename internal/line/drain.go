package line

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/state"
	texts "github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// drainPause is how long after the begin of a pass over the names the next one begins.
const drainPause = time.Second

// Drain has processes get nothing new, asks for all that they hold, and cancels what they have waiting, until nothing is
// left or, with Force, ForceAfter has passed: then what is left ends by force. It returns
// *berth.ConfigError, berth.ErrOvertaken, errOver, ctx's error, or the server's errors: of names that cannot be read alone where
// nothing else is left, and beside ctx's error and errOver those of the last pass.
func (p *Process) Drain(ctx context.Context, t berth.DrainTarget, o *berth.DrainOptions) (berth.Drained, error) {
	opts := cmp.Or(o, &berth.DrainOptions{})
	if err := CheckDrain(opts); err != nil {
		return berth.Drained{}, err
	}
	ctx = scriptkit.For(ctx, "Drain")
	d := &drain{p: p, target: t, opts: opts, asked: make(map[string]bool)}
	what := notice.Drain
	if opts.Reason != "" {
		what += " " + opts.Reason
	}
	if err := d.say(ctx, opts.For, what); err != nil {
		return berth.Drained{}, err
	}
	if said := p.Clock.Now(); opts.For > 0 {
		limited, cancel := scriptkit.Limit(ctx, opts.For)
		defer cancel()
		found, err := d.goOn(limited, said)
		if (limited.Err() != nil || errors.Is(err, errOver)) && scriptkit.CallersEnd(ctx) == nil && !errors.Is(err, berth.ErrOvertaken) {
			err = errors.Join(fmt.Errorf("%w after %s, with %d holds and waits left", errOver, opts.For, found.Left), d.last)
		}
		return found, err
	}
	return d.goOn(ctx, p.Clock.Now())
}

// over is the error of a drain that has ended by itself before it was done. It matches berth.ErrAbsent.
type over struct{}

func (over) Error() string        { return "berth: the drain has ended by itself" }
func (over) Is(target error) bool { return target == berth.ErrAbsent }

var errOver error = over{}

// CheckDrain says what is wrong with the options of a drain: a *berth.ConfigError for the field, in words that fit a flag, too.
func CheckDrain(o *berth.DrainOptions) error {
	if err := settings.Duration("For", o.For); o.For != 0 && err != nil {
		return err
	}
	switch {
	case o.For < 0 || o.For > notice.MostPause:
		return berth.Invalid("For", "%s: it is above 0 and at most %s, or 0 for no end", o.For, notice.MostPause)
	case o.Force && o.ForceAfter <= 0:
		return berth.Invalid("ForceAfter", "%s: it is above 0 where the rest is ended by force", o.ForceAfter)
	case !o.Force && o.ForceAfter != 0:
		return berth.Invalid("Force", "to end the rest by force after a time needs it")
	case o.Force && o.For > 0 && o.ForceAfter >= o.For:
		return berth.Invalid("ForceAfter", "%s: by then the drain has ended by itself, after %s", o.ForceAfter, o.For)
	}
	return settings.Text("Reason", o.Reason)
}

// goOn goes over the names, since the drain was said, until it is done.
func (d *drain) goOn(ctx context.Context, said time.Duration) (berth.Drained, error) {
	p, within := d.p, d.opts.ForceAfter
	for {
		began := p.Clock.Now()
		asking, cancel := ctx, context.CancelFunc(func() {})
		if within > 0 {
			asking, cancel = scriptkit.Limit(ctx, max(0, said+within-began))
		}
		err := d.pass(asking, false)
		cut := asking.Err() != nil
		cancel()
		now, end := p.Clock.Now(), scriptkit.CallersEnd(ctx)
		switch {
		case errors.Is(err, berth.ErrOvertaken):
			return d.found, err
		case end != nil || ctx.Err() != nil || errors.Is(err, errOver):
			return d.found, errors.Join(end, cmp.Or(d.last, err))
		case !cut && d.found.Left == 0 && !d.failed && began-said >= notice.Heard:
			return d.found, err
		case cut || within > 0 && now-said >= within:
			return d.end(ctx)
		}
		if d.last = err; d.opts.Each != nil {
			d.opts.Each(d.found)
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
// seconds. It returns *berth.ConfigError, berth.ErrOvertaken, or the server's errors.
func (p *Process) StopDrain(ctx context.Context, t berth.DrainTarget) error {
	return (&drain{p: p, target: t}).say(scriptkit.For(ctx, "StopDrain"), 0, notice.Stop)
}

// drain is a walk over all claims that asks processes for what they have.
type drain struct {
	p      *Process
	target berth.DrainTarget
	opts   *berth.DrainOptions
	field  string          // of the notice
	number int64           // what the field had when it was set
	asked  map[string]bool // the claims that were asked for
	found  berth.Drained

	last   error   // of the pass before
	errs   []error // of this pass
	whole  bool    // this pass has met all that is in use
	failed bool    // this pass has met an error that is not that of a name, or of a claim, that cannot be read
}

// say sets the field of the target.
func (d *drain) say(ctx context.Context, lasts time.Duration, what string) (err error) {
	switch t := d.target; {
	case (t.Node == "") == (t.Label == ""):
		return berth.Invalid("target", "a node or a label is needed, and not both")
	case t.Label != "":
		d.field, err = notice.Label+t.Label, settings.Text("Label", t.Label)
	default:
		d.field, err = notice.Node+t.Node, settings.Text("Node", t.Node)
	}
	if err == nil {
		d.number, err = d.p.say(ctx, lasts, what, d.field)
	}
	return err
}

// goesOn returns berth.ErrOvertaken if another call has changed the drain, or the server has lost it; errOver if it has ended by itself.
func (d *drain) goesOn(ctx context.Context) error {
	told, now, err := readNotice(ctx, &d.p.Config, d.field)
	if err != nil {
		return err
	}
	f := told[0]
	if _, goesOn := f.Drains(now); f.Number == d.number && !goesOn {
		return errOver
	}
	if f.Number != d.number {
		return &berth.OvertakenError{Changed: cmp.Or(drained(f.What), "forgotten")}
	}
	return nil
}

// means says whether the target means a claim.
func (d *drain) means(c *reader.Listed) bool {
	node, label := "", ""
	if h := c.Holder; h != nil {
		node, label = h.Node, h.Label
	} else {
		node, label = c.Waiter.Node, c.Waiter.Label
	}
	if d.target.Node != "" {
		return node == d.target.Node
	}
	return texts.Fits(d.target.Label, label)
}

// end ends the rest by force, and looks once more, whatever came of that. What waited may have been granted before it was
// cancelled, so that is done twice; what is there then was taken by a process that cannot read the notice.
func (d *drain) end(ctx context.Context) (_ berth.Drained, err error) {
	var forced error
	for range 2 {
		if forced = d.pass(ctx, true); errors.Is(forced, berth.ErrOvertaken) || errors.Is(forced, errOver) {
			return d.found, forced
		}
		if forced == nil && d.whole && ctx.Err() == nil { // all that it has met has ended
			d.found.Left, d.found.Some = 0, nil
		}
		if err = d.pass(ctx, false); d.found.Left == 0 || ctx.Err() != nil {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		err = errors.Join(scriptkit.CallersEnd(ctx), forced)
	case d.found.Left > 0 && forced != nil:
		err = errors.Join(forced, err)
	case d.found.Left > 0:
		err = errors.Join(fmt.Errorf(
			"berth: %d claims came while the rest was ended by force: a process that has not heard goes on", d.found.Left), err)
	}
	return d.found, err
}

// pass goes once through the claims of all names that are in use, if the drain goes on: of a name through those that
// wait first, so that none of them is granted what the holds leave.
func (d *drain) pass(ctx context.Context, force bool) error {
	before := d.found
	defer func() {
		if d.whole && ctx.Err() == nil {
			return
		}
		if d.found.Left < before.Left { // the pass has not met all: the rest may be there yet
			d.found.Left, d.found.Some = before.Left, before.Some
		}
		d.found.Detached = max(d.found.Detached, before.Detached)
	}()
	d.found.Left, d.found.Detached, d.found.Some, d.errs, d.whole, d.failed = 0, 0, nil, nil, false, false
	if err := d.goesOn(ctx); err != nil {
		d.failed = true
		return err
	}
	which := reader.Which{
		Walk: reader.Walk{Redis: d.p.Redis, Kinds: Kinds}, Holds: true, Waits: true, Keep: d.means,
	}
	met := make(map[string]bool)
	d.whole = true
	for cursor, more := "", true; more; more = cursor != "" && ctx.Err() == nil {
		page, err := d.p.decide.ClaimsPage(ctx, which, cursor, reader.Most)
		for _, err := range append(page.Problems, err) {
			d.whole = !d.note(err) && d.whole
		}
		d.claims(ctx, page.Claims, met, force)
		cursor = page.Next
	}
	return errors.Join(d.errs...)
}

// claims goes through claims of a page, each once in a pass. Where they go unanswered one after the other, the rest are
// counted, and left to the next pass.
func (d *drain) claims(ctx context.Context, listed []reader.Listed, met map[string]bool, force bool) {
	unanswered, asks := 0, true
	for i := range listed {
		err := d.claim(ctx, &listed[i], met, force, asks)
		if !errors.Is(err, berth.ErrNotHeld) { // else it has ended by itself
			d.note(err)
		}
		if unanswered++; !errors.Is(err, berth.ErrUnavailable) {
			unanswered = 0
		}
		if ctx.Err() != nil || unanswered == mostUnanswered {
			asks = false
		}
	}
}

// claim counts a claim and, if it asks, cancels a wait, or asks for a hold, or ends it. What was granted meanwhile is asked
// for by the next pass.
func (d *drain) claim(ctx context.Context, c *reader.Listed, met map[string]bool, force, asks bool) error {
	switch w, h := c.Waiter, c.Holder; {
	case w == nil && !met[h.ID]:
		if met[h.ID] = true; !h.Detached {
			d.left(berth.Unfinished{Ref: berth.Ref{Kind: c.Kind, Name: c.Name}, Claim: h.ID, Node: h.Node, Label: h.Label})
		}
		if asks || h.Detached {
			return d.hold(ctx, d.p.Face(c.Kind), c.Name, h, force)
		}
	case w != nil && !met[w.ID]:
		met[w.ID] = true
		d.left(berth.Unfinished{Ref: berth.Ref{Kind: c.Kind, Name: c.Name}, Claim: w.ID, Node: w.Node, Label: w.Label, Waits: true})
		if asks {
			return d.cancel(ctx, d.p.Face(c.Kind), c.Name, w.ID, w.Node)
		}
	}
	return nil
}

// left counts what the pass has found.
func (d *drain) left(u berth.Unfinished) {
	if d.found.Left++; len(d.found.Some) < someLeft {
		d.found.Some = append(d.found.Some, u)
	}
}

// someLeft is how many claims of what is left are named.
const someLeft = 10

// note keeps an error of the pass, unless it says what the last one says. It returns whether the pass has failed by it.
func (d *drain) note(err error) bool {
	if err == nil {
		return false
	}
	if n := len(d.errs); n == 0 || d.errs[n-1].Error() != err.Error() {
		d.errs = append(d.errs, err)
	}
	failed := !errors.Is(err, state.ErrDamaged) && !errors.Is(err, berth.ErrIncompatible)
	d.failed = d.failed || failed
	return failed
}

// cancel ends a wait.
func (d *drain) cancel(ctx context.Context, f *Face, name, id, node string) error {
	ended, err := f.endBy(ctx, name, id, node, true)
	if ended {
		d.found.Cancelled++
	}
	return err
}

// hold asks for a hold, or ends it.
func (d *drain) hold(ctx context.Context, f *Face, name string, h *berth.Holder, force bool) error {
	switch {
	case h.Detached:
		d.found.Detached++
		return nil
	case force:
		ended, err := f.forceRelease(ctx, name, h.ID, h.Node)
		if ended {
			d.found.Ended++
		}
		return err
	}
	if h.Wanted > 0 && d.asked[h.ID] {
		return nil
	}
	wanted, err := f.want(ctx, name, h.ID, h.Node)
	if wanted && !d.asked[h.ID] {
		d.asked[h.ID] = true
		d.found.Asked++
	}
	return err
}
