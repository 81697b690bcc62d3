// Package observe says what happens inside Berth: one typed [Event] for each
// thing, sent to one [Observer] per node.
//
// A node sends every event to its Observer, and to its Logger as a log line; an outage is a few lines: of what it does to
// claims ([Unavailable], [Failed], [Lost], [ReleaseFailed], [CleanupFailed]) the first event of a kind, and then one line a
// minute whose count says how many followed. [Multi] makes several observers into one,
// [Sample] passes on a share of frequent events, [Slog] writes a log line per
// event, and [Func] makes an Observer of a function:
//
//	logged := observe.Slog(logger)
//	counted := observe.Func(func(e observe.Event) { counts.Add(e.Kind, e.Primitive) })
//	observer := observe.Multi(logged, counted)
//
// Events are for people and for metrics. No decision of Berth rests on one, and what an
// event says has already happened. To decide by the state of a hold, use its handle: Err,
// Context and Fence.
//
// How many claims wait in line is a gauge: add 1 at each event of kind [Queued],
// subtract 1 at each other event with Event.WasQueued set. How many holds there are is
// another one: add 1 at each [Granted], [Reentered] and [Resumed], subtract 1 at each event
// with Event.WasHeld set. No claim is left out or counted twice, however it ends. Do not put
// such an observer behind [Sample].
//
// Package measure makes such metrics of the events; contrib/otel and contrib/prometheus
// register them.
//
// docs/generated/events.md lists all kinds in one table, with the primitives that send
// each of them. It is generated from the comments of this package.
package observe
