package allocator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/berth-go/berth"
)

// values keeps what PoolConfig.Open made of the resources, once per resource and
// process, and counts who uses it here. It is safe for concurrent use. No function
// of the caller's is called with its lock held.
type values[T any] struct {
	open   func(context.Context, string) (T, error) // nil: the value is the key
	shut   func(T) error                            // nil for nothing to do
	report func(resource string, err error)         // is told an error of shut

	over chan struct{}  // closed by closeAll
	ends sync.WaitGroup // values that are being closed; Add only under mu while not closed

	mu     sync.Mutex
	closed bool                // guarded by mu
	kept   map[string]*kept[T] // guarded by mu: what has a value, an Open under way, or users
}

// kept is what there is of one resource. It is guarded by values.mu.
//
// Users are counted by resource, not by value: where one value was dropped and
// another opened while somebody uses the first, nobody can tell whose a user is.
// So what was dropped is closed when nobody uses the resource at all, which may be
// later than its own last user, and is never under one.
type kept[T any] struct {
	users   int
	current *T          // what the next take gets, nil for none
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

// newValues returns the values of a pool, none yet. Where open is nil, T is string.
func newValues[T any](open func(context.Context, string) (T, error), shut func(T) error, report func(resource string, err error)) *values[T] {
	return &values[T]{
		open: open, shut: shut, report: report,
		over: make(chan struct{}), kept: make(map[string]*kept[T]),
	}
}

// valuesAreKeys says whether T is string, as it has to be without an Open.
func valuesAreKeys[T any]() bool {
	var none T
	_, ok := any(none).(string)
	return ok
}

// take returns the value of a resource, which Open makes if there is none, and
// counts a user of it, who ends with give. One Open of a resource runs at a time,
// and who comes meanwhile waits for it or for its own ctx. It returns Open's error,
// what ctx says of its end, or berth.ErrClosed.
func (v *values[T]) take(ctx context.Context, resource string) (T, error) {
	for {
		value, wait, err := v.tryTake(ctx, resource)
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
			return value, endOfContext(ctx)
		}
	}
}

// there returns the value of a resource and counts a user, if nothing has to be
// opened for it.
func (v *values[T]) there(resource string) (value T, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
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

// tryTake takes what is there, or opens; or it returns the Open to wait for.
func (v *values[T]) tryTake(ctx context.Context, resource string) (value T, wait *opening[T], err error) {
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		return value, nil, berth.ErrClosed
	}
	if v.open == nil {
		v.mu.Unlock()
		value, _ = any(resource).(T)
		return value, nil, nil
	}
	k := v.kept[resource]
	switch {
	case k != nil && k.current != nil:
		k.users++
		value = *k.current
	case k != nil && k.opening != nil:
		wait = k.opening
	case ctx.Err() != nil:
		err = endOfContext(ctx)
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
func (v *values[T]) openNow(ctx context.Context, resource string, k *kept[T]) (T, error) {
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
		_ = v.end(resource, value) // it has been reported
		return none, berth.ErrClosed
	}
	return value, nil
}

// opened ends an Open and lets those go on who wait for it. A value that is not nil
// has a user then, unless opened returns false: closeAll came first.
func (v *values[T]) opened(resource string, k *kept[T], value *T, err error) bool {
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
func (v *values[T]) tidy(resource string, k *kept[T]) {
	if k.users == 0 && k.current == nil && k.opening == nil && v.kept[resource] == k {
		delete(v.kept, resource)
	}
}

// give ends a use that take has begun, and closes what was dropped meanwhile if it
// was the last one.
func (v *values[T]) give(resource string) {
	v.mu.Lock()
	k := v.kept[resource]
	if k == nil || k.users == 0 {
		v.mu.Unlock()
		return // closeAll has closed it
	}
	k.users--
	v.settle(resource, k)
}

// drop ends the value of a resource: nobody gets it any more, and it is closed when
// nobody uses the resource. It does nothing where there is none; an Open that is
// under way is of what comes after.
func (v *values[T]) drop(resource string) {
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
func (v *values[T]) settle(resource string, k *kept[T]) {
	var over []T
	if k.users == 0 {
		over, k.dropped = k.dropped, nil
		v.tidy(resource, k)
	}
	v.ends.Add(1)
	v.mu.Unlock()
	defer v.ends.Done()
	for _, value := range over {
		_ = v.end(resource, value) // it has been reported
	}
}

// idle returns the resources that have a value which nobody uses here, in no order.
func (v *values[T]) idle() []string {
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

// closeAll closes every value, used or not, and returns the errors, which report is
// told too, when nothing is being closed any more. An Open under way is not waited for, it may take long: its value is
// closed when it comes.
func (v *values[T]) closeAll() error {
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		return nil
	}
	v.closed = true
	close(v.over)
	all := v.kept
	v.kept = nil
	v.mu.Unlock()

	var errs []error
	for resource, k := range all {
		// Nobody else reaches these any more but an Open, which finds v closed.
		if k.current != nil {
			k.dropped = append(k.dropped, *k.current)
		}
		for _, value := range k.dropped {
			errs = append(errs, v.end(resource, value))
		}
	}
	v.ends.Wait()
	return errors.Join(errs...)
}

// isClosed says whether closeAll was called.
func (v *values[T]) isClosed() bool {
	select {
	case <-v.over:
		return true
	default:
		return false
	}
}

// end closes a value that nobody reaches any more, and reports an error. A panic is
// one: it would end a Release that has been done, or a goroutine of the pool's.
func (v *values[T]) end(resource string, value T) error {
	if v.shut == nil {
		return nil
	}
	err := caught("Close", func() error { return v.shut(value) })
	if err == nil {
		return nil
	}
	err = fmt.Errorf("berth: closing the value of %q: %w", resource, err)
	v.report(resource, err)
	return err
}
