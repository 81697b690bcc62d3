package berthotel

import (
	"container/list"
	"sync"

	"go.opentelemetry.io/otel/trace"
)

const (
	// mostHolds is how many holds are remembered.
	mostHolds = 10_000
	// mostEarly is how many holds are remembered whose end was told before their beginning.
	mostEarly = 100
)

// holds knows the spans of the holds that last.
type holds struct {
	mu      sync.Mutex
	lasting spans // guarded by mu
	// early has the holds that are over and were not known, without a span. The events of a claim
	// may come from several goroutines, so the beginning may follow. guarded by mu
	early spans
}

func newHolds() *holds {
	return &holds{lasting: newSpans(mostHolds), early: newSpans(mostEarly)}
}

// begin keeps the span of a hold, unless that is over already.
func (h *holds) begin(claim string, start func() trace.Span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, over := h.early.take(claim); !over {
		h.lasting.put(claim, start())
	}
}

// end returns the span of a hold that is over, nil if it is not known.
func (h *holds) end(claim string) trace.Span {
	h.mu.Lock()
	defer h.mu.Unlock()
	span, known := h.lasting.take(claim)
	if !known {
		h.early.put(claim, nil)
	}
	return span
}

// of returns the span of a hold that lasts, nil if it is not known.
func (h *holds) of(claim string) trace.Span {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lasting.get(claim)
}

// spans has a bounded number of spans by their claims.
type spans struct {
	most    int
	byClaim map[string]*list.Element
	inOrder *list.List // the oldest first
}

type entry struct {
	claim string
	span  trace.Span
}

func newSpans(most int) spans { return spans{most, make(map[string]*list.Element), list.New()} }

// put keeps a span in the place of the oldest one, if there are too many.
func (s *spans) put(claim string, span trace.Span) {
	s.take(claim)
	if len(s.byClaim) == s.most {
		s.take(s.inOrder.Front().Value.(entry).claim)
	}
	s.byClaim[claim] = s.inOrder.PushBack(entry{claim, span})
}

func (s *spans) get(claim string) trace.Span {
	if at := s.byClaim[claim]; at != nil {
		return at.Value.(entry).span
	}
	return nil
}

// take forgets a span, and returns it.
func (s *spans) take(claim string) (span trace.Span, known bool) {
	at := s.byClaim[claim]
	if at == nil {
		return nil, false
	}
	delete(s.byClaim, claim)
	return s.inOrder.Remove(at).(entry).span, true
}
