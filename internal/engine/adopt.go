package engine

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
)

// Begin counts a call that Adopt is to follow. End must follow it, unless Begin
// returns why nothing can be taken up here any more.
func (e *Engine) Begin() error {
	if e.outdated() || !e.begin() {
		return e.closedBy()
	}
	e.mu.Lock()
	e.adopting++
	e.mu.Unlock()
	return nil
}

// End ends what Begin has begun.
func (e *Engine) End() {
	e.mu.Lock()
	if e.adopting--; e.adopting == 0 {
		e.dropGroups()
	}
	e.mu.Unlock()
	e.work.Done()
}

// Work has Close wait until done is called. It reports false, and does nothing, for an engine that is closed.
func (e *Engine) Work() (done func(), ok bool) { return e.work.Done, e.begin() }

// mostDoubts bounds how many holds are remembered by Doubt.
const mostDoubts = 10_000

// Doubt notes that a call to take up that hold was not answered: it may be attached to this node since, and nobody here has it.
func (e *Engine) Doubt(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.doubts == nil || len(e.doubts) == mostDoubts {
		e.doubts = make(map[string]struct{})
	}
	e.doubts[id] = struct{}{}
}

// MayAdopt reports whether a hold that is attached to this node already may be
// taken up here: a call to take it up was not answered, and no handle keeps it. Of any other that is attached and has no handle a
// release is under way, which may come to the server after whatever is sent now.
func (e *Engine) MayAdopt(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, doubt := e.doubts[id]
	return doubt && e.claims[id] == nil
}

// Unknown says that the engine is open, does not have that claim, and takes up none.
func (e *Engine) Unknown(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.closed && e.adopting == 0 && e.claims[id] == nil
}

// Adopt takes up a hold that this or another node had detached, between Begin and
// End.
func (e *Engine) Adopt(ctx context.Context, c *Claim, start time.Duration, fence int64, resource string, left time.Duration) (*Hold, error) {
	c.key = e.cfg.Scripts.Key(c.line())
	c.begins(ctx, start, true)
	all := left
	if left < 0 {
		all = berth.Forever
	}
	terms := c.m.terms.Terms
	deadline := heartbeat.Deadline(start, all, terms.lease())
	if old := e.find(c.ID); old != nil {
		e.endHold(old, berth.ErrReleased) // so that no more is taken back from it
	}
	e.mu.Lock()
	e.claims[c.ID] = c
	delete(e.doubts, c.ID)
	if most := e.member(c).adopted(start, moment(deadline)); most != moment(deadline) {
		c.most = most
	}
	e.mu.Unlock()
	e.on(c, &event{
		kind: evGranted, start: start, left: left, gift: gift{fence, resource}, confirmed: true,
		entry: &Entry{Terms: terms}, // it may be one: then others renew it
	})
	if fx := e.look(c); fx.result != nil {
		// Close and Abandon give back what is held.
		e.on(c, &event{kind: evLeave, cause: fx.result})
		if e.outdated() {
			return nil, berth.ErrLost // this node had taken it up, as the server sees it
		}
		return nil, fx.result
	}
	if c.most != 0 {
		e.beats.Hurry(&c.lease)
	}
	e.prime()
	e.holdEvent(ctx, observe.Resumed, c, nil)
	e.wantedBefore(c)
	return &c.handle, nil
}
