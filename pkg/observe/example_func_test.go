package observe_test

import (
	"fmt"
	"strings"

	"github.com/berth-go/berth/pkg/observe"
)

// group returns the part of a name that all names of its sort share.
func group(name string) string {
	sort, _, _ := strings.Cut(name, ":")
	return sort
}

// Count what happens, with a few words as labels instead of the raw names.
func ExampleFunc() {
	counts := make(map[string]int) // a metric of your library, safe for many goroutines
	var observer observe.Observer = observe.Func(func(e observe.Event) {
		counts[group(e.Name)+" "+string(e.Kind)]++
	})

	// What a client does:
	observer.Observe(observe.Event{Kind: observe.Granted, Name: "invoice:42"})
	observer.Observe(observe.Event{Kind: observe.Granted, Name: "invoice:43"})
	fmt.Println(counts)
	// Output: map[invoice granted:2]
}
