package measure_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/measure"
)

// store is a metrics library: what a Meter has told it, by the series.
type store struct {
	*measure.Meter
	mu     sync.Mutex
	values map[string][]float64 // guarded by mu: of histograms
}

func newStore(t testing.TB, opts measure.Config) *store {
	t.Helper()
	s := &store{values: make(map[string][]float64)}
	var err error
	s.Meter, err = measure.New(opts, func(in measure.Instrument, values []string) measure.Record {
		if in.Type != measure.Histogram || len(values) != len(in.Labels) {
			panic(fmt.Sprint(in, values))
		}
		series := in.Name + " " + strings.Join(values, " ")
		return func(_ context.Context, value float64) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.values[series] = append(s.values[series], value)
		}
	})
	require.NoError(t, err)
	return s
}

// numbers are the counters and gauges.
func (s *store) numbers() map[string]int64 {
	numbers := make(map[string]int64)
	s.Collect(func(in measure.Instrument, values []string, value int64) {
		series := in.Name + " " + strings.Join(values, " ")
		if _, twice := numbers[series]; twice || len(values) != len(in.Labels) {
			panic(series)
		}
		numbers[series] = value
	})
	return numbers
}

func plain(name string) string { return name }

func lock(kind observe.Kind, name string, fill ...func(*observe.Event)) observe.Event {
	e := observe.Event{Kind: kind, Primitive: "lock", Name: name, Context: context.Background()}
	for _, f := range fill {
		f(&e)
	}
	return e
}

func queued(e *observe.Event)     { e.WasQueued = true }
func over(e *observe.Event)       { e.WasHeld, e.Held = true, 3*time.Second }
func unanswered(e *observe.Event) { e.Err = &berth.AcquireError{Cause: berth.ErrUnavailable} }

func TestWhatAnEventAddsTo(t *testing.T) {
	t.Parallel()
	numbers := func(of ...any) map[string]int64 {
		all := make(map[string]int64)
		for i := 0; i < len(of); i += 2 {
			all["berth."+of[i].(string)] = int64(of[i+1].(int))
		}
		return all
	}
	for name, c := range map[string]struct {
		events  []observe.Event
		numbers map[string]int64
		values  map[string][]float64
	}{
		"a wait": {
			[]observe.Event{
				lock(observe.Queued, "a"),
				lock(observe.Granted, "a", queued, func(e *observe.Event) { e.Waited = 2 * time.Second }),
			},
			numbers("events lock a queued", 1, "acquires lock a granted", 1, "waiting lock a", 0, "held lock a", 1),
			map[string][]float64{"berth.wait_time lock a": {2}},
		},
		"a re-entry, which does not wait": {
			[]observe.Event{lock(observe.Reentered, "a"), lock(observe.ReentryEnded, "a", over)},
			numbers("acquires lock a reentered", 1, "held lock a", 0, "hold_ends lock a reentry_ended", 1),
			map[string][]float64{"berth.hold_time lock a": {3}},
		},
		"a hold that is handed to another process": {
			[]observe.Event{lock(observe.Granted, "a"), lock(observe.Detached, "a", over), lock(observe.Resumed, "a")},
			numbers("acquires lock a granted", 1, "hold_ends lock a detached", 1, "events lock a resumed", 1, "held lock a", 1),
			map[string][]float64{"berth.wait_time lock a": {0}, "berth.hold_time lock a": {3}},
		},
		"a release that is answered at the second try": {
			[]observe.Event{lock(observe.Granted, "a"), lock(observe.ReleaseFailed, "a", over), lock(observe.Released, "a")},
			numbers("acquires lock a granted", 1, "hold_ends lock a release_failed", 1, "unanswered_calls lock a release", 1, "held lock a", 0),
			map[string][]float64{"berth.wait_time lock a": {0}, "berth.hold_time lock a": {3}},
		},
		"an acquire that nobody answered, and one with an error": {
			[]observe.Event{lock(observe.Failed, "a", unanswered), lock(observe.Failed, "a")},
			numbers("acquires lock a failed", 2, "unanswered_calls lock a acquire", 1), nil,
		},
		"other calls that were not answered": {
			[]observe.Event{lock(observe.Repeated, ""), lock(observe.Repeated, "a"), lock(observe.CleanupFailed, "a")},
			numbers("repeated_calls lock ", 1, "repeated_calls lock a", 1, "unanswered_calls lock a cleanup", 1), nil,
		},
		"heartbeats": {
			[]observe.Event{
				lock(observe.Heartbeat, "", func(e *observe.Event) { e.Count, e.Late = 5, time.Second }),
				lock(observe.Heartbeat, "", func(e *observe.Event) { e.Count, e.Err = 2, errors.New("no answer") }),
			},
			numbers("heartbeats lock answered", 5, "heartbeats lock unanswered", 2),
			map[string][]float64{"berth.heartbeat_delay lock": {1, 0}},
		},
		"what no other instrument counts": {
			[]observe.Event{lock(observe.HeldLong, "a"), lock(observe.Subscribed, ""), lock("of a later release", "a")},
			numbers("events lock a held_long", 1, "events lock  subscribed", 1, "events lock a other", 1), nil,
		},
		"two primitives": {
			[]observe.Event{lock(observe.Deadlock, "a"), lock(observe.Refused, "a", func(e *observe.Event) { e.Primitive = "sem" })},
			numbers("acquires lock a deadlock", 1, "acquires sem a refused", 1), nil,
		},
		"a class that is no text": {
			[]observe.Event{lock(observe.Refused, "a\xff")},
			numbers("acquires lock a? refused", 1), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, measure.Config{NameClass: plain})
			for _, e := range c.events {
				s.Observe(e)
			}
			require.Equal(t, c.numbers, s.numbers())
			if c.values == nil {
				c.values = map[string][]float64{}
			}
			require.Equal(t, c.values, s.values)
		})
	}
}

