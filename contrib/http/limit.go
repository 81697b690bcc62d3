package berthhttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Limit returns middleware that serves each request under a permit of sem. All handlers that
// one returned function wraps share Options.MaxWaiting. The errors of Limit are
// *berth.ConfigError.
func Limit(sem *semaphore.Semaphore, opts *Options) (func(http.Handler) http.Handler, error) {
	if sem == nil {
		return nil, berth.Invalid("sem", "a semaphore is needed")
	}
	return LimitBy(func(*http.Request) (*semaphore.Semaphore, error) { return sem, nil }, opts)
}

// LimitBy returns middleware that serves each request under a permit of the semaphore that choose
// returns for the request; nil serves the request without a permit. Function choose may make a
// semaphore by semaphore.New for each request, which does no I/O. A request for which choose
// returns an error is refused. The errors of LimitBy are *berth.ConfigError.
func LimitBy(
	choose func(*http.Request) (*semaphore.Semaphore, error), opts *Options,
) (func(http.Handler) http.Handler, error) {
	if choose == nil {
		return nil, berth.Invalid("choose", "a function is needed")
	}
	l := &limit{choose: choose, line: line{waiting: map[string]int{}}}
	if opts != nil {
		l.opts = *opts
	}
	l.opts = l.opts.withDefaults()
	if err := l.opts.validate(); err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.serve(w, r, next) })
	}, nil
}

// limit is the state of one middleware.
type limit struct {
	choose func(*http.Request) (*semaphore.Semaphore, error)
	opts   Options
	line   line
	sample sample
}

func (l *limit) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	sem, err := l.choose(r)
	var permit *semaphore.Permit
	if err == nil && sem != nil {
		permit, err = l.acquire(r.Context(), sem)
	}
	switch {
	case err == nil && permit != nil:
		serveUnder(permit, w, r, next)
	case err == nil, l.opts.FailOpen && failed(err) && r.Context().Err() == nil:
		next.ServeHTTP(w, r)
	default:
		l.sample.log(l.opts.Logger, r, err)
		w.Header().Set("Retry-After", l.opts.retryAfter())
		l.opts.Refuse(w, r, err)
	}
}

// serveUnder serves a request under its permit.
func serveUnder(permit *semaphore.Permit, w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx, cancel := permit.Within(r.Context())
	inner := r.WithContext(ctx)
	defer func() {
		cancel()
		r.MultipartForm = inner.MultipartForm // net/http removes the files of its own request only
		// By its ctx, which has ended, the answer waits for CleanupTimeout at most. The node goes
		// on in the background, and tells its observer; nobody here could do more.
		_ = permit.Release(ctx)
	}()
	next.ServeHTTP(w, inner)
}

// acquire waits for a permit, as long as the options allow.
func (l *limit) acquire(ctx context.Context, sem *semaphore.Semaphore) (*semaphore.Permit, error) {
	if l.opts.MaxWaiting < 0 {
		ctx, cancel := context.WithTimeout(ctx, l.opts.MaxWait)
		defer cancel()
		return sem.TryAcquire(ctx, nil)
	}
	if waiting := l.line.enter(sem.Name(), l.opts.MaxWaiting); waiting > 0 {
		return nil, &berth.AcquireError{Name: sem.Name(), Reason: berth.ReasonQueuedAhead, Waiting: waiting}
	}
	defer l.line.leave(sem.Name())
	return sem.Acquire(ctx, &semaphore.AcquireOptions{MaxWait: l.opts.MaxWait})
}

// failed reports whether the server failed or refused, as opposed to a long line.
func failed(err error) bool {
	var refused *berth.AcquireError
	return errors.As(err, &refused) && refused.Reason == berth.ReasonFailed
}
