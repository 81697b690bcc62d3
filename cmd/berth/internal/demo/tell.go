package demo

import (
	"fmt"
	"time"
)

// take writes one report into the story, and tells it.
func (d *director) take(r report) {
	t := d.story.turn(r.worker)
	at := d.story.at(r.At)
	switch r.Kind {
	case queued:
		t.queued, t.ahead = at, r.Ahead
		d.view.tell(*at, t, "asks, finds "+t.none()+", stands in line "+behind(r.Ahead))
	case granted:
		t.granted, t.fence, t.resource = at, r.Fence, r.Resource
		t.handed = d.story.at(time.UnixMicro(r.Fence))
		d.view.tell(*at, t, d.entrance(t))
		if r.worker == d.plan.victim {
			due := *at + d.plan.killAfter
			d.killAt, d.victim = &due, r.Claim
		}
	case reentered:
		t.again, t.againFence = at, r.Fence
		d.view.tell(*at, t, "asks again while inside, and passes the line")
	case innerGone:
		t.once = at
		d.view.tell(*at, t, "gives the second entry back, and stays inside")
	case leaving:
		t.leaving = at
		d.view.tell(*at, t, t.farewell())
	case gone:
		t.gone = at
		d.stage.member(r.worker).dismiss()
	case killed:
		d.view.tell(*at, t, r.Text)
	case leaseEnd:
		t.over = at
		d.view.tell(*at, t, "is forgotten: its lease ends, "+t.has()+" comes free")
	case trouble:
		d.view.tell(*at, t, "is in trouble: "+r.Text)
	case exited:
		t.exited, t.failure = at, r.Text
		if t.killed == nil && t.failure != "" {
			d.view.tell(*at, t, "has ended: "+t.failure)
		}
	}
}

// behind is where somebody stands in line.
func behind(ahead int) string {
	if ahead == 0 {
		return "as the first"
	}
	return fmt.Sprintf("behind %d", ahead)
}

// entrance is how a worker got in.
func (d *director) entrance(t *turn) string {
	if t.resource != "" {
		return d.allotment(t)
	}
	if t.queued == nil {
		return "asks, and gets a free place at once"
	}
	for _, h := range d.story.handOffs((*turn).freed) {
		if h.to == t {
			return fmt.Sprintf("is inside, %s later, after %s in line", short(max(0, h.took)), short(*t.granted-*t.queued))
		}
	}
	return fmt.Sprintf("is inside, after %s in line", short(*t.granted-*t.queued))
}
