package scriptkit

import (
	"context"
	"errors"
	"time"
)

// callerKey is where a context keeps the one whose end is the caller's.
type callerKey struct{}

// Limit returns ctx with a time limit that is not the caller's: where it ends a
// call, the error matches berth.ErrUnavailable and no error of package context.
func Limit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithValue(ctx, callerKey{}, ctx), d)
}

// Internal returns ctx as one whose end is no caller's at all, as Limit has it.
func Internal(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, context.Background())
}

// CallersEnd returns why the caller's own context ended, nil if it has not: its
// error, joined with its cause where that is another one.
func CallersEnd(ctx context.Context) error {
	for {
		caller, limited := ctx.Value(callerKey{}).(context.Context)
		if !limited {
			break
		}
		ctx = caller
	}
	end := ended(ctx)
	if cause := context.Cause(ctx); end != nil && cause != nil && !errors.Is(end, cause) {
		return errors.Join(end, cause)
	}
	return end
}

// callKey is where a context keeps what a call is named.
type callKey struct{}

// For returns ctx as one of a call whose reads lead to a write: the errors of each Read name the call, not the read.
func For(ctx context.Context, call string) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}

// patientKey marks a context that alone bounds its attempts.
type patientKey struct{}

// Patient returns ctx as one whose end alone bounds an attempt, however long that is
// after CallTimeout. It is for calls in mode Once whose late answer still counts.
func Patient(ctx context.Context) context.Context {
	return context.WithValue(ctx, patientKey{}, true)
}
