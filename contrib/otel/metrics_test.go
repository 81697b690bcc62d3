package berthotel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	berthotel "github.com/berth-go/berth/contrib/otel"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/measure"
)

// collapsed is the plain setting.
var collapsed = measure.Config{NameClass: measure.Collapse}

// newMetrics returns an observer, and what reads its metrics.
func newMetrics(t testing.TB, opts measure.Config) (observe.Observer, *sdk.ManualReader) {
	t.Helper()
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	metrics, err := berthotel.NewMetrics(provider, opts)
	require.NoError(t, err)
	return metrics, reader
}

// read returns the metrics by their names.
func read(t testing.TB, reader *sdk.ManualReader) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	byName := make(map[string]metricdata.Metrics)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			byName[m.Name] = m
		}
	}
	return byName
}

// series are the series of a metric, and their values; of a histogram the sums.
func series(m metricdata.Metrics) map[string]float64 {
	all := make(map[string]float64)
	key := func(set attribute.Set) string { return set.Encoded(attribute.DefaultEncoder()) }
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			all[key(p.Attributes)] = float64(p.Value)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			all[key(p.Attributes)] = p.Sum
		}
	}
	return all
}

// event is one of a lock.
func event(kind observe.Kind, name string) observe.Event {
	return observe.Event{
		Kind: kind, Primitive: "lock", Namespace: "berth", Name: name, Claim: "n.1", Context: context.Background(),
		At: time.Date(2026, 11, 27, 5, 0, 0, 0, time.UTC),
	}
}

// course is the events of a claim that waits, and holds.
func course() []observe.Event {
	queued, granted, released := event(observe.Queued, "order:12345"), event(observe.Granted, "order:12345"), event(observe.Released, "order:12345")
	granted.WasQueued, granted.Waited, granted.Fence = true, 2*time.Second, 7
	released.WasHeld, released.Held, released.Fence = true, time.Minute, 7
	return []observe.Event{queued, granted, released}
}

func TestEveryInstrumentIsMadeAsItIsDescribed(t *testing.T) {
	t.Parallel()
	metrics, reader := newMetrics(t, collapsed)
	for _, kind := range observe.Kinds() {
		e := event(kind, "order:1")
		e.WasHeld, e.Err, e.Count = kind == observe.Released, berth.ErrUnavailable, 1
		metrics.Observe(e)
	}
	got := read(t, reader)
	for _, in := range measure.Instruments() {
		require.Contains(t, got, in.Name)
		m := got[in.Name]
		require.Equal(t, []string{in.Help, in.Unit}, []string{m.Description, m.Unit})
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			require.Equal(t, in.Type == measure.Counter, data.IsMonotonic, in.Name)
			require.NotEqual(t, measure.Histogram, in.Type, in.Name)
		case metricdata.Histogram[float64]:
			require.Equal(t, measure.Histogram, in.Type, in.Name)
			require.Equal(t, in.Buckets, data.DataPoints[0].Bounds, in.Name)
		default:
			require.Fail(t, "another kind of metric", "%s: %T", in.Name, data)
		}
	}
	require.Len(t, got, len(measure.Instruments()))
}

func TestWhatAClaimMeasures(t *testing.T) {
	t.Parallel()
	metrics, reader := newMetrics(t, collapsed)
	events := course()
	for _, e := range events[:2] {
		metrics.Observe(e)
	}
	got := read(t, reader)
	const lock = "berth.name_class=order:*,%sberth.primitive=lock"
	plain, granted, released := fmt.Sprintf(lock, ""), fmt.Sprintf(lock, "berth.outcome=granted,"), fmt.Sprintf(lock, "berth.outcome=released,")
	require.Equal(t, map[string]float64{granted: 1}, series(got["berth.acquires"]))
	require.Equal(t, map[string]float64{plain: 0}, series(got["berth.waiting"]))
	require.Equal(t, map[string]float64{plain: 1}, series(got["berth.held"]))
	require.Equal(t, map[string]float64{plain: 2}, series(got["berth.wait_time"]))

	metrics.Observe(events[2])
	beat := event(observe.Heartbeat, "")
	beat.Count = 5
	metrics.Observe(beat)
	metrics.Observe(event(observe.Subscribed, ""))
	got = read(t, reader)
	require.Equal(t, map[string]float64{plain: 0}, series(got["berth.held"]))
	require.Equal(t, map[string]float64{plain: 60}, series(got["berth.hold_time"]))
	require.Equal(t, map[string]float64{released: 1}, series(got["berth.hold_ends"]))
	require.Contains(t, series(got["berth.events"]), "berth.kind=subscribed,berth.primitive=lock")
	require.Equal(t, map[string]float64{"berth.outcome=answered,berth.primitive=lock": 5}, series(got["berth.heartbeats"]))
}

