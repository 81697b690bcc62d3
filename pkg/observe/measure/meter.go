package measure

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
)

// Config says how names become classes.
type Config struct {
	// NameClass returns the class of a name, such as "order:*" of "order:12345". It must
	// always return the same class for a name, and several goroutines call it at once. It is not
	// called for each event: what it returned is remembered for 4096 names. Required; see [Collapse].
	NameClass func(name string) string
	// MaxClasses is how many classes have series of their own, all primitives together; those
	// that come later share the class [Other]. Default 200.
	MaxClasses int
}

// Record takes one value of one series of a histogram. ctx has the values of the call that the
// value is of.
type Record func(ctx context.Context, value float64)

// Meter is an observer that measures. One of them may serve all clients of a process. It is
// safe for concurrent use.
type Meter struct {
	instruments []Instrument
	plans       map[observe.Kind]plan
	rows        []row
	histogram   func(in Instrument, values []string) Record
	classes     classes
}

// New returns a Meter for a metrics library. The Meter keeps the counters and the gauges itself:
// the library asks for them by [Meter.Collect] when it is scraped. What belongs to a
// histogram goes to the library at once: histogram returns what takes the values of one series.
// It is called once for each series, or a few times at the same moment.
//
// It returns a *[berth.ConfigError] for the fields "NameClass" (nil), "MaxClasses" (below 0) and "histogram" (nil).
func New(cfg Config, histogram func(in Instrument, values []string) Record) (*Meter, error) {
	if cfg.NameClass == nil {
		return nil, berth.Invalid("NameClass", "must be set, since a name is no label: take measure.Collapse, or a function of your own")
	}
	if cfg.MaxClasses < 0 {
		return nil, berth.Invalid("MaxClasses", "must be 0 (for 200) or more, is %d", cfg.MaxClasses)
	}
	if histogram == nil {
		return nil, berth.Invalid("histogram", "must not be nil")
	}
	if cfg.MaxClasses == 0 {
		cfg.MaxClasses = 200
	}
	m := &Meter{instruments: Instruments(), histogram: histogram}
	m.plans, m.rows = plans()
	m.classes.init(cfg, len(m.rows))
	return m, nil
}

// Observe measures an event.
func (m *Meter) Observe(e observe.Event) {
	s := m.classes.of(e.Primitive, e.Name)
	if e.Kind == observe.Heartbeat {
		m.beat(s, &e)
		return
	}
	p, known := m.plans[e.Kind]
	if !known {
		p.row = rowUnknown
	}
	if !p.ends || e.WasHeld {
		s.add(p.row, 1)
	}
	switch {
	case p.also != 0:
		s.add(p.also, 1)
	case e.Kind == observe.Failed && errors.Is(e.Err, berth.ErrUnavailable):
		s.add(rowNoAcquire, 1)
	}
	if e.WasQueued {
		p.waits--
	}
	s.move(rowWaiting, p.waits)
	if e.WasHeld {
		p.holds--
		m.record(s, holdTime, e.Context, e.Held)
	}
	s.move(rowHeld, p.holds)
	if p.timed {
		m.record(s, waitTime, e.Context, e.Waited)
	}
}

// beat measures heartbeats that were sent together.
func (m *Meter) beat(s *series, e *observe.Event) {
	answered := rowAnswered
	if e.Err != nil {
		answered = rowUnanswered
	}
	s.add(answered, int64(e.Count))
	m.record(s, heartbeatDelay, e.Context, e.Late)
}

// record takes a value of a histogram.
func (m *Meter) record(s *series, instrument int, ctx context.Context, value time.Duration) { //nolint:revive // a value's context is no call's
	at := &s.records[instrument]
	record := at.Load()
	if record == nil {
		in := m.instruments[instrument]
		made := m.histogram(in, s.values(in, ""))
		record = &made
		at.Store(record)
	}
	if ctx == nil { // an event that no client has made
		ctx = context.Background()
	}
	(*record)(ctx, value.Seconds())
}

// Collect tells visit of each series of a counter or a gauge that has been measured: its
// instrument, the values of its labels, and its value. Those of classes that came first are first.
func (m *Meter) Collect(visit func(in Instrument, values []string, value int64)) {
	for _, s := range m.classes.all() {
		for i := range s.cells {
			if cell := &s.cells[i]; cell.used.Load() {
				in := m.instruments[m.rows[i].instrument]
				visit(in, s.values(in, m.rows[i].value), cell.value.Load())
			}
		}
	}
}

// series is all that is measured of a primitive and a class.
type series struct {
	primitive, class string
	cells            []cell // by row
	records          [heartbeatDelay + 1]atomic.Pointer[Record]
}

type cell struct {
	value atomic.Int64
	used  atomic.Bool
}

func (s *series) add(row int, by int64) {
	c := &s.cells[row]
	c.value.Add(by)
	if !c.used.Load() { // a load costs other cores nothing
		c.used.Store(true)
	}
}

// move moves a gauge.
func (s *series) move(row int, by int64) {
	if by != 0 {
		s.add(row, by)
	}
}

// values are those of the labels of an instrument; last is that of a label which is neither the
// primitive nor the class.
func (s *series) values(in Instrument, last string) []string {
	values := make([]string, len(in.Labels))
	for i, label := range in.Labels {
		switch label {
		case "primitive":
			values[i] = s.primitive
		case "name_class":
			values[i] = s.class
		default:
			values[i] = last
		}
	}
	return values
}
