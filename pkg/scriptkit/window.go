package scriptkit

import (
	"context"
	"time"
)

// A context.WithTimeout per call costs four allocations and a timer: 8 % of the
// calls per second of one worker, 20 % of those of 64 (two cores, Redis on
// loopback). So attempts that start within a short time share one timer. They
// do so only if the caller's context never ends, which is how a call is made
// that its caller's context must not end.

// windowShare is the share of CallTimeout for which a window takes attempts, and
// by which the limit of the last of them is shorter.
const windowShare = 16

// window is the time limit of all attempts that start before it shuts.
type window struct {
	shuts    time.Time
	deadline time.Time
	done     chan struct{}   // closed at the deadline
	ctx      context.Context // context.Background with this limit
}

// windowed is the caller's context with the limit of a window.
type windowed struct {
	context.Context
	*window
}

func (c windowed) Deadline() (time.Time, bool) { return c.deadline, true }
func (c windowed) Done() <-chan struct{}       { return c.done }

func (c windowed) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// limit bounds ctx for an attempt that starts now. The cancel function must be
// called when the attempt is over.
func (r *Runner) limit(ctx context.Context, now time.Time, d time.Duration) (context.Context, context.CancelFunc) {
	if ctx.Done() != nil || d != r.opts.CallTimeout {
		return context.WithTimeout(ctx, d)
	}
	w := r.window.Load()
	if w == nil || !now.Before(w.shuts) {
		w = &window{shuts: now.Add(d / windowShare), deadline: now.Add(d), done: make(chan struct{})}
		w.ctx = windowed{context.Background(), w}
		time.AfterFunc(d, func() { close(w.done) })
		r.window.Store(w) // of two at once, one is used by its maker only
	}
	if ctx == context.Background() {
		return w.ctx, func() {}
	}
	return windowed{ctx, w}, func() {}
}
