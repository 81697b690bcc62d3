package observe_test

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/zaplog"
)

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
