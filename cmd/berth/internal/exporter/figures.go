package exporter

import (
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/view"
)

// figures are those of all names of a class: sums, of times the longest, and of moments the first.
type figures struct {
	names, paused, full, unreadable int
	capacity, held                  int
	free, resting                   int // resources of pools
	longestHold                     time.Duration

	waiting    int
	oldestWait time.Duration

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
		f = &figures{}
		all[of] = f
	}
	return f
}

// add adds a name.
func (c *census) add(of class, n *berth.Name) {
	f := figuresOf(c.of, of)
	f.names++
	if n.Err != nil {
		f.unreadable++
		return
	}
	if n.Partial {
		c.part++
	}
	if n.Pause != nil {
		f.paused++
	}
	if n.Runs != nil {
		f.runs(n.Runs)
		return
	}
	free := n.Capacity - n.Held
	if n.Pool != nil {
		free = n.Pool.Free
		f.free += n.Pool.Free
		f.resting += n.Pool.Resting
	}
	if free <= 0 {
		f.full++
	}
	f.capacity += n.Capacity
	f.held += n.Held
	f.longestHold = max(f.longestHold, n.Oldest)
	f.waits(n)
}

// runs adds the runs of a name.
func (f *figures) runs(r *berth.RunsInfo) {
	if r.Failed {
		f.failed++
	}
	f.success, f.due, f.period = first(f.success, r.Success), first(f.due, r.Due), max(f.period, r.Every)
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
	f.waiting += n.Waiting
	if w := view.Waits(n); w != nil {
		f.oldestWait = max(f.oldestWait, w.Waited)
	}
}
