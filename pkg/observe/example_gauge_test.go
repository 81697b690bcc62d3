package observe_test

import (
	"fmt"
	"sync/atomic"

	"github.com/berth-go/berth/pkg/observe"
)

// A gauge of how many claims of a client wait in line.
func Example() {
	var waiting atomic.Int64
	var gauge observe.Observer = observe.Func(func(e observe.Event) {
		if e.Kind == observe.Queued {
			waiting.Add(1)
		} else if e.WasQueued { // the wait is over, whatever came of it
			waiting.Add(-1)
		}
	})
	gauge.Observe(observe.Event{Kind: observe.Queued, Claim: "a.1"}) // what a client does
	gauge.Observe(observe.Event{Kind: observe.Queued, Claim: "a.2"})
	gauge.Observe(observe.Event{Kind: observe.Granted, Claim: "a.1", WasQueued: true})
	gauge.Observe(observe.Event{Kind: observe.Granted, Claim: "a.3"}) // it did not have to wait
	fmt.Println(waiting.Load())
	// Output: 1
}
