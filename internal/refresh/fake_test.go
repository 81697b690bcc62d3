package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errMine  = errors.New("my own reason")
	errOther = errors.New("another reason")
)

// every is how often the refreshers of these tests ask: its third is whole.
const every = 30 * time.Second

// turns is a pool on a server, as far as refreshing it goes, in virtual time. A test reads it while nothing runs.
type turns struct {
	mu              sync.Mutex
	began           time.Time
	due             time.Time               // guarded by mu: when the turn comes up
	asked, stays    []time.Duration         // guarded by mu: when turn and stay were called
	replaces, looks [][]string              // guarded by mu: what replace and absent were called with
	gone            []string                // guarded by mu: what has left the pool
	refuses         func(call string) error // guarded by mu: what a call fails with; nil for none
	slow            time.Duration           // how long a replace takes
}

// inTurns runs a test in virtual time, beside others, with such a pool.
func inTurns(t *testing.T, test func(t *testing.T, s *turns)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, &turns{began: time.Now()}) })
}

// set has something be different from now on.
func (s *turns) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// fail says what calls fail with.
func (s *turns) fail(refuses func(call string) error) { s.set(func() { s.refuses = refuses }) }

// postpone says when the turn comes up.
func (s *turns) postpone(d time.Duration) { s.set(func() { s.due = time.Now().Add(d) }) }

func (s *turns) refused(ctx context.Context, call string) error {
	if ctx.Err() != nil || s.refuses == nil {
		return ctx.Err()
	}
	return s.refuses(call)
}

func (s *turns) turn(ctx context.Context, d time.Duration) (bool, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, time.Since(s.began))
	if err := s.refused(ctx, "turn"); err != nil {
		return false, 0, err
	}
	if left := time.Until(s.due); left > 0 {
		return false, left, nil
	}
	s.due = time.Now().Add(d)
	return true, 0, nil
}

func (s *turns) stay(ctx context.Context, d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stays = append(s.stays, time.Since(s.began))
	if err := s.refused(ctx, "stay"); err != nil {
		return err
	}
	s.due = time.Now().Add(d)
	return nil
}

func (s *turns) replace(ctx context.Context, resources []string) error {
	time.Sleep(s.slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refused(ctx, "replace"); err != nil {
		return err
	}
	s.replaces = append(s.replaces, resources)
	return nil
}

func (s *turns) absent(ctx context.Context, resources []string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refused(ctx, "absent"); err != nil {
		return nil, err
	}
	s.looks = append(s.looks, resources)
	return slices.DeleteFunc(slices.Clone(resources), func(r string) bool { return !slices.Contains(s.gone, r) }), nil
}

// refreshes is a refresher, and what it has told, has not in use and has dropped, guarded by the mu of its turns.
type refreshes struct {
	*Refresher
	told, idles, dropped []string
}

// refreshes starts a refresher without jitter, which the test's end stops.
func (s *turns) refreshes(t *testing.T, source func(context.Context) ([]string, error), change ...func(*Config)) *refreshes {
	t.Helper()
	r := &refreshes{}
	cfg := Config{
		Source: source, Every: every, Turn: s.turn, Stay: s.stay, Replace: s.replace, Absent: s.absent,
		Tell: func(_ context.Context, resources int, err error) {
			text := fmt.Sprint("refreshed ", resources)
			if err != nil {
				first, _, _ := strings.Cut(err.Error(), "\n")
				text = "failed " + first
			}
			s.set(func() { r.told = append(r.told, text) })
		},
		Idle: func() []string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Clone(r.idles)
		},
		Drop: func(resource string) {
			s.set(func() {
				r.dropped = append(r.dropped, resource)
				r.idles = slices.DeleteFunc(r.idles, func(idle string) bool { return idle == resource })
			})
		},
		jitter: func(time.Duration) time.Duration { return 0 },
	}
	for _, f := range change {
		f(&cfg)
	}
	r.Refresher = Start(cfg)
	t.Cleanup(r.Stop)
	return r
}

// after lets a time pass, and everything that happens then.
func (s *turns) after(d time.Duration) {
	s.set(func() {}) // what was read may be written from now on
	time.Sleep(d)
	synctest.Wait()
}

func returns(resources ...string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) { return resources, nil }
}

func seconds(s ...int) (all []time.Duration) {
	for _, n := range s {
		all = append(all, time.Duration(n)*time.Second)
	}
	return all
}
