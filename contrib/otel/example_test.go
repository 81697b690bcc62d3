package berthotel_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	berthotel "github.com/berth-go/berth/contrib/otel"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/measure"
	"github.com/berth-go/berth/pkg/qlock"
)

// An order is worked on: it is counted, and its wait and its hold are spans.
func Example() {
	ctx := context.Background()
	server, err := embedded.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	redis, err := server.Client()
	if err != nil {
		log.Fatal(err)
	}
	defer redis.Close()

	// An application takes otel.GetMeterProvider and otel.GetTracerProvider.
	reader, recorder := metric.NewManualReader(), tracetest.NewSpanRecorder()
	metrics, err := berthotel.NewMetrics(metric.NewMeterProvider(metric.WithReader(reader)), measure.Config{NameClass: measure.Collapse})
	if err != nil {
		log.Fatal(err)
	}
	traces, err := berthotel.NewTraces(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
	if err != nil {
		log.Fatal(err)
	}
	n, err := node.New(redis, node.Config{Observer: observe.Multi(metrics, traces)})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = n.Close(ctx) }()

	locks := qlock.New(n, qlock.Config{})
	order, err := locks.Lock(ctx, "order:1041", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := order.Release(ctx); err != nil {
		log.Fatal(err)
	}

	for _, span := range recorder.Ended() {
		fmt.Println(span.Name(), len(span.Links()))
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "berth.acquires" {
			outcome, _ := sum.DataPoints[0].Attributes.Value("berth.outcome")
			class, _ := sum.DataPoints[0].Attributes.Value("berth.name_class")
			fmt.Println(m.Name, class.AsString(), outcome.AsString(), sum.DataPoints[0].Value)
		}
	}
	// Output:
	// berth wait 0
	// berth hold 1
	// berth.acquires order:* granted 1
}
