package berthprom_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	berthprom "github.com/berth-go/berth/contrib/prometheus"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/measure"
)

// collapsed is the plain setting.
var collapsed = measure.Config{NameClass: measure.Collapse}

// event is one of a lock.
func event(kind observe.Kind, name string) observe.Event {
	return observe.Event{Kind: kind, Primitive: "lock", Name: name, Context: context.Background()}
}

// everything tells an observer of each kind, as the end of a wait and of a hold too.
func everything(o observe.Observer) {
	for _, kind := range observe.Kinds() {
		e := event(kind, "order:1")
		e.Waited, e.Held, e.Late, e.Count = time.Second, time.Second, time.Second, 1
		e.WasHeld = !kind.EndsAcquire()
		o.Observe(e)
		e.Err = berth.ErrUnavailable
		o.Observe(e)
	}
	o.Observe(event("of a later release", "order:1"))
}

// observing is an observer, with a registry of its own.
func observing(t testing.TB, opts measure.Config) (*prometheus.Registry, observe.Observer) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	metrics, err := berthprom.New(registry, opts)
	require.NoError(t, err)
	return registry, metrics
}

func TestWhatTheEventsOfTwoClaimsMeasure(t *testing.T) {
	t.Parallel()
	registry, metrics := observing(t, collapsed)
	metrics.Observe(event(observe.Queued, "order:1"))
	metrics.Observe(event(observe.Queued, "order:22"))
	granted := event(observe.Granted, "order:1")
	granted.WasQueued, granted.Waited = true, 2*time.Second
	metrics.Observe(granted)
	lost := event(observe.Lost, "order:1")
	lost.WasHeld, lost.Held = true, 20*time.Second
	metrics.Observe(lost)

	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP berth_hold_ends_total Holds that have ended.
# TYPE berth_hold_ends_total counter
berth_hold_ends_total{name_class="order:*",outcome="lost",primitive="lock"} 1
# HELP berth_waiting Claims of this process that wait in line now.
# TYPE berth_waiting gauge
berth_waiting{name_class="order:*",primitive="lock"} 1
`), "berth_hold_ends_total", "berth_waiting"))

	sums := map[string]float64{}
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if h := metric.GetHistogram(); h != nil {
				require.EqualValues(t, 1, h.GetSampleCount())
				sums[family.GetName()] = h.GetSampleSum()
			}
		}
	}
	require.Equal(t, map[string]float64{"berth_wait_time_seconds": 2, "berth_hold_time_seconds": 20}, sums)
}

func TestAnEventOfTheCommonCourseAllocatesNothing(t *testing.T) {
	_, metrics := observing(t, collapsed)
	for _, e := range course() {
		require.Zero(t, testing.AllocsPerRun(1000, func() { metrics.Observe(e) }), e.Kind)
	}
}

// course is the events of a claim that waits, and holds.
func course() []observe.Event {
	queued, granted, released := event(observe.Queued, "order:12345"), event(observe.Granted, "order:12345"), event(observe.Released, "order:12345")
	granted.WasQueued, granted.Waited = true, time.Second
	released.WasHeld, released.Held = true, time.Minute
	return []observe.Event{queued, granted, released}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	t.Parallel()
	taken, first := observing(t, collapsed)
	for field, try := range map[string]func() error{
		"NameClass": func() error { _, err := berthprom.New(prometheus.NewRegistry(), measure.Config{}); return err },
		"MaxClasses": func() error {
			_, err := berthprom.New(prometheus.NewRegistry(), measure.Config{NameClass: measure.Collapse, MaxClasses: -1})
			return err
		},
		"registerer": func() error { _, err := berthprom.New(taken, collapsed); return err },
	} {
		wrong, ok := errors.AsType[*berth.ConfigError](try())
		require.True(t, ok, field)
		require.Equal(t, field, wrong.Field)
	}
	_, err := berthprom.New(nil, collapsed)
	require.ErrorContains(t, err, "registerer")
	_, err = berthprom.New(taken, collapsed)
	_, already := errors.AsType[prometheus.AlreadyRegisteredError](err)
	require.True(t, already, err)
	first.Observe(event(observe.Granted, "order:1")) // it goes on
	families, err := taken.Gather()
	require.NoError(t, err)
	require.NotEmpty(t, families)
}

// The names of all metrics pass promlint. The package comment lists each, with its star where it has classes.
func TestThePackageCommentListsTheMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	registry, metrics := observing(t, collapsed)
	everything(metrics)
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, len(measure.Instruments()))
	for _, family := range families {
		name := family.GetName()
		for _, label := range family.GetMetric()[0].GetLabel() {
			if label.GetName() == "name_class" {
				name += "*"
			}
		}
		require.Contains(t, string(text), "//\t"+name+" ")
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				if label.GetName() == "outcome" || label.GetName() == "call" {
					require.Regexp(t, `\b`+label.GetValue()+`\b`, string(text), name)
				}
			}
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
