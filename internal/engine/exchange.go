package engine

import (
	"context"
	"errors"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/pace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Exchanged is what the server says to a call that exchanges what a hold is of.
type Exchanged struct {
	// Fence and Resource are the hold's from now on.
	Fence    int64
	Resource string
	// Ended is why the hold has ended, nil if it lives.
	Ended error
	// Refused is why nothing was exchanged, nil if it was.
	Refused error
	// More says that the script stopped at its bound: sweep at once. What Refused
	// says is not the last word then.
	More bool
}

// Exchange sends a call that gives back what the hold is of, and takes something
// else, in one step. send makes one attempt. It is repeated by Config.Retry while
// ctx lives. An attempt is never cut short, so Exchange may last for CallTimeout
// after ctx has ended. It reports whether something was exchanged, for all that is
// known. Where no answer came to an attempt that may run yet, nobody knows what the hold is
// of: the hold ends with berth.ErrLost and is released. A process that drains gets nothing else.
func (h *Hold) Exchange(ctx context.Context, send func(context.Context) (Exchanged, error)) (bool, error) {
	if err := h.Err(); err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		return false, causeOf(ctx)
	}
	if !h.e.begin() {
		return false, berth.ErrClosed
	}
	defer h.e.work.Done()
	if h.e.cfg.Stands != nil {
		h.e.cfg.Stands(ctx, h.c) // a hold stands; but the process may have heard that it drains
	}
	if why := h.e.drained(); why != nil {
		return false, &berth.AcquireError{Name: h.c.Name, Claim: h.c.ID, Reason: berth.ReasonDraining, Cause: why}
	}
	h.c.calls.Lock()
	defer h.c.calls.Unlock()
	h.e.on(h.c, &event{kind: evSwapping})
	defer h.e.on(h.c, &event{kind: evSwapOver})
	pauses, lost, tries := pace.New(h.e.cfg.Retry), false, tries{}
	for attempt := 1; ; attempt++ {
		if err := h.Err(); err != nil {
			return lost, err
		}
		answer, err := send(context.Background())
		if err == nil && answer.Ended == nil && answer.Refused == nil {
			h.e.on(h.c, &event{kind: evSwapped, gift: gift{answer.Fence, answer.Resource}})
			if answer.More {
				h.e.sweepSoon(h.c.line())
			}
			return true, h.Err()
		}
		if err == nil && answer.Ended != nil {
			h.e.endHold(h.c, answer.Ended)
			return lost, h.Err()
		}
		if err == nil && answer.More && ctx.Err() == nil && !tries.last() {
			tries.swept(h.e.sweep(h.c.line())) // as of an acquire
			continue
		}
		if err == nil {
			err = answer.Refused // but an attempt before this one may run yet, and find something
		} else if lost = lost || scriptkit.MaybeRan(err); scriptkit.Repeatable(err) && pauses.Next(false) {
			h.e.repeats(ctx, h.c, attempt, err)
			if pauses.Pause(ctx, h.e.closing) {
				continue
			}
		}
		if lost {
			h.e.endHold(h.c, berth.ErrLost)
			h.releaseEnded()
			return true, errors.Join(h.Err(), err)
		}
		return false, err
	}
}
