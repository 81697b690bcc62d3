// Package caller says in errors what came of what a caller has given: of a context
// that has ended, and of a function that panicked.
package caller

import (
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

// Catch runs a function of the caller's where nobody could catch its panic. It
// returns the function's error, or one that has the panic and its stack, which would
// be lost otherwise.
func Catch(what string, f func() error) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case error:
			err = fmt.Errorf("berth: %s panicked: %w\n\n%s", what, v, debug.Stack())
		default:
			err = fmt.Errorf("berth: %s panicked: %v\n\n%s", what, v, debug.Stack())
		}
	}()
	return f()
}
