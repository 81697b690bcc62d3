package berthotel

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
)

// NewTraces returns an observer for node.Config.Observer that makes spans:
//
//   - "berth wait" of each acquire, from the call to its end;
//   - "berth hold" of each hold, from its grant, or from when it was resumed, until it is over. It
//     has a link to its wait, and what happens to the hold in between are events of the span.
//
// Both are children of the span in the context of the acquiring call. Their attributes are
// berth.primitive, berth.namespace, berth.name, berth.claim, berth.outcome (a kind of event),
// berth.fence, berth.resource, and of a wait also berth.queued and berth.reason. A failed wait, a lost
// hold and an unanswered release have the status Error; a claim that was refused, timed out or was
// cancelled does not.
//
// A span is exported when it has ended. At most 10000 holds are remembered at once. The span of an older
// hold is made when the hold ends, in the context of the call that ended it, without a link.
//
// NewTraces returns a *[berth.ConfigError] for the field "provider" (nil).
func NewTraces(provider trace.TracerProvider) (observe.Observer, error) {
	if provider == nil {
		return nil, berth.Invalid("provider", "must not be nil")
	}
	return &traces{tracer: provider.Tracer(scope), holds: newHolds()}, nil
}

type traces struct {
	tracer trace.Tracer
	holds  *holds
}

// Observe makes the spans that an event begins or ends.
func (t *traces) Observe(e observe.Event) {
	if e.Claim == "" {
		return
	}
	if e.Context == nil { // an event that no node has made
		e.Context = context.Background()
	}
	var links []trace.Link
	if e.Kind.EndsAcquire() {
		links = append(links, trace.Link{SpanContext: t.wait(&e)})
	}
	switch {
	case e.WasHeld:
		t.over(&e)
	case e.Kind == observe.Granted || e.Kind == observe.Reentered || e.Kind == observe.Resumed:
		t.holds.begin(e.Claim, func() trace.Span { return t.start("berth hold", &e, e.At, links...) })
	default:
		if span := t.holds.of(e.Claim); span != nil {
			span.AddEvent(string(e.Kind), trace.WithTimestamp(e.At))
		}
	}
}

// start begins a span at a moment.
func (t *traces) start(name string, e *observe.Event, at time.Time, links ...trace.Link) trace.Span {
	_, span := t.tracer.Start(e.Context, name, trace.WithTimestamp(at), trace.WithLinks(links...), trace.WithAttributes(
		attribute.String("berth.primitive", e.Primitive), attribute.String("berth.namespace", e.Namespace),
		attribute.String("berth.name", e.Name), attribute.String("berth.claim", e.Claim),
	))
	return span
}

// wait makes the span of an acquire that has ended.
func (t *traces) wait(e *observe.Event) trace.SpanContext {
	span := t.start("berth wait", e, e.At.Add(-e.Waited))
	span.SetAttributes(attribute.Bool("berth.queued", e.WasQueued))
	if e.Reason != "" {
		span.SetAttributes(attribute.String("berth.reason", string(e.Reason)))
	}
	end(span, e)
	return span.SpanContext()
}

// over ends the span of a hold.
func (t *traces) over(e *observe.Event) {
	span := t.holds.end(e.Claim)
	if span == nil {
		span = t.start("berth hold", e, e.At.Add(-e.Held))
	}
	end(span, e)
}

// end ends a span as an event says.
func end(span trace.Span, e *observe.Event) {
	span.SetAttributes(attribute.String("berth.outcome", string(e.Kind)))
	if e.Fence != 0 {
		span.SetAttributes(attribute.Int64("berth.fence", e.Fence))
	}
	if e.Resource != "" {
		span.SetAttributes(attribute.String("berth.resource", strings.ToValidUTF8(e.Resource, "?")))
	}
	switch e.Kind {
	case observe.Failed, observe.Lost, observe.ReleaseFailed:
		if e.Err != nil {
			span.RecordError(e.Err, trace.WithTimestamp(e.At))
		}
		span.SetStatus(codes.Error, string(e.Kind))
	}
	span.End(trace.WithTimestamp(e.At))
}
