package measure_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/measure"
)

// A library of metrics that only prints.
func Example() {
	meter, err := measure.New(measure.Config{NameClass: measure.Collapse}, func(in measure.Instrument, values []string) measure.Record {
		return func(_ context.Context, value float64) { fmt.Println(in.Name, values, value) }
	})
	if err != nil {
		panic(err)
	}
	granted := observe.Event{Kind: observe.Granted, Primitive: "lock", Name: "order:12345", Waited: 2 * time.Second}
	meter.Observe(granted) // as a client does, of whose Config it is the Observer
	meter.Collect(func(in measure.Instrument, values []string, value int64) { fmt.Println(in.Name, values, value) })
	// Output:
	// berth.wait_time [lock order:*] 2
	// berth.held [lock order:*] 1
	// berth.acquires [lock order:* granted] 1
}

func ExampleCollapse() {
	for _, name := range []string{"order:12345", "eu/shard7", "job:3f2504e0-4f89-11d3-9a0c-0305e82c3301"} {
		fmt.Println(measure.Collapse(name))
	}
	// Output:
	// order:*
	// eu/shard*
	// job:*
}
