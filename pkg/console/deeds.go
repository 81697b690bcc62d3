package console

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
)

const (
	// deedsMost is how many actions are remembered, beside those that go on.
	deedsMost = 50
	// drainsMost is how many drains go on at once behind pages: each looks at all names again and again.
	drainsMost = 10
)

var errDrains = fmt.Errorf("%d drains go on from here already: wait until one has ended, or stop one", drainsMost)

// deed is an action that was done here, or is being done.
type deed struct {
	act.Action
	ID      string
	By      string
	At      time.Time // by this process's clock
	Running bool
	Outcome string
	Failed  bool
	begun   int // how many readings had begun when it ended
}

// Method What returns a text of the action without its target.
func (d deed) What() string { what := d.Action; what.Reason = ""; return what.Told("") }

// Whole returns a text of the action with its target.
func (d deed) Whole() string {
	whole := d.What()
	if d.Claim != "" {
		whole += " of claim " + short(d.Claim)
	}
	if d.Resource != "" {
		whole += " of resource " + text.Quoted(d.Resource)
	}
	if d.Name != "" {
		whole += " of " + kindWord(d.Kind) + " " + text.Quoted(d.Name)
	}
	return whole
}

// of reports whether the deed is about the subject of a page.
func (d deed) of(page string, q url.Values) bool {
	switch page {
	case namePage.name:
		return d.Name != "" && d.Name == q.Get("name") && string(d.Kind) == q.Get("kind")
	case nodePage.name:
		return d.Node != "" && d.Node == q.Get("id")
	case searchPage.name:
		return d.Label != "" && q.Get("by") == "label" && d.Label == q.Get("q")
	}
	return page == actionsPage.name
}

// deeds are the last actions, and the source of the page that shows them.
type deeds struct {
	mu   sync.Mutex
	all  []deed // the oldest first; guarded by mu
	made int    // the number of the last one; guarded by mu
	seq  int    // of the last change; guarded by mu
	news chan struct{}
}

func newDeeds() *deeds { return &deeds{seq: 1, news: make(chan struct{})} }

// begin notes that an action is done. It is refused where too many go on.
func (d *deeds) begin(what act.Action, by string) (id string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	drains := 0
	for i := range d.all {
		if d.all[i].Running && d.all[i].Verb == act.Drain {
			drains++
		}
	}
	if what.Verb == act.Drain && drains >= drainsMost {
		return "", errDrains
	}
	d.made++
	id = strconv.Itoa(d.made)
	d.all = append(d.all, deed{Action: what, ID: id, By: by, At: time.Now(), Running: true})
	over := len(d.all) - deedsMost // the oldest that have ended are forgotten
	d.all = slices.DeleteFunc(d.all, func(old deed) bool {
		forget := over > 0 && !old.Running
		if forget {
			over--
		}
		return forget
	})
	d.changed()
	return id, nil
}

// end notes what has come of it, and how many readings have begun by now.
func (d *deeds) end(id, outcome string, err error, begun int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.all {
		if d.all[i].ID == id {
			d.all[i].Running, d.all[i].Outcome = false, outcome
			d.all[i].begun = begun
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

// about is an action by its id, nil if it is forgotten or is not about what a page is about.
func (d *deeds) about(id, page string, q url.Values) *deed {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.all {
		if d.all[i].ID == id && d.all[i].of(page, q) {
			found := d.all[i]
			return &found
		}
	}
	return nil
}

// The rest of source: viewers always have the newest deeds, so nothing is read.
func (*deeds) Close()       {}
func (*deeds) Anew(int)     {}
func (*deeds) Never() error { return nil }

func (d *deeds) last(int) (reading, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := slices.Clone(d.all)
	slices.Reverse(all)
	now := time.Now()
	return reading{view: all, clock: now, at: now, seq: d.seq, turn: math.MaxInt}, d.news
}
