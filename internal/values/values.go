// Package values keeps what a process has made of the resources of a pool: one value
// for each resource. A value is opened when somebody first uses the resource here. It
// is closed when it was dropped and nobody here uses the resource any more.
package values

import (
	"context"
	"fmt"
	"sync"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
)

// Store keeps what open made of the resources, once per resource, and counts who
// uses each. It is safe for concurrent use. None of the functions that it was given
// is called with its lock held.
type Store[T any] struct {
	open   func(context.Context, string) (T, error) // nil: the value is the key
	shut   func(T) error                            // nil for nothing to do
	report func(resource string, err error)         // is told an error of shut

	over chan struct{}  // closed by Close
	ends sync.WaitGroup // values that are being closed; Add only under mu while not closed

	mu     sync.Mutex
	closed bool                // guarded by mu
	kept   map[string]*kept[T] // guarded by mu: what has a value, an Open under way, or users
}

// kept is what there is of one resource. It is guarded by Store.mu.
//
// Users are counted by resource, not by value: where one value was dropped and
// another opened while somebody uses the first, nobody can tell whose a user is.
// So what was dropped is closed when nobody uses the resource at all, which may be
// later than its own last user, and is never under one.
type kept[T any] struct {
	users   int
	current *T          // what the next Take gets, nil for none
	dropped []T         // closed when users is 0
	opening *opening[T] // the Open under way, nil for none
}

// opening is an Open under way.
type opening[T any] struct {
	done chan struct{} // closed when it has ended
	// err is Open's, for all who waited; written before done is closed. It is nil
	// where it would tell them nothing of the resource: the ctx of who opened had
	// ended, or Open panicked. Then the next one opens.
	err error
}

// New returns a store that has no value yet. Open makes the value of a resource. Where
// it is nil, T must be string, and the value is the key of the resource. Shut closes a
// value, nil for nothing to do; report is told its errors and panics.
func New[T any](open func(context.Context, string) (T, error), shut func(T) error, report func(resource string, err error)) *Store[T] {
	return &Store[T]{
		open: open, shut: shut, report: report,
		over: make(chan struct{}), kept: make(map[string]*kept[T]),
	}
}

// Take returns the value of a resource, which Open makes if there is none, and
// counts a user of it, who ends with Give. One Open of a resource runs at a time,
// and who comes meanwhile waits for it or for its own ctx. It returns Open's error,
// what ctx says of its end, or berth.ErrClosed.
func (v *Store[T]) Take(ctx context.Context, resource string) (T, error) {
	for {
		value, wait, err := v.takeOrOpen(ctx, resource)
		if wait == nil {
			return value, err
		}
		select {
		case <-wait.done:
			if wait.err != nil {
				return value, wait.err
			}
			// What it has made may be dropped already, so look again.
		case <-v.over:
			return value, berth.ErrClosed
		case <-ctx.Done():
			return value, caller.EndOf(ctx)
		}
	}
}

// TryTake is Take where nothing has to be opened for it; else it returns false.
func (v *Store[T]) TryTake(resource string) (value T, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.there(resource)
}

// there returns the value that is there, and counts a user. The caller has the lock.
func (v *Store[T]) there(resource string) (value T, ok bool) {
	if v.open == nil && !v.closed {
		value, _ = any(resource).(T)
		return value, true
	}
	k := v.kept[resource]
	if k == nil || k.current == nil {
		return value, false
	}
	k.users++
	return *k.current, true
}

// takeOrOpen takes what is there, or opens; or it returns the Open to wait for.
func (v *Store[T]) takeOrOpen(ctx context.Context, resource string) (value T, wait *opening[T], err error) {
	left := ctx.Err() != nil // before mu is held: ctx may find that a hold is over, and an observer is told
	v.mu.Lock()
	value, ok := v.there(resource)
	k := v.kept[resource]
	switch {
	case ok:
	case v.closed:
		err = berth.ErrClosed
	case k != nil && k.opening != nil:
		wait = k.opening
	case left:
		v.mu.Unlock()
		return value, nil, caller.EndOf(ctx)
	default:
		if k == nil {
			k = &kept[T]{}
			v.kept[resource] = k
		}
		k.opening = &opening[T]{done: make(chan struct{})}
		v.mu.Unlock()
		value, err = v.openNow(ctx, resource, k)
		return value, nil, err
	}
	v.mu.Unlock()
	return value, wait, err
}

