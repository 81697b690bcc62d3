package observe_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/berth-go/berth/pkg/observe"
)

// Count what happens, with a few words as labels instead of the raw names.
func ExampleFunc() {
	group := func(name string) string {
		kind, _, _ := strings.Cut(name, ":")
		return kind
	}
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

// Log everything that is rare, and one claim in ten from end to end.
func ExampleSample() {
	logger := zap.NewExample() // as JSON, without the time
	observer, err := observe.Sample(observe.Zap(logger), 0.1)
	if err != nil {
		panic(err)
	}

	// What a client does:
	observer.Observe(observe.Event{Kind: observe.Granted, Name: "gpu", Claim: "a.1"})
	observer.Observe(observe.Event{
		Kind: observe.Lost, Primitive: "sem", Name: "gpu", Claim: "a.1",
		Held: 12 * time.Second, Err: errors.New("no answer"),
	})
	// Output: {"level":"warn","logger":"berth","msg":"lost","primitive":"sem","name":"gpu","claim":"a.1","held":"12s","error":"no answer"}
}

func ExampleMulti() {
	losses := observe.Func(func(e observe.Event) {
		if e.Kind == observe.Lost {
			fmt.Println("lost", e.Name, "after", e.Held)
		}
	})
	var log *zap.Logger // none
	observer := observe.Multi(losses, observe.Zap(log))

	// What a client does:
	observer.Observe(observe.Event{Kind: observe.Lost, Name: "gpu", Held: 12 * time.Second})
	// Output: lost gpu after 12s
}

// Log with the standard library. A client does the same with its Config.Logger.
func ExampleSlog() {
	untimed := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
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
