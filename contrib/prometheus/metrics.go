package berthprom

import (
	"context"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/measure"
)

// New returns an observer for node.Config.Observer, and registers its metrics. To add your own
// labels, use prometheus.WrapRegistererWith.
//
// New returns a *[berth.ConfigError] for the fields "registerer" (nil, or a registerer that refuses the
// metrics), "NameClass" and "MaxClasses". A registerer accepts the metrics once: a second New returns an error
// that matches prometheus.AlreadyRegisteredError, and the first observer goes on. Give one observer to all
// nodes.
func New(registerer prometheus.Registerer, cfg measure.Config) (observe.Observer, error) {
	if registerer == nil {
		return nil, berth.Invalid("registerer", "must not be nil")
	}
	c := newCollector()
	var err error
	if c.meter, err = measure.New(cfg, c.record); err != nil {
		return nil, err
	}
	if err := registerer.Register(c); err != nil {
		return nil, berth.Invalid("registerer", "must take the metrics of Berth: %w", err)
	}
	return c.meter, nil
}

// collector is the metrics of one observer.
type collector struct {
	meter      *measure.Meter
	values     map[string]*prometheus.Desc         // by the instrument: counters and gauges
	histograms map[string]*prometheus.HistogramVec // by the instrument
}

func newCollector() *collector {
	c := &collector{values: make(map[string]*prometheus.Desc), histograms: make(map[string]*prometheus.HistogramVec)}
	for _, in := range measure.Instruments() {
		if in.Type == measure.Histogram {
			c.histograms[in.Name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name: name(in), Help: in.Help, Buckets: in.Buckets,
			}, in.Labels)
		} else {
			c.values[in.Name] = prometheus.NewDesc(name(in), in.Help, in.Labels, nil)
		}
	}
	return c
}

// name is the name of an instrument as exporters of OpenTelemetry write it for Prometheus.
func name(in measure.Instrument) string {
	text := strings.ReplaceAll(in.Name, ".", "_")
	switch in.Type {
	case measure.Counter:
		return text + "_total"
	case measure.Histogram:
		return text + "_seconds"
	}
	return text
}

// record is for measure.New.
func (c *collector) record(in measure.Instrument, values []string) measure.Record {
	series := c.histograms[in.Name].WithLabelValues(values...)
	return func(_ context.Context, value float64) { series.Observe(value) }
}

// Describe is for the registry.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, h := range c.histograms {
		h.Describe(to)
	}
	for _, d := range c.values {
		to <- d
	}
}

// Collect is for the registry.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	for _, h := range c.histograms {
		h.Collect(to)
	}
	c.meter.Collect(func(in measure.Instrument, values []string, value int64) {
		kind := prometheus.CounterValue
		if in.Type == measure.Gauge {
			kind = prometheus.GaugeValue
		}
		to <- prometheus.MustNewConstMetric(c.values[in.Name], kind, float64(value), values...)
	})
}
