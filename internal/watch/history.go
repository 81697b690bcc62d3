package watch

import (
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
)

const (
	// samplesMost is how many counts of a name are kept. When there are as many, every other one is left out, and from then
	// on only every other one is added.
	samplesMost = 600
	// spansMost is how many holds of a name are kept: those that were seen longest ago are left out.
	spansMost = 200
)

// Sample are the counts of a name at a moment.
type Sample struct {
	At                      time.Time
	Held, Waiting, Capacity int
}

// Span is a hold as it was seen last, which was at To, without its Meta.
type Span struct {
	berth.Holder
	To time.Time
	// Ended says that it was not there any more at the next look.
	Ended bool
}

// seen is what was seen of a name. It belongs to the loop of its topic.
type seen struct {
	since   time.Time
	samples []Sample
	step    time.Duration // the least time between two samples
	spans   []Span
}

// add adds a look, and returns all that was seen. What it returns is not written to again: samples are only appended.
func (s *seen) add(l *inspect.Look) Name {
	if l.Err != nil { // nothing is known of it
		return Name{Look: *l, Since: s.since, History: s.samples, Spans: s.spans}
	}
	if n := len(s.samples); n > 0 && l.At.Before(s.samples[n-1].At) { // another server's clock
		*s = seen{}
	}
	if s.since.IsZero() {
		s.since = l.At
	}
	if n := len(s.samples); n == 0 || l.At.Sub(s.samples[n-1].At) >= s.step {
		s.samples = append(s.samples, Sample{l.At, l.Held, l.Live(), l.Capacity})
	}
	if len(s.samples) >= samplesMost {
		s.step = max(2*s.step, 3*NameEvery/2) // of readings a second apart every other one
		var kept []Sample
		for i := 0; i < len(s.samples); i += 2 {
			kept = append(kept, s.samples[i])
		}
		s.samples = kept
	}
	s.spans = s.held(l)
	return Name{Look: *l, Since: s.since, History: s.samples, Spans: s.spans}
}

// held is the spans with what a look says of them.
func (s *seen) held(l *inspect.Look) []Span {
	spans := slices.Clone(s.spans)
	at := map[string]int{}
	for i, span := range spans {
		at[span.ID] = i
	}
	there := map[string]bool{}
	for _, h := range l.Holds {
		there[h.ID] = true
		i, known := at[h.ID]
		if !known {
			spans, i = append(spans, Span{}), len(spans)
		}
		spans[i] = Span{Holder: h.Holder, To: l.At}
		spans[i].Meta = nil
	}
	for i := range spans {
		spans[i].Ended = spans[i].Ended || !there[spans[i].ID] && l.HoldsLeft == 0
	}
	if over := len(spans) - spansMost; over > 0 { // a look has fewer holds
		slices.SortStableFunc(spans, func(a, b Span) int { return a.To.Compare(b.To) })
		spans = slices.Delete(spans, 0, over)
	}
	slices.SortStableFunc(spans, func(a, b Span) int { return a.Granted.Compare(b.Granted) })
	return spans
}