// openNow opens a resource, whose kept says so already. A panic of Open goes on to
// the caller; the next one who wants the resource opens it then.
func (v *Store[T]) openNow(ctx context.Context, resource string, k *kept[T]) (T, error) {
	var none T
	returned := false
	defer func() {
		if !returned {
			v.opened(resource, k, nil, nil)
		}
	}()
	value, err := v.open(ctx, resource)
	returned = true
	if err != nil {
		toAll := err
		if ctx.Err() != nil {
			toAll = nil
		}
		v.opened(resource, k, nil, toAll)
		return none, err
	}
	if !v.opened(resource, k, &value, nil) {
		v.end(resource, value)
		return none, berth.ErrClosed
	}
	return value, nil
}

// opened ends an Open and lets those go on who wait for it. A value that is not nil
// has a user then, unless opened returns false: Close came first.
func (v *Store[T]) opened(resource string, k *kept[T], value *T, err error) bool {
	v.mu.Lock()
	o, late := k.opening, v.closed
	o.err, k.opening = err, nil
	if value != nil && !late {
		k.current = value
		k.users++
	}
	v.tidy(resource, k)
	v.mu.Unlock()
	close(o.done)
	return !late
}

// tidy forgets a resource of which nothing is left. The caller has the lock.
func (v *Store[T]) tidy(resource string, k *kept[T]) {
	if k.users == 0 && k.current == nil && k.opening == nil && v.kept[resource] == k {
		delete(v.kept, resource)
	}
}

// Give ends a use that Take or TryTake has begun, and closes what was dropped meanwhile if it
// was the last one.
func (v *Store[T]) Give(resource string) {
	v.mu.Lock()
	k := v.kept[resource]
	if k == nil || k.users == 0 {
		v.mu.Unlock()
		return // Close has closed it
	}
	k.users--
	v.settle(resource, k)
}

// Drop ends the value of a resource: nobody gets it any more, and it is closed when
// nobody uses the resource. It does nothing where there is none; an Open that is
// under way is of what comes after.
func (v *Store[T]) Drop(resource string) {
	v.mu.Lock()
	k := v.kept[resource]
	if k == nil || k.current == nil {
		v.mu.Unlock()
		return
	}
	k.dropped = append(k.dropped, *k.current)
	k.current = nil
	v.settle(resource, k)
}

// settle closes what was dropped if nobody uses the resource. It gives back the
// lock that the caller has.
func (v *Store[T]) settle(resource string, k *kept[T]) {
	var over []T
	if k.users == 0 {
		over, k.dropped = k.dropped, nil
		v.tidy(resource, k)
	}
	v.ends.Add(1)
	v.mu.Unlock()
	defer v.ends.Done()
	for _, value := range over {
		v.end(resource, value)
	}
}

// Idle returns the resources that have a value which nobody uses here, in no order.
func (v *Store[T]) Idle() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var idle []string
	for resource, k := range v.kept {
		if k.current != nil && k.users == 0 {
			idle = append(idle, resource)
		}
	}
	return idle
}

// Close closes every value, used or not, and returns when no value is being closed any
// more. An Open under way is not waited for, it may take long: its value is closed
// when it comes.
func (v *Store[T]) Close() {
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		return
	}
	v.closed = true
	close(v.over)
	all := v.kept
	v.kept = nil
	v.mu.Unlock()

	for resource, k := range all {
		// Nobody else reaches these any more but an Open, which finds v closed.
		if k.current != nil {
			k.dropped = append(k.dropped, *k.current)
		}
		for _, value := range k.dropped {
			v.end(resource, value)
		}
	}
	v.ends.Wait()
}

// Closed says whether Close was called.
func (v *Store[T]) Closed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.closed
}

// end closes a value that nobody reaches any more, and reports an error. A panic is
// one: it would end a release that has been done, or a goroutine of the pool's.
func (v *Store[T]) end(resource string, value T) {
	if v.shut == nil {
		return
	}
	if err := caller.Catch("Close", func() error { return v.shut(value) }); err != nil {
		v.report(resource, fmt.Errorf("berth: closing the value of %q: %w", resource, err))
	}
}
