package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// tick is how often the director looks.
const tick = 50 * time.Millisecond

// plan is how an act goes.
type plan struct {
	workers  int
	capacity int
	lease    time.Duration
	length   time.Duration // about how long it lasts, for the scale of its picture
	askEvery time.Duration // between two workers that ask

	victim    int           // the worker that is killed
	killAfter time.Duration // how long the victim is inside at least

	order func(worker int) order          // what a worker is to do
	due   func(s *story, worker int) bool // what must have happened before a worker asks; nil for nothing
	stays func(s *story, worker int) bool // whether a worker has to stay inside, whatever it was to do
}

// thing is what the workers contend for, as the server knows it.
type thing interface {
	// holders are those that hold it.
	holders(ctx context.Context) ([]berth.Holder, error)
	// waiting is how many wait for it.
	waiting(ctx context.Context) (int, error)
}

// onServer is what one name is.
type onServer struct {
	read *inspect.Reader
	kind keyspace.Kind
	name string
}

func (s *stage) onServer(redis rueidis.Client, kind keyspace.Kind, name string) (thing, error) {
	read, err := inspect.New(redis, inspect.Config{Namespace: namespace})
	return onServer{read, kind, name}, err
}

func (o onServer) holders(ctx context.Context) ([]berth.Holder, error) {
	page, err := o.read.Holders(ctx, o.kind, o.name, "", 0)
	return page.Items, errors.Join(append(page.Problems, err)...)
}

func (o onServer) waiting(ctx context.Context) (int, error) {
	n, err := o.read.Name(ctx, o.kind, o.name)
	return n.Waiting, err
}

// director leads a crew through an act. One goroutine owns it.
type director struct {
	plan    plan
	stage   *stage
	story   *story
	view    view
	thing   thing
	reports <-chan report
	pending []report // not told yet: an older one may be on its way
	next    int      // the worker that asks next
	askAt   time.Duration
	killAt  moment   // when to kill the victim
	victim  string   // the victim's claim
	late    lateness // of this machine's timers since the victim was killed
}

// slower is a plan whose spans are so many times as long. Leases stay.
func (p plan) slower(times time.Duration) plan {
	quick := p.order
	p.length, p.askEvery, p.killAfter = times*p.length, times*p.askEvery, times*p.killAfter
	if quick == nil {
		return p
	}
	p.order = func(worker int) order {
		o := quick(worker)
		o.Work, o.Again, o.Rest = times*o.Work, times*o.Again, times*o.Rest
		return o
	}
	return p
}

// direct plays an act by its plan.
func (s *stage) direct(ctx context.Context, p plan, thing thing) (*evidence, error) {
	p.lease = cmp.Or(s.opts.Lease, p.lease)
	p = p.slower(time.Duration(max(1, s.opts.Slow)))
	d := &director{plan: p, stage: s, story: newStory(p), thing: thing, next: 1}
	if err := d.play(ctx); err != nil {
		return nil, err
	}
	holders, err := thing.holders(ctx)
	if err != nil {
		return nil, err
	}
	waiting, err := thing.waiting(ctx)
	return &evidence{d.story, len(holders), waiting, 2 * (d.late.worst() + s.late())}, err
}