// However many names there are, and however many goroutines tell of them at once, there are no more
// series than those of the classes that may be.
func TestAMillionNamesMakeACappedNumberOfSeries(t *testing.T) {
	t.Parallel()
	const most, goroutines, each = 50, 20, 50_000
	metrics, reader := newMetrics(t, measure.Config{NameClass: func(name string) string { return name }, MaxClasses: most})
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range each {
				metrics.Observe(event(observe.Granted, fmt.Sprintf("name-%d-%d", g, i)))
			}
		})
	}
	all.Wait()
	got := read(t, reader)
	for _, name := range []string{"berth.acquires", "berth.wait_time", "berth.held"} {
		require.Len(t, series(got[name]), most+1, name)
	}
	granted := 0.0
	for _, n := range series(got["berth.acquires"]) {
		granted += n
	}
	require.Equal(t, goroutines*each, int(granted))
}

func TestAnEventOfTheCommonCourseAllocatesNothing(t *testing.T) {
	metrics, _ := newMetrics(t, collapsed)
	for _, e := range course() {
		require.Zero(t, testing.AllocsPerRun(1000, func() { metrics.Observe(e) }), e.Kind)
	}
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	t.Parallel()
	for field, try := range map[string]func() error{
		"NameClass": func() error {
			_, err := berthotel.NewMetrics(noop.NewMeterProvider(), measure.Config{})
			return err
		},
		"MaxClasses": func() error {
			_, err := berthotel.NewMetrics(noop.NewMeterProvider(), measure.Config{NameClass: measure.Collapse, MaxClasses: -1})
			return err
		},
		"provider": func() error { _, err := berthotel.NewMetrics(nil, collapsed); return err },
	} {
		wrong, ok := errors.AsType[*berth.ConfigError](try())
		require.True(t, ok, field)
		require.Equal(t, field, wrong.Field)
	}
	_, err := berthotel.NewTraces(nil)
	require.ErrorContains(t, err, "provider")
	_, err = berthotel.NewMetrics(brokenProvider{}, collapsed)
	require.ErrorIs(t, err, berth.ErrInvalidConfig)
	require.ErrorIs(t, err, errBroken)

	metrics, err := berthotel.NewMetrics(noop.NewMeterProvider(), collapsed) // one that drops everything will do
	require.NoError(t, err)
	for _, e := range course() {
		metrics.Observe(e)
	}
}

// The package comment lists every metric, with its star where it has classes.
func TestThePackageCommentListsTheMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, in := range measure.Instruments() {
		name := in.Name
		if slices.Contains(in.Labels, "name_class") {
			name += "*"
		}
		require.Contains(t, string(text), "//\t"+name+" ")
	}
}

// brokenProvider makes no instruments.
type brokenProvider struct{ noop.MeterProvider }

type brokenMeter struct{ noop.Meter }

var errBroken = errors.New("no instruments here")

func (brokenProvider) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

func (brokenMeter) Int64ObservableCounter(string, ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	return nil, errBroken
}

func TestTwoObserversOfOneProviderAddUp(t *testing.T) {
	t.Parallel()
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	for range 2 {
		metrics, err := berthotel.NewMetrics(provider, collapsed)
		require.NoError(t, err)
		metrics.Observe(course()[1])
	}
	for range 2 {
		for _, value := range series(read(t, reader)["berth.acquires"]) {
			require.InDelta(t, 2, value, 0)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
