package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/observe"
)

const (
	// unlooked is for how long a topic is read at which nobody looks: a page that is opened looks twice.
	unlooked = 5 * time.Second
	// most is how many names may be topics, walksMost how many walks over all names, of each sort. The overview and the
	// cycles, which all share, do not count.
	most, walksMost = 200, 20
	// atOnce is how many names are read at the same time; slowAtOnce how many readings are under way of those that take
	// long: walks over all names, and what the server did not answer last time. Names do not wait for these.
	atOnce, slowAtOnce = 4, 2
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
	tells func(observe.Event) // nil for nobody
	ctx   context.Context
	end   context.CancelCauseFunc
	loops sync.WaitGroup
	quick chan struct{} // has room for as many readings as may be under way
	slow  chan struct{} // likewise

	mu     sync.Mutex
	topics map[string]*topic // guarded by mu
	begun  int               // how many readings have begun; guarded by mu
	drains Drains            // guarded by mu
}

// sort says what a topic is like.
type sort struct {
	every  time.Duration // from the beginning of one reading to that of the next
	walks  bool          // a reading takes long
	once   bool          // it is read once, and remembered for so long
	shared bool          // it does not count
	aside  bool          // it is read at a slower pace where nobody looks at it alone
}

// topic is one thing that is looked at.
type topic struct {
	key string
	sort
	read func(ctx context.Context) (any, error)
	gone chan struct{} // closed when it has given way to another topic
	anew chan struct{} // has room for one: the next reading is to begin at once

	// guarded by the watcher's mu
	looking int
	eager   int               // of them those that look at it alone
	began   time.Time         // when the last reading began
	took    time.Duration     // how long the last one took that succeeded
	claims  map[string]*asked // of a name: those that are looked at, or were shortly
	left    time.Time         // when the last one has gone
	turn    int               // of the reading that began last
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
	// Turn is how many readings of all topics had begun with this one, whether it failed or not.
	Turn int
}

// New returns a Watcher, which reads only what somebody looks at. tell, unless it is nil, gets an event of a reading that has
// panicked; who looks gets an error. Close the Watcher.
func New(read *inspect.Reader, tell func(observe.Event)) *Watcher {
	w := &Watcher{read: read, tells: tell, quick: make(chan struct{}, atOnce), slow: make(chan struct{}, slowAtOnce), topics: map[string]*topic{}}
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
	eager   bool
}

// look returns a feed of a topic, which it begins if there is none; err is why nothing can be read.
func look[T any](w *Watcher, key string, of sort, err error, read func(context.Context) (T, error)) *Feed[T] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return join(w, key, of, err, read)
}

