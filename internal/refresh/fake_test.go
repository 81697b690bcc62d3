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

// turns is a pool on a server, as far as refreshing it goes, in virtual time.
type turns struct {
	mu    sync.Mutex
	began time.Time
	due   time.Time       // guarded by mu: when the turn comes up
	asks                  // guarded by mu
	gone  map[string]bool // guarded by mu

	refuses func(call string) error // guarded by mu: what a call fails with; nil for none
	// slow is how long a replace takes.
	slow time.Duration
}

// inTurns runs a test in virtual time, beside others, with such a pool.
func inTurns(t *testing.T, test func(t *testing.T, s *turns)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, &turns{began: time.Now(), gone: make(map[string]bool)}) })
}

func (s *turns) refused(ctx context.Context, call string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.refuses != nil {
		return s.refuses(call)
	}
	return nil
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
	if s.slow > 0 {
		time.Sleep(s.slow)
	}
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
	var absent []string
	for _, resource := range resources {
		if s.gone[resource] {
			absent = append(absent, resource)
		}
	}
	return absent, nil
}

// postpone says when the turn comes up.
func (s *turns) postpone(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due = time.Now().Add(d)
}

// fail says what calls fail with.
func (s *turns) fail(refuses func(call string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = refuses
}

// leave lets resources leave the pool.
func (s *turns) leave(resources ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range resources {
		s.gone[resource] = true
	}
}

// asks is what was asked of the server so far: when turn and stay were, and what replace and absent were asked.
type asks struct {
	asked, stays    []time.Duration
	replaces, looks [][]string
}

func (s *turns) seen() asks {
	s.mu.Lock()
	defer s.mu.Unlock()
	return asks{slices.Clone(s.asked), slices.Clone(s.stays), slices.Clone(s.replaces), slices.Clone(s.looks)}
}

// refreshes is a refresher, and what it has told.
type refreshes struct {
	*Refresher
	mu    sync.Mutex
	tells []string // guarded by mu
	idles []string // guarded by mu
	drops []string // guarded by mu
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
			r.mu.Lock()
			defer r.mu.Unlock()
			r.tells = append(r.tells, text)
		},
		Idle: func() []string {
			r.mu.Lock()
			defer r.mu.Unlock()
			return slices.Clone(r.idles)
		},
		Drop: func(resource string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.drops = append(r.drops, resource)
			r.idles = slices.DeleteFunc(r.idles, func(idle string) bool { return idle == resource })
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

// told is what was told so far.
func (r *refreshes) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tells)
}

func (r *refreshes) dropped() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.drops)
}

// after lets a time pass, and everything that happens then.
func after(d time.Duration) {
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
