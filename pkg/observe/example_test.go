package observe_test

import (
	"fmt"
	"sync/atomic"

	"github.com/berth-go/berth/pkg/observe"
)

// gauge counts the claims that wait in line.
type gauge struct{ waiting atomic.Int64 }

func (g *gauge) Observe(e observe.Event) {
	if e.Kind == observe.Queued {
		g.waiting.Add(1)
	} else if e.WasQueued { // the wait is over, whatever came of it
		g.waiting.Add(-1)
	}
}

// A gauge of how many claims of a client wait in line.
func Example() {
	var waits gauge
	var observer observe.Observer = &waits

	// What a client does:
	observer.Observe(observe.Event{Kind: observe.Queued, Claim: "a.1"})
	observer.Observe(observe.Event{Kind: observe.Queued, Claim: "a.2"})
	observer.Observe(observe.Event{Kind: observe.Granted, Claim: "a.1", WasQueued: true})
	observer.Observe(observe.Event{Kind: observe.Granted, Claim: "a.3"}) // did not have to wait
	fmt.Println(waits.waiting.Load())
	// Output: 1
}
