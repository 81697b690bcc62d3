package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth/pkg/semaphore"
)

const (
	workers = 8
	victim  = 3 // the worker that is killed: one that had to wait

	tick      = 50 * time.Millisecond  // how often the director looks
	settle    = 60 * time.Millisecond  // how old a report must be, so that none before it is still on its way
	askEvery  = 250 * time.Millisecond // between two workers that ask
	killAfter = 600 * time.Millisecond // how long the victim is inside
)

// work is how long a worker stays inside: not equally long, or all would look
// alike.
func work(worker int) time.Duration {
	return 1200*time.Millisecond + time.Duration(worker*37%5)*80*time.Millisecond
}

var semaphoreAct = act{
	title: "Berth demo: a semaphore between processes",
	about: fmt.Sprintf(`Here are %d processes and a workshop with room for %d of them. Each asks for a
place, waits in line until it is its turn, works, and gives its place back.
Worker %d will be killed (SIGKILL) while it is inside, and cannot give its place
back: it comes free when its lease of %s ends.

No Redis is needed: the server is built into this demo. The processes are real.
`, workers, capacity, victim, lease),
	next: `What this was: a hand-off is one script on the server, which frees a place and
grants it to the next in line in the same step; that one process is told. Nobody
polls, nobody can jump the line, and whoever dies loses its place by itself.

With a Redis or Valkey you can have the same for any command, for instance in
two terminals at once:

  berth run --sem workshop --capacity 1 -- sleep 10
  berth sem show workshop

'berth run --help' says more; in Go it is package pkg/semaphore.`,
	play: playSemaphore,
}

// director leads the crew through the act of the semaphore. One goroutine owns
// it.
type director struct {
	stage   *stage
	story   *story
	view    view
	sem     *semaphore.Semaphore
	reports <-chan report
	pending []report // not old enough to be told yet
	next    int      // the worker that asks next
	askAt   time.Duration
	killAt  moment   // when the victim is to be killed
	victim  string   // the victim's claim
	late    lateness // of this machine's timers since the victim was killed
}

func playSemaphore(ctx context.Context, s *stage) ([]fact, error) {
	redis, err := s.server.Client()
	if err != nil {
		return nil, err
	}
	defer redis.Close()
	client, err := semaphore.New(redis, semaphore.Config{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close(context.WithoutCancel(ctx)) }() // it holds nothing
	sem, err := client.Semaphore(name, capacity)
	if err != nil {
		return nil, err
	}
	d := &director{stage: s, story: newStory(workers, capacity), sem: sem, next: 1}
	if err := d.play(ctx); err != nil {
		return nil, err
	}
	stats, err := sem.Stats(ctx)
	if err != nil {
		return nil, err
	}
	return (&evidence{d.story, stats, d.late.worst()}).facts(), nil
}

func (d *director) play(ctx context.Context) error {
	var err error
	if d.reports, err = d.stage.hire(workers); err != nil {
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
		if err := d.direct(ctx); err != nil {
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
	for up := 0; up < workers; {
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

// direct takes what was reported, tells what is old enough in the order in which
// it happened, and does what is due.
func (d *director) direct(ctx context.Context) error {
	for more := true; more; {
		select {
		case r := <-d.reports:
			d.pending = append(d.pending, r)
		default:
			more = false
		}
	}
	slices.SortStableFunc(d.pending, func(a, b report) int { return a.At.Compare(b.At) })
	settled := time.Now().Add(-settle)
	for len(d.pending) > 0 && d.pending[0].At.Before(settled) {
		d.take(d.pending[0])
		d.pending = d.pending[1:]
	}
	if d.killAt != nil && d.now() >= *d.killAt {
		d.killAt = nil
		if err := d.kill(ctx); err != nil {
			return err
		}
	}
	if d.next <= workers && d.now() >= d.askAt && d.answered() {
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
	if err := d.stage.member(d.next).tell(order{Work: work(d.next)}); err != nil {
		return fmt.Errorf("demo: worker %d: %w", d.next, err)
	}
	d.next++
	d.askAt = *t.asked + askEvery
	return nil
}

// kill kills the victim, and asks the server how long its lease still lasts.
func (d *director) kill(ctx context.Context) error {
	if err := d.stage.member(victim).kill(); err != nil {
		return err
	}
	dead := time.Now()
	d.late.start()
	for holder, err := range d.sem.Holders(ctx) {
		if err != nil {
			return err
		}
		if holder.ID == d.victim {
			t := d.story.turn(victim)
			t.killed = d.story.at(dead)
			d.view.tell(*t.killed, t, "is killed with SIGKILL; its lease has "+short(holder.Left)+" left")
			d.pending = append(d.pending, report{Kind: leaseEnd, At: time.Now().Add(holder.Left), worker: victim})
			return nil
		}
	}
	return fmt.Errorf("demo: worker %d was inside, and the server does not know it", victim)
}
