package console

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/berth-go/berth/internal/act"
)

// deedsMost is how many actions are remembered.
const deedsMost = 50

// deed is an action that was done here, or is being done.
type deed struct {
	act.Action
	ID      string
	By      string
	At      time.Time // by this process's clock
	Running bool
	Outcome string
	Failed  bool
}

// State is how it stands.
func (d deed) State() state {
	switch {
	case d.Running:
		return state{"goes on", "busy"}
	case d.Failed:
		return state{"failed", "bad"}
	}
	return state{"done", "good"}
}

// What says what was done.
func (d deed) What() string { what := d.Action; what.Reason = ""; return what.Told("") }

// deeds are the last actions, and a source of the page that shows them.
type deeds struct {
	mu   sync.Mutex
	all  []deed // the oldest first; guarded by mu
	last int    // the number of the last one; guarded by mu
	seq  int    // of the last change; guarded by mu
	news chan struct{}
}

func newDeeds() *deeds { return &deeds{seq: 1, news: make(chan struct{})} }

// begin notes that an action is done.
func (d *deeds) begin(what act.Action, by string) (id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	id = strconv.Itoa(d.last)
	d.all = append(d.all, deed{Action: what, ID: id, By: by, At: time.Now(), Running: true})
	if n := len(d.all) - deedsMost; n > 0 {
		d.all = slices.Clone(d.all[n:])
	}
	d.changed()
	return id
}

// end notes what has come of it.
func (d *deeds) end(id, outcome string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.all {
		if d.all[i].ID == id {
			d.all[i].Running, d.all[i].Outcome = false, outcome
			if err != nil {
				d.all[i].Failed, d.all[i].Outcome = true, problem(err)
			}
		}
	}
	d.changed()
}

// changed wakes who looks; mu is held.
func (d *deeds) changed() {
	d.seq++
	close(d.news)
	d.news = make(chan struct{})
}

// of is an action by its id, nil if it is forgotten.
func (d *deeds) of(id string) *deed {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.all {
		if d.all[i].ID == id {
			found := d.all[i]
			return &found
		}
	}
	return nil
}

// deedList is what the page of actions shows.
type deedList struct{ Deeds []deed }

// looked is one look at the actions.
type looked struct{ *deeds }

func (l looked) Close() {}

func (l looked) last() (reading, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.all)
	slices.Reverse(all)
	now := time.Now()
	return reading{view: deedList{all}, clock: now, at: now, seq: l.seq}, l.news
}
