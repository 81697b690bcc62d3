package engine

import (
	"context"
	"errors"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
)

// Do runs f under the hold and gives it back, also when f panics. Do returns f's
// error, joined with the hold's where that ended before f did, and not by f itself.
func (h *Hold) Do(ctx context.Context, f func(context.Context) error) (err error) {
	inner, cancel := h.Within(ctx)
	defer func() {
		cancel()
		ended := h.Err()
		over := ended != nil
		m := h.c.see()
		byClose := m.grant.loose && !errors.Is(m.end.err, berth.ErrReleased)
		switch end := m.end; {
		case !over || end.final && end.result == nil && !byClose: // or released or detached by f
			_, told := errors.AsType[*berth.EndError](h.Release(ctx))
			ended = nil
			if told { // it had ended, and nobody here had heard of it yet
				ended = h.c.see().end.result
			}
		case byClose:
		case end.final: // f has released it, and was told of an end
			ended = end.result
		default:
			h.releaseEnded()
		}
		err = caller.Outcome(ctx, err, ended, over)
	}()
	return f(inner)
}
