package observe_test

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/berth-go/berth/pkg/observe"
)

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
