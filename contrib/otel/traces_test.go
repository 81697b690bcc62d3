package berthotel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/berth-go/berth"
	berthotel "github.com/berth-go/berth/contrib/otel"
	"github.com/berth-go/berth/pkg/observe"
)

// newTraces returns an observer, the spans that it has ended, and a tracer of the application.
func newTraces(t *testing.T, opts ...sdk.TracerProviderOption) (observe.Observer, *tracetest.SpanRecorder, trace.Tracer) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(append(opts, sdk.WithSpanProcessor(recorder))...)
	t.Cleanup(func() { require.NoError(t, provider.Shutdown(context.Background())) })
	traces, err := berthotel.NewTraces(provider)
	require.NoError(t, err)
	return traces, recorder, provider.Tracer("app")
}

// attributes are those of a span.
func attributes(s sdk.ReadOnlySpan) map[string]any {
	all := make(map[string]any)
	for _, a := range s.Attributes() {
		all[string(a.Key)] = a.Value.AsInterface()
	}
	return all
}

func TestAWaitAndAHoldAreTwoSpansInTheTraceOfTheCall(t *testing.T) {
	t.Parallel()
	traces, recorder, tracer := newTraces(t)
	ctx, call := tracer.Start(context.Background(), "request")
	events := course()
	start := events[0].At
	events[1].Context, events[1].At = ctx, start.Add(2*time.Second)
	long := event(observe.HeldLong, "order:12345")
	long.At = start.Add(10 * time.Second)
	events[2].At = start.Add(62 * time.Second) // released by a call with another context
	for _, e := range []observe.Event{events[0], events[1], long, events[2]} {
		traces.Observe(e)
	}

	ended := recorder.Ended()
	require.Len(t, ended, 2)
	wait, hold := ended[0], ended[1]
	for name, s := range map[string]sdk.ReadOnlySpan{"berth wait": wait, "berth hold": hold} {
		require.Equal(t, name, s.Name())
		require.Equal(t, call.SpanContext().TraceID(), s.SpanContext().TraceID())
		require.Equal(t, call.SpanContext().SpanID(), s.Parent().SpanID())
		require.Equal(t, codes.Unset, s.Status().Code)
	}
	require.Equal(t, []time.Time{start, start.Add(2 * time.Second)}, []time.Time{wait.StartTime(), wait.EndTime()})
	require.Equal(t, []time.Time{start.Add(2 * time.Second), start.Add(62 * time.Second)}, []time.Time{hold.StartTime(), hold.EndTime()})
	require.Equal(t, map[string]any{
		"berth.primitive": "lock", "berth.namespace": "berth", "berth.name": "order:12345", "berth.claim": "n.1",
		"berth.fence": int64(7), "berth.outcome": "granted", "berth.queued": true,
	}, attributes(wait))
	require.Equal(t, map[string]any{
		"berth.primitive": "lock", "berth.namespace": "berth", "berth.name": "order:12345", "berth.claim": "n.1",
		"berth.fence": int64(7), "berth.outcome": "released",
	}, attributes(hold))
	require.Len(t, hold.Links(), 1)
	require.Equal(t, wait.SpanContext(), hold.Links()[0].SpanContext)
	require.Len(t, hold.Events(), 1)
	require.Equal(t, "held_long", hold.Events()[0].Name)
	require.Equal(t, long.At, hold.Events()[0].Time)
}

func TestTheStatusOfASpanIsThatOfItsEnd(t *testing.T) {
	t.Parallel()
	bad := errors.New("no answer")
	for kind, c := range map[observe.Kind]struct {
		span   string
		status codes.Code
	}{
		observe.Failed:          {"berth wait", codes.Error},
		observe.Refused:         {"berth wait", codes.Unset},
		observe.TimedOut:        {"berth wait", codes.Unset},
		observe.Lost:            {"berth hold", codes.Error},
		observe.ReleaseFailed:   {"berth hold", codes.Error},
		observe.Expired:         {"berth hold", codes.Unset},
		observe.ReleasedByOther: {"berth hold", codes.Unset},
	} {
		traces, recorder, _ := newTraces(t)
		e := event(kind, "a")
		e.Err, e.Reason, e.WasHeld, e.Resource = bad, berth.ReasonFull, c.span == "berth hold", "r\xff"
		traces.Observe(e)
		require.Len(t, recorder.Ended(), 1, kind)
		s := recorder.Ended()[0]
		require.Equal(t, []any{c.span, c.status}, []any{s.Name(), s.Status().Code}, kind)
		require.Equal(t, string(kind), attributes(s)["berth.outcome"])
		require.Equal(t, "r?", attributes(s)["berth.resource"])
		if c.status == codes.Error {
			require.Equal(t, "exception", s.Events()[0].Name)
		}
	}
}

// The events of a claim may come from several goroutines: a hold may be told lost before it is told
// granted.
func TestAHoldThatIsOverBeforeItIsToldIsOneSpan(t *testing.T) {
	t.Parallel()
	traces, recorder, _ := newTraces(t)
	events := course()
	traces.Observe(events[2])
	traces.Observe(events[1])
	traces.Observe(observe.Event{Kind: observe.Subscribed, Context: context.Background()}) // of no claim
	require.Len(t, recorder.Started(), 2, "none is left without an end")
	require.Len(t, recorder.Ended(), 2)
}

func TestWhatIsNotSampledMakesNoSpanAtItsEndEither(t *testing.T) {
	t.Parallel()
	traces, recorder, tracer := newTraces(t, sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample())))
	unsampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}})
	events := course()
	events[1].Context = trace.ContextWithSpanContext(context.Background(), unsampled)
	events[2].Context, _ = tracer.Start(context.Background(), "another request")
	for _, e := range events {
		traces.Observe(e)
	}
	require.Empty(t, recorder.Ended())
}

func TestMoreHoldsThanAreRememberedHaveTheirSpansAllTheSame(t *testing.T) {
	t.Parallel()
	const holds = 10_500
	traces, recorder, _ := newTraces(t)
	for _, e := range course()[1:] {
		for i := range holds {
			e.Claim = fmt.Sprint(i)
			traces.Observe(e)
		}
	}
	linked := 0
	for _, s := range recorder.Ended() {
		linked += len(s.Links())
	}
	require.Len(t, recorder.Ended(), 2*holds)
	require.Equal(t, 10_000, linked)
}
