package line

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Teller completes events and sends them on; a nil one sends nothing.
type Teller func(observe.Event)

// NewTeller returns what sends the events of a process to its logger and its
// observer, nil where there is neither, and the lines of the logger, which the process closes; nil where there
// is none. node is asked for the id
// of an event that names no node: that of a process may change. An event of no kind is the node's. What an event has as its
// context is the context of a call; observers get its values alone.
func NewTeller(namespace string, node func() string, logger *slog.Logger, observer observe.Observer) (Teller, *Lines) {
	if logger == nil && observer == nil {
		return nil, nil
	}
	both, lines := observer, (*Lines)(nil)
	if logger != nil {
		lines = &Lines{to: observe.Slog(logger), minutes: make(map[about]*minute)}
		both = observe.Multi(lines, observer)
	}
	return func(ev observe.Event) {
		if ev.Node == "" {
			ev.Node = node()
		}
		if ev.Primitive == "" {
			ev.Primitive = "node"
		}
		ev.Namespace, ev.At = namespace, time.Now() //nolint:forbidigo // a wall clock's time, for people
		ev.Context = endless(ev.Context)
		both.Observe(ev)
	}, lines
}

// endless returns a context with the values of ctx that does not end.
func endless(ctx context.Context) context.Context {
	switch {
	case ctx == nil:
		return context.Background()
	case ctx.Done() == nil:
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// from returns the teller of what one node does, to names of a kind; "" for what has none, or says it.
func (t Teller) from(node string, kind keyspace.Kind) Teller {
	if t == nil {
		return nil
	}
	return func(ev observe.Event) {
		ev.Node, ev.Primitive = node, cmp.Or(ev.Primitive, string(kind))
		t(ev)
	}
}

// Of returns the teller of what concerns a kind.
func (t Teller) Of(kind keyspace.Kind) Teller {
	if t == nil {
		return nil
	}
	return func(ev observe.Event) {
		ev.Primitive = cmp.Or(ev.Primitive, string(kind))
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
func (t Teller) Repeated(ctx context.Context, script string, attempt int, err error) {
	t.Send(observe.Event{Kind: observe.Repeated, Context: ctx, Detail: script, Count: attempt, Err: err})
}

// Broken reports that the connections were broken. It is a scriptkit.Options.OnBreak.
func (t Teller) Broken(count int, pause time.Duration, err error) {
	t.Send(observe.Event{Kind: observe.ConnectionsBroken, Count: count, Left: pause, Err: err})
}

// NewRunner returns what runs the scripts of a process with the settings.
func NewRunner(redis rueidis.Client, s settings.Common, tell Teller) *scriptkit.Runner {
	return scriptkit.NewRunner(redis, scriptkit.Options{
		Retry: s.Retry, CallTimeout: s.CallTimeout, OnRetry: tell.Repeated,
		KeepConnections: s.KeepConnections, OnBreak: tell.Broken,
	})
}

// Swept reports what a script of a call with that context dropped, if anything.
func (t Teller) Swept(ctx context.Context, name string, dropped int) {
	if dropped > 0 {
		t.Send(observe.Event{Kind: observe.Swept, Context: ctx, Name: name, Count: dropped})
	}
}
