package engine

import (
	"cmp"
	"context"
	"errors"

	"github.com/berth-go/berth"
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
		err = Outcome(ctx, err, ended, over)
	}()
	return f(inner)
}

// Outcome is the error of a Do: that of f, err, and why the hold ended before f did,
// nil where it did not or where f itself has ended it; over says that it has ended. An error of
// package context is to mean that the caller has left: where f may have met the hold's end, the
// result matches none of them, unless ctx, the caller's, has ended too.
func Outcome(ctx context.Context, err, ended error, over bool) error {
	told := ended != nil && errors.Is(err, ended)
	if over && ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		err = &stopped{err}
	}
	if err == nil || ended == nil {
		return cmp.Or(err, ended)
	}
	if told {
		return err
	}
	return errors.Join(err, ended)
}

// stopped is an error of a function that was told to stop. It matches what err does,
// but for the errors of package context.
type stopped struct{ err error }

func (e *stopped) Error() string { return e.err.Error() }

func (e *stopped) Is(target error) bool {
	return target != context.Canceled && target != context.DeadlineExceeded && errors.Is(e.err, target)
}

func (e *stopped) As(target any) bool { return errors.As(e.err, target) }
