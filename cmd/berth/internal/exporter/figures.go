package exporter

import (
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/once"
)

// figures are those of all names of a class: sums, of times the longest, and of moments the first.
type figures struct {
	names, paused, full       int
	capacity, held            int
	free, resting             int // resources of pools
	longestHold, longestPause time.Duration
	stuck                     map[string]int // of the names that nobody waits for, by why they are

	waiting    int
	oldestWait time.Duration
	waited     map[string]int // stuck ones that somebody waits for, likewise

	failed       int       // of the kind once: how many names' newest run has failed
	success, due time.Time // zero for none
	period       time.Duration
}

// census is what was found of names, by their class.
type census struct {
	began time.Time // by the clock of this process: nothing of it is older
	of    map[class]*figures
	part  int     // how many names have more holds than were read: one of these may last longer
	bad   []error // why names are missing
}

func newCensus() *census { return &census{began: time.Now(), of: map[class]*figures{}} }

func figuresOf(all map[class]*figures, of class) *figures {
	f := all[of]
	if f == nil {
		f = &figures{stuck: map[string]int{}, waited: map[string]int{}}
		all[of] = f
	}
	return f
}

// add adds a name.
func (c *census) add(of class, n *berth.Name) {
	f := figuresOf(c.of, of)
	f.names++
	if n.Trouble.Level == berth.LevelStuck && n.Live() == 0 {
		f.stuck[n.Trouble.Why]++
	}
	if n.Err != nil {
		return
	}
	if n.Partial {
		c.part++
	}
	if n.Pause != nil {
		f.paused++
		if since := n.Pause.Since; !since.IsZero() {
			f.longestPause = max(f.longestPause, n.At.Sub(since))
		}
	}
	if n.Runs != nil {
		if n.Runs.Outcome == string(once.Failed) {
			f.failed++
		}
		f.success, f.due = first(f.success, n.Runs.Success), first(f.due, n.Runs.Due)
		f.period = max(f.period, n.Runs.Every)
		return
	}
	if n.Pool != nil {
		f.free += n.Pool.Free
		f.resting += n.Pool.Resting
	}
	if view.Free(n) == 0 {
		f.full++
	}
	f.capacity += n.Capacity
	f.held += n.Held
	f.longestHold = max(f.longestHold, n.Oldest)
	f.waits(n)
}

// first is the earlier of two moments, of which each may be none.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// waits adds who waits for a name.
func (f *figures) waits(n *berth.Name) {
	f.waiting += n.Live()
	f.oldestWait = max(f.oldestWait, view.Waited(n))
	if n.Trouble.Level == berth.LevelStuck && n.Live() > 0 {
		f.waited[n.Trouble.Why]++
	}
}

// drains are those that are in force, by the class of their target.
type drains struct {
	count     int
	age, left map[string]time.Duration // the longest; of those that end
}

func newDrains(found *inspect.Page[berth.Drain], classes *classes) *drains {
	all := &drains{count: len(found.Items), age: map[string]time.Duration{}, left: map[string]time.Duration{}}
	for i := range found.Items {
		d := &found.Items[i]
		of := classes.class("drain", d.DrainTarget.String()).name
		all.age[of] = max(all.age[of], found.At.Sub(d.Since))
		if d.Left > 0 {
			all.left[of] = max(all.left[of], d.Left)
		}
	}
	return all
}
