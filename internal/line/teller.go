package line

import (
	"time"

	"go.uber.org/zap"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
)

// Teller completes events and sends them on; a nil one sends nothing.
type Teller func(observe.Event)

// NewTeller returns what sends the events of a client to its logger and its
// observer, nil where there is neither. node is asked for the id of an event
// that names no node: that of a client may change.
func NewTeller(kind keyspace.Kind, namespace string, node func() string, logger *zap.Logger, observer observe.Observer) Teller {
	if logger == nil && observer == nil {
		return nil
	}
	both := observe.Multi(observe.Zap(logger), observer)
	return func(ev observe.Event) {
		if ev.Node == "" {
			ev.Node = node()
		}
		ev.Primitive, ev.Namespace, ev.At = string(kind), namespace, time.Now() //nolint:forbidigo // a wall clock's time, for people
		both.Observe(ev)
	}
}

// from returns the teller of what one node does.
func (t Teller) from(node string) Teller {
	if t == nil {
		return nil
	}
	return func(ev observe.Event) {
		ev.Node = node
		t(ev)
	}
}

// Send sends an event.
func (t Teller) Send(ev observe.Event) {
	if t != nil {
		t(ev)
	}
}

// Repeated reports a call that is about to be repeated. It is a
// scriptkit.Options.OnRetry.
func (t Teller) Repeated(script string, attempt int, err error) {
	t.Send(observe.Event{Kind: observe.Repeated, Detail: script, Count: attempt, Err: err})
}

// Swept reports what a script dropped, if anything.
func (t Teller) Swept(name string, dropped int) {
	if dropped > 0 {
		t.Send(observe.Event{Kind: observe.Swept, Name: name, Count: dropped})
	}
}
