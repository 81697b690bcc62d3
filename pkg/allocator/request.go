package allocator

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/observe"
)

// This file has the arguments and replies of the scripts of all kinds that are specific to
// pools.

// request has the data of a claim that only the pool's own scripts need.
type request struct {
	agreed *agreement // nil where the claim was resumed
	named  bool       // the claim asked for one resource by its key
	limits Settings   // the settings whose limits the claim was refused by; of its acquire

	mu    sync.Mutex
	wish  wish // guarded by mu: what is to become of the resource when it is given back
	rests int  // guarded by mu: how often its rest was said
	ends  int  // guarded by mu: how often its expiry was
	left  bool // guarded by mu: the resource has left the pool with its release

	sent wish // what the last release asked for; of the release under way
}

// wish is what a holder asks for the resource that it gives back.
type wish struct {
	rest   time.Duration // how long the resource rests, 0 for not at all
	reason string        // why
	expiry time.Duration // when it leaves the pool, 0 for as before
}

// args are what pool_release and pool_swap take of it.
func (w *wish) args() (rest, reason, expiry string) {
	return line.Decimal(restMillis(w.rest)), w.reason, line.Decimal(restMillis(w.expiry))
}

// ask has the resource rest when it is given back.
func (q *request) ask(rest time.Duration, reason string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wish.rest, q.wish.reason = rest, reason
	q.rests++
}

// expire has the resource leave the pool some time after it is given back.
func (q *request) expire(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wish.expiry = d
	q.ends++
}

// take returns what was asked for, and forgets it: it is for the resource that is given
// back now. back says that this one stays after all.
func (q *request) take() (asked wish, back func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	asked, rests, ends := q.wish, q.rests, q.ends
	q.wish = wish{}
	return asked, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.rests == rests {
			q.wish.rest, q.wish.reason = asked.rest, asked.reason
		}
		if q.ends == ends {
			q.wish.expiry = asked.expiry
		}
	}
}

// wishes are what was asked for.
func (q *request) wishes() wish {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wish
}

// forever is the scripts' argument for a rest without end.
const forever = state.Forever

// restMillis is a rest as the scripts count it, rounded up.
func restMillis(d time.Duration) int64 {
	if d == berth.Forever {
		return forever
	}
	return min(int64(math.Ceil(float64(d)/float64(time.Millisecond))), forever)
}

// acquireArgs returns the arguments that are specific to pool_acquire: the process's proposals for the
// settings, and the stored settings that it has read.
func acquireArgs(c *engine.Claim) (waits, policy string, own []string) {
	return line.Flag(c.MayWait), "-", c.Request.(*request).agreed.args()
}

// acquireReply reads the resource of a grant or the reason of a refusal, and reports settings that differ
// from the process's proposals.
func (s *pools) acquireReply(claim *engine.Claim, a engine.Answer, resource string) (engine.Answer, error) {
	if err := s.settled(claim, &a, resource); err != nil {
		return a, err
	}
	if a.Granted {
		a.Resource = resource
	}
	refine(a.Refused)
	if !a.Granted && a.Capacity == 0 {
		s.empty(claim.Name)
	}
	return a, nil
}

// settled reads what an answer to an acquire says of the stored settings.
func (s *pools) settled(claim *engine.Claim, a *engine.Answer, stored string) error {
	q := claim.Request.(*request)
	switch {
	case a.Refused != nil && a.Refused.Reason == berth.ReasonCapacity:
		a.Refused.Reason, a.Refused.Cause = berth.ReasonDiffers, q.agreed.differs(stored)
	case a.Refused != nil && a.Refused.Reason == berth.ReasonLimited:
		limits, err := parseSettings(stored)
		if err != nil {
			return err
		}
		q.limits = limits
	case a.Told != "" && q.agreed.hear(a.Told):
		other, err := parseSettings(a.Told)
		if err != nil {
			return err
		}
		if differ := q.agreed.says.say(other); differ != "" {
			s.face().Tell.Send(observe.Event{
				Kind: observe.SettingsDiffer, Context: claim.Caller(), Name: claim.Name, Claim: claim.ID, Owner: claim.Record.Owner,
				Detail: differ, Attrs: claim.Attrs,
			})
		}
	}
	return nil
}

// bindMillis returns the duration of a binding as the scripts take it.
func bindMillis(d time.Duration) string {
	switch d {
	case 0:
		return wordUnset
	case berth.Forever:
		return "0"
	}
	return line.Decimal(d.Milliseconds())
}

// refine says why nothing is free: because there is nothing, or all of it rests.
func refine(refused *berth.AcquireError) {
	switch {
	case refused == nil || refused.Reason != berth.ReasonFull:
	case refused.Capacity == 0:
		refused.Reason = berth.ReasonEmpty
	case refused.Held == 0:
		refused.Reason = berth.ReasonResting
	}
}

// releaseArgs returns the arguments that are specific to pool_release: the resource's rest and the
// reason, the fence by which the claim has the resource, and its expiry. Without requests the arguments
// are empty.
func releaseArgs(c *engine.Claim) []string {
	q, _ := c.Request.(*request)
	if q == nil { // a release that is asked again: the server has lost what this process knew of the hold
		return nil
	}
	if q.sent = q.wishes(); c.Loose() {
		q.sent = wish{} // its handle is still in use
	}
	if q.sent.rest == 0 && q.sent.expiry == 0 {
		return nil
	}
	rest, reason, expiry := q.sent.args()
	return []string{rest, reason, line.Decimal(c.Fence()), expiry}
}

// releaseReply reads whether the resource has stayed in the pool, and tells of its rest.
func (s *pools) releaseReply(claim *engine.Claim, p engine.Parting, stayed string) (engine.Parting, error) {
	q, _ := claim.Request.(*request)
	if q == nil {
		return p, nil
	}
	q.mu.Lock()
	q.left = stayed == "0"
	q.mu.Unlock()
	if rest, reason := q.sent.rest, q.sent.reason; rest > 0 && stayed == "1" && p.Fence == claim.Fence() {
		p.Then = func(ctx context.Context) { rested(ctx, claim, claim.Resource(), rest, reason) }
	}
	return p, nil
}

// damaged tells of the damaged resources that a sweep was the first to tell of.
func (s *pools) damaged(name string, resources []string) {
	for _, resource := range resources {
		s.face().Tell.Send(observe.Event{Kind: observe.Damaged, Name: name, Resource: resource})
	}
}

// rested tells that a resource rests as its holder has asked.
func rested(ctx context.Context, claim *engine.Claim, resource string, rest time.Duration, reason string) {
	claim.Event(observe.Rested, func(ev *observe.Event) { ev.Context, ev.Resource, ev.Left, ev.Detail = ctx, resource, rest, reason })
}