// Each kind is counted once, by one instrument, so that none is overlooked.
func TestEveryKindIsCountedOnce(t *testing.T) {
	t.Parallel()
	counters := []string{"berth.acquires", "berth.hold_ends", "berth.repeated_calls", "berth.heartbeats", "berth.events"}
	for _, kind := range observe.Kinds() {
		s, counted := newStore(t, measure.Config{NameClass: plain}), int64(0)
		s.Observe(lock(kind, "a", over, func(e *observe.Event) { e.Count = 1 }))
		for series, n := range s.numbers() {
			if slices.Contains(counters, strings.Fields(series)[0]) {
				counted += n
			}
		}
		if kind == observe.CleanupFailed {
			counted++ // of a call that was not answered
		}
		require.EqualValues(t, 1, counted, kind)
	}
}

// A claim that begins before the classes are used up, or after, ends in the series in which it began.
func TestAGaugeReturnsToZeroThoughTheClassesAreUsedUpInBetween(t *testing.T) {
	t.Parallel()
	const names = 5000 // more than are remembered
	s := newStore(t, measure.Config{NameClass: plain, MaxClasses: 10})
	for _, kind := range []observe.Kind{observe.Queued, observe.Granted, observe.Released} {
		for i := range names {
			s.Observe(lock(kind, fmt.Sprint(i), func(e *observe.Event) {
				e.WasQueued, e.WasHeld = kind == observe.Granted, kind == observe.Released
			}))
		}
	}
	numbers := s.numbers()
	gauges := 0
	for series, n := range numbers {
		if strings.HasPrefix(series, "berth.waiting") || strings.HasPrefix(series, "berth.held") {
			require.Zero(t, n, series)
			gauges++
		}
	}
	require.Equal(t, 2*11, gauges)
	require.EqualValues(t, names-10, numbers["berth.acquires lock other granted"])
}

// The module contrib/otel does the same with a million names.
func TestNamesWithoutEndMakeACappedNumberOfSeries(t *testing.T) {
	t.Parallel()
	const most, goroutines, each = 20, 50, 2000
	s := newStore(t, measure.Config{NameClass: plain, MaxClasses: most})
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range each {
				s.Observe(lock(observe.Queued, fmt.Sprint(g*each+i)))
				s.Observe(lock(observe.Refused, fmt.Sprint(g*each+i), queued))
			}
		})
	}
	all.Wait()
	numbers, refused := s.numbers(), int64(0)
	require.Len(t, numbers, (most+1)*3, "events, waiting, acquires")
	for series, n := range numbers {
		if strings.HasPrefix(series, "berth.acquires") {
			refused += n
		}
		if strings.HasPrefix(series, "berth.waiting") {
			require.Zero(t, n, series)
		}
	}
	require.EqualValues(t, goroutines*each, refused)
}

func TestPrimitivesAreBoundedToo(t *testing.T) {
	t.Parallel()
	s := newStore(t, measure.Config{NameClass: plain})
	for i := range 100 {
		s.Observe(lock(observe.Refused, "", func(e *observe.Event) { e.Primitive = fmt.Sprint(i) }))
	}
	numbers := s.numbers()
	require.Len(t, numbers, 9)
	require.EqualValues(t, 92, numbers["berth.acquires other  refused"])
}

func TestTheClassOfANameIsRemembered(t *testing.T) {
	t.Parallel()
	asked := 0
	s := newStore(t, measure.Config{NameClass: func(name string) string { asked++; return name }})
	for range 100 {
		s.Observe(lock(observe.Queued, "a"))
		s.Observe(lock(observe.Subscribed, ""))
	}
	require.Equal(t, 1, asked)
}

// A run of package once tells of its lock and of itself in turn, by one name.
func TestTheClassOfANameIsRememberedForEachPrimitive(t *testing.T) {
	s := newStore(t, measure.Config{NameClass: plain})
	var events []observe.Event
	for i := range 100 {
		for _, primitive := range []string{"lock", "once"} {
			events = append(events, lock(observe.Queued, fmt.Sprint(i), func(e *observe.Event) { e.Primitive = primitive }))
		}
	}
	allocations := testing.AllocsPerRun(10, func() {
		for _, e := range events {
			s.Observe(e)
		}
	})
	require.Less(t, allocations, float64(len(events)/2), "a few names share a place, by chance")
}

func TestOptionsThatAreWrongAreNamed(t *testing.T) {
	t.Parallel()
	for field, opts := range map[string]measure.Config{
		"NameClass":  {},
		"MaxClasses": {NameClass: plain, MaxClasses: -1},
		"histogram":  {NameClass: plain},
	} {
		_, err := measure.New(opts, nil)
		wrong, ok := errors.AsType[*berth.ConfigError](err)
		require.True(t, ok, field)
		require.Equal(t, field, wrong.Field)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
