package berthotel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/measure"
)

// scope is the name of the instrumentation scope.
const scope = "github.com/berth-go/berth/contrib/otel"

// NewMetrics returns an observer for node.Config.Observer that keeps the metrics of the
// package comment. Counters and gauges are read when the provider collects; a histogram takes
// its values at once.
//
// NewMetrics returns a *[berth.ConfigError] for the fields "provider" (nil, or a provider that cannot make the
// instruments: its error is the cause), "NameClass" and "MaxClasses". One observer serves all nodes. The SDK
// adds up the measurements of several observers of one provider.
func NewMetrics(provider metric.MeterProvider, cfg measure.Config) (observe.Observer, error) {
	if provider == nil {
		return nil, berth.Invalid("provider", "must not be nil")
	}
	m := &metrics{observables: make(map[string]metric.Int64Observable), histograms: make(map[string]metric.Float64Histogram)}
	var err error
	if m.measured, err = measure.New(cfg, m.record); err != nil {
		return nil, err
	}
	if err := m.register(provider.Meter(scope)); err != nil {
		return nil, berth.Invalid("provider", "must make the instruments of Berth: %w", err)
	}
	return m.measured, nil
}

// metrics are the instruments of one observer, by their names.
type metrics struct {
	measured    *measure.Meter
	observables map[string]metric.Int64Observable
	histograms  map[string]metric.Float64Histogram
}

// register makes the instruments.
func (m *metrics) register(meter metric.Meter) error {
	var all []metric.Observable
	for _, in := range measure.Instruments() {
		help, unit := metric.WithDescription(in.Help), metric.WithUnit(in.Unit)
		var made metric.Int64Observable
		var err error
		switch in.Type {
		case measure.Counter:
			made, err = meter.Int64ObservableCounter(in.Name, help, unit)
		case measure.Gauge:
			made, err = meter.Int64ObservableUpDownCounter(in.Name, help, unit)
		default:
			m.histograms[in.Name], err = meter.Float64Histogram(in.Name, help, unit, metric.WithExplicitBucketBoundaries(in.Buckets...))
		}
		if err != nil {
			return err
		}
		if made != nil {
			m.observables[in.Name] = made
			all = append(all, made)
		}
	}
	_, err := meter.RegisterCallback(m.collect, all...)
	return err
}

// collect tells what the counters and gauges stand at.
func (m *metrics) collect(_ context.Context, to metric.Observer) error {
	m.measured.Collect(func(in measure.Instrument, values []string, value int64) {
		to.ObserveInt64(m.observables[in.Name], value, metric.WithAttributeSet(attributes(in, values)))
	})
	return nil
}

// record is for measure.New.
func (m *metrics) record(in measure.Instrument, values []string) measure.Record {
	histogram := m.histograms[in.Name]
	options := []metric.RecordOption{metric.WithAttributeSet(attributes(in, values))}
	return func(ctx context.Context, value float64) { histogram.Record(ctx, value, options...) }
}

// attributes are the labels of a series; one that is empty is left out.
func attributes(in measure.Instrument, values []string) attribute.Set {
	list := make([]attribute.KeyValue, 0, len(values))
	for i, value := range values {
		if value != "" {
			list = append(list, attribute.String("berth."+in.Labels[i], value))
		}
	}
	return attribute.NewSet(list...)
}
