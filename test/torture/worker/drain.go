package main

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/test/torture/history"
)

const (
	// heard is how long a drain takes at the least, by when who reaches the server has heard of it.
	heard = 7 * time.Second
	// drainLimit bounds a drain. While the server answers it takes not much longer than heard.
	drainLimit = 20 * time.Second
	// firstLook is how long, in ms, a node takes for its first look at what operators have said, at the most.
	firstLook = 2000
)

// drain has the node of a crew drained, by its id or by its label, and writes it down: one call for all that the node has of
// each primitive. The crew works before for half of its life at the most, goes on meanwhile, and for a moment afterwards; some
// drains are ended then.
func (w *worker) drain(c *crew, draw *dice) {
	var target berth.DrainTarget
	if draw.oneIn(2) {
		pause(draw.between(0, w.job.Life/4), w.draining)
		target.Node = c.node.ID()
	} else {
		// Who has the label for longer than its first look at the notice may take does not take the drain for an older one.
		pause(draw.between(firstLook, firstLook+w.job.Life/4), w.draining)
		target.Label = c.label
	}
	if w.drains() {
		return
	}
	by := c.node.Operator()
	if draw.oneIn(2) {
		other := w.node(w.job.Process+"/operator", false, nil)
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), w.closeLimit())
			defer cancel()
			_ = other.Close(ctx) // it holds nothing
		}()
		by = other.Operator()
	}
	var within time.Duration
	if draw.oneIn(2) {
		within = heard + draw.between(0, 500) // then what is left ends by force
	}
	w.tell(c, history.Drain, drainLimit, func(ctx context.Context) error {
		_, err := by.Drain(ctx, target, &berth.DrainOptions{Force: within > 0, ForceAfter: within})
		return err
	})
	pause(draw.between(0, 1000), w.draining)
	if draw.oneIn(2) && !w.drains() {
		w.tell(c, history.StopDrain, w.closeLimit(), func(ctx context.Context) error { return by.StopDrain(ctx, target) })
		pause(draw.between(0, 1000), w.draining)
	}
}

// tell makes a call about the node of a crew, which ends with the work of this process, and writes it down.
func (w *worker) tell(c *crew, do string, limit time.Duration, call func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	go func() {
		select {
		case <-w.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	e := w.log.begin(history.Event{Do: do, Primitive: whole, Node: c.node.ID(), Crew: c.number, Bounded: true})
	err := call(ctx)
	w.log.end(e, answer(err), err)
}
