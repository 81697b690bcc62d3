package qlock

import (
	"context"
	"time"
)

// LockSet is what LockAll holds: several locks as one. It ends when the first
// of them does. Its methods may be called by many goroutines at once.
type LockSet struct{}

// Names are the names, each once, in the order in which they were locked.
func (s *LockSet) Names() []string { return nil }

// Fences are the fences by name.
func (s *LockSet) Fences() map[string]int64 { return nil }

// Waited is how long the acquiring call took.
func (s *LockSet) Waited() time.Duration { return 0 }

// Holders are the holds as listings show them, in the order of Names, from
// what this process knows.
func (s *LockSet) Holders() []Holder { return nil }

// Context carries the values of the acquiring ctx and the claims' owner, but
// not the ctx's end; it ends with the first of the holds, and its cause says
// why.
func (s *LockSet) Context() context.Context { return context.Background() }

// Within returns a ctx that ends with ctx or with the first of the holds,
// whichever comes first, as Lock.Within does.
func (s *LockSet) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// Done is closed when the first of the holds has ended.
func (s *LockSet) Done() <-chan struct{} { return nil }

// Err is nil while all holds live; then it says why the first of them ended.
func (s *LockSet) Err() error { return errSketch }

// Release gives all locks back, as Lock.Release does, and joins the errors.
func (s *LockSet) Release(ctx context.Context) error { return errSketch }

// Renew renews all locks, as Lock.Renew does, and joins the errors.
func (s *LockSet) Renew(ctx context.Context) error { return errSketch }

// Extend extends all locks, as Lock.Extend does, and joins the errors.
func (s *LockSet) Extend(ctx context.Context, d time.Duration) error { return errSketch }
