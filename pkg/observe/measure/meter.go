package measure

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
)

// Config configures a Meter.
type Config struct {
	// NameClass returns the class of a name, such as "order:*" for "order:12345". NameClass must
	// always return the same class for the same name, and several goroutines call it at once.
	// NameClass is not called for each event: the Meter remembers the classes of 4096 names.
	// Required; see [Collapse].
	NameClass func(name string) string
	// MaxClasses is how many classes have series of their own, all primitives together; later
	// classes share the class [Other]. Default 200.
	MaxClasses int
}

// Record records one value in one series of a histogram. ctx has the values of the call that
// was measured.
type Record func(ctx context.Context, value float64)

// Meter is an observer that measures. One Meter may serve all nodes of a process. A Meter is
// safe for concurrent use.
type Meter struct {
	instruments []Instrument
	plans       map[observe.Kind]plan
	rows        []row
	histogram   func(in Instrument, values []string) Record
	classes     classes
}

// New returns a Meter for a metrics library. The Meter keeps counters and gauges itself; the
// library reads them by [Meter.Collect] when it is scraped. Values of histograms go to the
// library at once, through the Record that histogram returns for a series. histogram is called
// once for each series, or a few times at the same moment.
//
// New returns a *[berth.ConfigError] for the fields "NameClass" (nil), "MaxClasses" (below 0) and "histogram"
// (nil).
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

// beat measures a batch of heartbeats.
func (m *Meter) beat(s *series, e *observe.Event) {
	answered := rowAnswered
	if e.Err != nil {
		answered = rowUnanswered
	}
	s.add(answered, int64(e.Count))
	m.record(s, heartbeatDelay, e.Context, e.Late)
}

// record records a value of a histogram.
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

// Collect calls visit for each counter and gauge series that has been measured, with its
// instrument, the values of its labels, and its value. The classes come in the order in which they
// were first seen.
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

// series has all values of a primitive and a class.
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

// move changes a gauge.
func (s *series) move(row int, by int64) {
	if by != 0 {
		s.add(row, by)
	}
}

// values returns the label values of an instrument; last is the value of a label that is
// neither the primitive nor the class.
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