// join is look with mu held.
func join[T any](w *Watcher, key string, of sort, err error, read func(context.Context) (T, error)) *Feed[T] {
	t := w.topics[key]
	if t == nil {
		t = &topic{key: key, sort: of, claims: map[string]*asked{}, news: make(chan struct{}), gone: make(chan struct{}), anew: make(chan struct{}, 1)}
		switch {
		case w.ctx.Err() != nil:
			err = ErrClosed
		case err == nil && !of.shared && !w.room(of):
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

// room says whether there may be one more topic of a sort. If need be, the one gives way at which nobody has looked for
// longest.
func (w *Watcher) room(of sort) bool {
	count, most := 0, most
	if of.walks {
		most = walksMost
	}
	var first *topic
	for _, t := range w.topics {
		if t.sort != of {
			continue
		}
		count++
		if t.looking == 0 && (first == nil || t.left.Before(first.left)) {
			first = t
		}
	}
	if count >= most && first != nil {
		w.yield(first)
		count--
	}
	return count < most
}

// yield has a topic give way to another one.
func (w *Watcher) yield(t *topic) {
	delete(w.topics, t.key)
	close(t.gone)
}

// run reads a topic until nobody looks.
func (w *Watcher) run(t *topic) {
	for failed := false; ; {
		gate := w.quick
		if t.walks || failed {
			gate = w.slow
		}
		select {
		case gate <- struct{}{}:
		case <-t.gone:
			return
		case <-w.ctx.Done():
			w.tell(t, nil, ErrClosed)
			return
		}
		w.begins(t)
		var value any
		err := guard.Run("the reading of "+t.key, w.tells, func() (err error) {
			value, err = t.read(w.ctx)
			return err
		})
		<-gate
		if w.ctx.Err() != nil {
			err = ErrClosed
		}
		w.tell(t, value, err)
		failed = err != nil
		if !w.rest(t) || w.drop(t) {
			return
		}
	}
}

// rest waits until the next reading may begin, and says whether there is to be one.
func (w *Watcher) rest(t *topic) bool {
	for wait := t.every - time.Since(t.began); ; wait = t.every {
		select {
		case <-time.After(wait):
			if w.due(t) {
				return true
			}
		case <-t.anew:
			return true
		case <-t.gone:
			return false
		case <-w.ctx.Done():
			w.tell(t, nil, ErrClosed)
			return false
		}
	}
}

// due says that the last reading began long enough ago.
func (w *Watcher) due(t *topic) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(t.began) >= t.pace()
}

// pace is how long after the beginning of one reading the next one begins.
func (t *topic) pace() time.Duration {
	if !t.aside || t.eager > 0 {
		return t.every
	}
	return AsidePace(t.took)
}

// begins notes that a reading begins: whoever has asked for one gets this one.
func (w *Watcher) begins(t *topic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	t.turn, t.began = w.begun, time.Now()
	select {
	case <-t.anew:
	default:
	}
}

// Begun is how many readings have begun. A reading of a higher Turn begins later.
func (w *Watcher) Begun() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begun
}

// Anew has the topic read at once, unless a reading has begun since Begun was so much. A reading that is under way ends
// first. Where cycles are searched for, that is done anew, too.
func (f *Feed[T]) Anew(begun int) {
	f.watcher.mu.Lock()
	defer f.watcher.mu.Unlock()
	f.watcher.drains.read = time.Time{}
	for _, t := range []*topic{f.topic, f.watcher.topics[cycles]} {
		if t != nil && t.turn <= begun && t.read != nil {
			t.soon()
		}
	}
}

// soon has the next reading begin at once.
func (t *topic) soon() {
	select {
	case t.anew <- struct{}{}:
	default: // it is asked for already
	}
}

// drop ends a topic at which nobody looks, or that is read once.
func (w *Watcher) drop(t *topic) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !t.once && (t.looking > 0 || time.Since(t.left) < unlooked) {
		return false
	}
	if w.topics[t.key] == t { // else it has given way to another one
		delete(w.topics, t.key)
	}
	return true
}

// tell notes a reading, and wakes who looks.
func (w *Watcher) tell(t *topic, value any, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.last.Seq++
	t.last.Turn = t.turn
	if t.last.Err = err; err == nil {
		t.last.Value, t.last.At, t.took = value, time.Now(), time.Since(t.began)
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
	return Reading[T]{value, last.At, last.Err, last.Seq, last.Turn}, f.topic.news
}

// Never is why nothing will ever be read, nil if something may be.
func (f *Feed[T]) Never() error {
	if f.topic.read != nil {
		return nil
	}
	return f.topic.last.Err
}

// First waits for a reading. Its error is that of ctx.
func (f *Feed[T]) First(ctx context.Context) (Reading[T], error) { return f.after(ctx, -1) }

// Next has the topic read at once, and waits for that. Its error is that of ctx, or that of the reading.
func (f *Feed[T]) Next(ctx context.Context) (T, error) {
	begun := f.watcher.Begun()
	if f.topic.read != nil {
		f.topic.soon()
	} else {
		begun = -1
	}
	last, err := f.after(ctx, begun)
	return last.Value, cmp.Or(err, last.Err)
}

// after waits for a reading that begins after as many as had begun.
func (f *Feed[T]) after(ctx context.Context, begun int) (Reading[T], error) {
	for {
		last, news := f.Last()
		if last.Seq > 0 && last.Turn > begun {
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
		if a := f.topic.claims[f.claim]; a != nil {
			a.looking--
			a.left = time.Now()
		}
		if f.eager {
			f.topic.eager--
		}
		if f.topic.looking--; f.topic.looking == 0 {
			f.topic.left = time.Now()
		}
	})
}

// Silent says whether an error is that of a server that does not answer, or refuses for now.
func Silent(err error) bool {
	var broken net.Error
	var link *net.OpError // also one that has lasted too long
	return errors.Is(err, berth.ErrUnavailable) || errors.As(err, &link) || errors.As(err, &broken) && !errors.Is(err, context.DeadlineExceeded)
}
