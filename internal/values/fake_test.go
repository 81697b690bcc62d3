package values

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thing is a value: which resource it is of, and the number of its Open.
type thing struct {
	resource string
	number   int
}

// things are values whose Opens and Closes are counted.
type things struct {
	*Store[thing]
	t *testing.T

	// before is called in each Open, and may fail it; during in each Close.
	before func(ctx context.Context, resource string) error
	during func(thing) error

	mu      sync.Mutex
	opened  int             // guarded by mu: how often Open was called
	made    int             // guarded by mu: how many of these worked
	closed  map[thing]int   // guarded by mu: how often
	reports []string        // guarded by mu
	opening map[string]bool // guarded by mu: an Open runs
}

func newThings(t *testing.T) *things {
	t.Helper()
	s := &things{t: t, closed: make(map[thing]int), opening: make(map[string]bool)}
	s.Store = New(s.openOne, s.closeOne, func(resource string, err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reports = append(s.reports, resource+": "+err.Error())
	})
	return s
}

// inStore runs a test in virtual time, beside others, with such values.
func inStore(t *testing.T, test func(t *testing.T, s *things)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, newThings(t)) })
}

// opensLater has each Open wait until let is closed.
func (s *things) opensLater() (let chan struct{}) {
	let = make(chan struct{})
	s.before = func(context.Context, string) error { <-let; return nil }
	return let
}

func (s *things) openOne(ctx context.Context, resource string) (thing, error) {
	s.mu.Lock()
	if s.opening[resource] {
		s.t.Errorf("%q is opened twice at once", resource)
	}
	s.opening[resource] = true
	s.opened++
	number := s.opened
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.opening[resource] = false
	}()
	if s.before != nil {
		if err := s.before(ctx, resource); err != nil {
			return thing{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return thing{resource, number}, nil
}

func (s *things) closeOne(v thing) error {
	s.Idle() // takes the lock, so a Close under it would never return
	s.mu.Lock()
	s.closed[v]++
	s.mu.Unlock()
	if s.during != nil {
		return s.during(v)
	}
	return nil
}

// use takes a resource, which must work.
func (s *things) use(resource string) thing {
	s.t.Helper()
	v, err := s.Take(context.Background(), resource)
	require.NoError(s.t, err)
	require.Equal(s.t, resource, v.resource)
	return v
}

// closes are the numbers of what was closed, in order.
func (s *things) closes() []int {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	numbers := []int{}
	for v, times := range s.closed {
		require.Equal(s.t, 1, times, "%v is closed once", v)
		numbers = append(numbers, v.number)
	}
	slices.Sort(numbers)
	return numbers
}

// taken is a take in the background.
type taken struct {
	value    thing
	err      error
	panicked any
	done     bool
}

func (s *things) begin(ctx context.Context, resource string) *taken {
	s.t.Helper()
	r := &taken{}
	go func() {
		defer func() {
			r.panicked = recover()
			r.done = true
		}()
		r.value, r.err = s.Take(ctx, resource)
	}()
	synctest.Wait()
	return r
}

var errMyOwn = errors.New("my own reason")
