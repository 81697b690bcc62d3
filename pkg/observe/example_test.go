package observe_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/zaplog"
)

// gauge counts the claims that wait in line. WasQueued says that a wait is over, whatever came of it.
type gauge struct{ waiting atomic.Int64 }

func (g *gauge) Observe(e observe.Event) {
	if e.Kind == observe.Queued {
		g.waiting.Add(1)
	} else if e.WasQueued {
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

// untimed leaves the time out of a log.
func untimed(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// Log with the standard library. A node does the same with its Config.Logger.
func ExampleSlog() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: untimed}))
	observer := observe.Slog(logger)

	// What a client does:
	observer.Observe(observe.Event{Kind: observe.Granted, Name: "gpu", Claim: "a.1"}) // debug, which is off
	observer.Observe(observe.Event{
		Kind: observe.Lost, Primitive: "sem", Name: "gpu", Claim: "a.1",
		Held: 12 * time.Second, Err: errors.New("no answer"),
	})
	// Output: level=WARN msg=lost logger=berth primitive=sem name=gpu claim=a.1 held=12s error="no answer"
}

// alert tells somebody that a hold was lost.
func alert(e observe.Event) {
	if e.Kind == observe.Lost {
		fmt.Println("lost", e.Name, "after", e.Held)
	}
}

// Log everything that is rare, and one claim in ten from end to end. A second
// observer hears of every event.
func ExampleSample() {
	log, err := observe.Sample(observe.Slog(zaplog.New(zap.NewExample())), 0.1) // as JSON, without the time
	if err != nil {
		panic(err)
	}
	observer := observe.Multi(log, observe.Func(alert))

	// What a client does:
	observer.Observe(observe.Event{Kind: observe.Granted, Name: "gpu", Claim: "a.1"})
	observer.Observe(observe.Event{
		Kind: observe.Lost, Primitive: "sem", Name: "gpu", Claim: "a.1",
		Held: 12 * time.Second, Err: errors.New("no answer"),
	})
	// Output:
	// {"level":"warn","logger":"berth","msg":"lost","primitive":"sem","name":"gpu","claim":"a.1","held":"12s","error":"no answer"}
	// lost gpu after 12s
}
