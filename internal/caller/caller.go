// Package caller says in errors what came of what a caller has given: of a context
// that has ended, of a function that panicked, and of one whose hold ended before it did.
package caller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// EndOf is what a context that has ended says of its end: its error, and its cause
// where that is another one.
func EndOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return errors.Join(err, cause)
}

// Until is ctx, which also ends when life does, with the cause of that.
func Until(ctx, life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Await returns nil once done is closed, and what ctx says of its end where that is first.
func Await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done: // with ctx, or before
		return nil
	default:
		return EndOf(ctx)
	}
}

// Catch runs a function of the caller's where nobody could catch its panic. It
// returns the function's error, or one that has the panic and its stack, which would
// be lost otherwise.
func Catch(what string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = Panicked(what, v)
		}
	}()
	return f()
}

// Panicked is the error of a panic with v, for a deferred function that has recovered it.
func Panicked(what string, v any) error {
	if err, is := v.(error); is {
		return fmt.Errorf("berth: %s panicked: %w\n\n%s", what, err, debug.Stack())
	}
	return fmt.Errorf("berth: %s panicked: %v\n\n%s", what, v, debug.Stack())
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