func (d *director) play(ctx context.Context) error {
	var err error
	if d.reports, err = d.stage.hire(d.plan); err != nil {
		return err
	}
	if err := d.gather(ctx); err != nil {
		return err
	}
	defer d.late.stop()
	d.view = d.stage.newView(d.story)
	defer d.view.end()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	d.story.begin = time.Now()
	for !d.over() {
		if err := d.step(ctx); err != nil {
			return err
		}
		d.view.draw(d.now())
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// now is how long the act has been going on.
func (d *director) now() time.Duration { return *d.story.at(time.Now()) }

// gather waits until all workers are up.
func (d *director) gather(ctx context.Context) error {
	for up := 0; up < d.plan.workers; {
		select {
		case r := <-d.reports:
			if r.Kind != ready {
				return fmt.Errorf("demo: worker %d: %s", r.worker, r.Text)
			}
			d.story.turn(r.worker).process = d.stage.member(r.worker).cmd.Process.Pid
			up++
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// over reports whether all workers have ended and everything is told.
func (d *director) over() bool {
	return len(d.pending) == 0 && !slices.ContainsFunc(d.story.turns, func(t *turn) bool { return t.exited == nil })
}

// step takes what was reported, tells in the order in which it happened what nothing
// older can precede any more, and does what is due.
func (d *director) step(ctx context.Context) error {
	heard := d.stage.heard() // before what has been passed on is taken
	for more := true; more; {
		select {
		case r := <-d.reports:
			d.pending = append(d.pending, r)
		default:
			more = false
		}
	}
	slices.SortStableFunc(d.pending, func(a, b report) int { return a.At.Compare(b.At) })
	for len(d.pending) > 0 && d.pending[0].At.Before(heard) && d.pending[0].At.Before(time.Now()) {
		d.take(d.pending[0])
		d.pending = d.pending[1:]
	}
	if d.killAt != nil && d.now() >= *d.killAt && !d.plan.stays(d.story, d.plan.victim) {
		d.killAt = nil
		if err := d.kill(ctx); err != nil {
			return err
		}
	}
	if err := d.dismiss(); err != nil {
		return err
	}
	if d.next <= d.plan.workers && d.now() >= d.askAt && d.answered() && (d.plan.due == nil || d.plan.due(d.story, d.next)) {
		return d.ask()
	}
	return nil
}

// answered reports whether the last worker that asked stands in line or is
// inside; only then the order of asking is the order of arrival.
func (d *director) answered() bool {
	if d.next == 1 {
		return true
	}
	last := d.story.turn(d.next - 1)
	return last.queued != nil || last.granted != nil
}

func (d *director) ask() error {
	t := d.story.turn(d.next)
	t.asked = d.story.at(time.Now())
	if err := d.stage.member(d.next).tell(d.plan.order(d.next)); err != nil {
		return fmt.Errorf("demo: worker %d: %w", d.next, err)
	}
	d.next++
	d.askAt = *t.asked + d.plan.askEvery
	return nil
}

// dismiss tells those to leave that have done their work, but the victim.
func (d *director) dismiss() error {
	for _, t := range d.story.turns {
		if t.granted == nil || t.told || t.worker == d.plan.victim ||
			d.now() < *t.granted+d.plan.order(t.worker).Work || d.plan.stays(d.story, t.worker) {
			continue
		}
		t.told = true
		if err := d.stage.member(t.worker).tell(order{}); err != nil {
			return fmt.Errorf("demo: worker %d: %w", t.worker, err)
		}
	}
	return nil
}

// untilTwoAsked has a worker stay until the two that come next have asked. So all that
// come after the first ones stand in line, however busy the machine is.
func untilTwoAsked(s *story, worker int) bool {
	next := s.turn(min(worker+2, len(s.turns)))
	return next.queued == nil && next.granted == nil
}

// kill kills the victim, and asks the server how long its lease still lasts: that
// counts from a moment after the victim's death and before the answer is read,
// however far apart a busy machine moves these two.
func (d *director) kill(ctx context.Context) error {
	victim := d.plan.victim
	if err := d.stage.member(victim).kill(); err != nil {
		return err
	}
	dead := time.Now()
	d.late.start()
	holders, err := d.thing.holders(ctx)
	if err != nil {
		return err
	}
	answered := time.Now()
	for _, holder := range holders {
		if holder.ID == d.victim {
			t := d.story.turn(victim)
			t.killed, t.overBy = d.story.at(dead), d.story.at(answered.Add(holder.Left))
			text := "is killed with SIGKILL; its lease has " + short(holder.Left) + " left"
			d.pending = append(d.pending,
				report{Kind: killed, At: dead, worker: victim, Text: text},
				report{Kind: leaseEnd, At: dead.Add(holder.Left), worker: victim})
			return nil
		}
	}
	return fmt.Errorf("demo: worker %d was inside, and the server does not know it", victim)
}
