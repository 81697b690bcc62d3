package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/berth-go/berth/pkg/inspect"
)

const (
	// linger is for how long a topic is read at which nobody looks: a page that is opened looks twice.
	linger = 5 * time.Second
	// most is how many topics there may be.
	most = 200
	// atOnce is how many are read at the same time.
	atOnce = 4
)

var (
	// ErrMany is the error of a reading where too much is looked at.
	ErrMany = errors.New("too many names are looked at: close some pages")
	// ErrClosed is the error of a reading after Close.
	ErrClosed = errors.New("nothing is read any more")
)

// Watcher reads one namespace for all who look. It is safe for concurrent use.
type Watcher struct {
	read  *inspect.Reader
	ctx   context.Context
	end   context.CancelCauseFunc
	loops sync.WaitGroup
	gate  chan struct{}

	mu     sync.Mutex
	topics map[string]*topic // guarded by mu
}

// topic is one thing that is looked at.
type topic struct {
	key   string
	every time.Duration // from the beginning of one reading to that of the next
	read  func(ctx context.Context) (any, error)

	// guarded by the watcher's mu
	looking int
	claims  map[string]*asked // of a name: those that are looked at, or were shortly
	left    time.Time         // when the last one has gone
	last    Reading[any]      // Seq 0: none yet
	news    chan struct{}     // closed with the next reading
}

// Reading is what was read last.
type Reading[T any] struct {
	Value T // as of the last reading that succeeded
	// At is when that was, by this process's clock; zero: none has.
	At time.Time
	// Err is why the last reading has failed, nil if it has not.
	Err error
	// Seq is the number of the last reading, from 1; 0: none has ended yet.
	Seq int
}

// New returns a Watcher, which reads only what somebody looks at. Close it.
func New(read *inspect.Reader) *Watcher {
	w := &Watcher{read: read, gate: make(chan struct{}, atOnce), topics: map[string]*topic{}}
	w.ctx, w.end = context.WithCancelCause(context.Background())
	return w
}

// Close ends all reading, and waits for it. Feeds keep what they have.
func (w *Watcher) Close() {
	w.mu.Lock() // no loop begins behind it
	w.end(ErrClosed)
	w.mu.Unlock()
	w.loops.Wait()
}

// Feed is one who looks at a topic. It is safe for concurrent use.
type Feed[T any] struct {
	watcher *Watcher
	topic   *topic
	closed  sync.Once
	has     func(T) bool // that a value is one for this feed, nil for each
	claim   string       // of a name: at which it looks, "" for none
}

// look returns a feed of a topic, which is made by what make returns if there is none.
func look[T any](w *Watcher, key string, every time.Duration, begin func() (func(ctx context.Context) (T, error), error)) *Feed[T] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return join(w, key, every, begin)
}

// join is look with mu held.
func join[T any](w *Watcher, key string, every time.Duration, begin func() (func(ctx context.Context) (T, error), error)) *Feed[T] {
	t := w.topics[key]
	if t == nil {
		t = &topic{key: key, every: every, news: make(chan struct{})}
		read, err := begin()
		switch {
		case w.ctx.Err() != nil:
			err = ErrClosed
		case err == nil && len(w.topics) >= most:
			err = ErrMany
		}
		if err != nil {
			t.last = Reading[any]{Err: err, Seq: 1}
			return &Feed[T]{watcher: w, topic: t}
		}
		t.read = func(ctx context.Context) (any, error) { return read(ctx) }
		w.topics[key] = t
		w.loops.Go(func() { w.run(t) })
	}
	t.looking++
	return &Feed[T]{watcher: w, topic: t}
}

// run reads a topic until nobody looks.
func (w *Watcher) run(t *topic) {
	for {
		select {
		case w.gate <- struct{}{}:
		case <-w.ctx.Done():
			w.tell(t, nil, ErrClosed)
			return
		}
		next := time.NewTimer(t.every)
		value, err := t.read(w.ctx)
		<-w.gate
		if w.ctx.Err() != nil {
			err = ErrClosed
		}
		w.tell(t, value, err)
		select {
		case <-next.C:
		case <-w.ctx.Done():
			next.Stop()
			w.tell(t, nil, ErrClosed)
			return
		}
		if w.drop(t) {
			return
		}
	}
}

// drop ends a topic at which nobody looks.
func (w *Watcher) drop(t *topic) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.looking > 0 || time.Since(t.left) < linger {
		return false
	}
	delete(w.topics, t.key)
	return true
}

// tell notes a reading, and wakes who looks.
func (w *Watcher) tell(t *topic, value any, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.last.Seq++
	if t.last.Err = err; err == nil {
		t.last.Value, t.last.At = value, time.Now()
	}
	close(t.news)
	t.news = make(chan struct{})
}

// Last is the last reading, and what is closed when there is a newer one.
func (f *Feed[T]) Last() (Reading[T], <-chan struct{}) {
	f.watcher.mu.Lock()
	defer f.watcher.mu.Unlock()
	last := f.topic.last
	value, read := last.Value.(T)
	if read && f.has != nil && !f.has(value) {
		value, last.At = *new(T), time.Time{}
		if last.Err == nil {
			last.Seq = 0
		}
	}
	return Reading[T]{value, last.At, last.Err, last.Seq}, f.topic.news
}

// First waits for a reading. Its error is that of ctx.
func (f *Feed[T]) First(ctx context.Context) (Reading[T], error) {
	for {
		last, news := f.Last()
		if last.Seq > 0 {
			return last, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return last, fmt.Errorf("nothing was read: %w", context.Cause(ctx))
		}
	}
}

// Close ends the looking. It may be called twice.
func (f *Feed[T]) Close() {
	f.closed.Do(func() {
		f.watcher.mu.Lock()
		defer f.watcher.mu.Unlock()
		f.topic.leave(f.claim)
		if f.topic.looking--; f.topic.looking == 0 {
			f.topic.left = time.Now()
		}
	})
}
