// Package observe reports what happens inside Berth: each occurrence is one typed [Event], sent
// to one [Observer] per node.
//
// A node sends every event to its Observer, and writes it to its Logger as a log line. An outage takes only a few lines: of
// the kinds [Unavailable], [Failed], [Lost], [ReleaseFailed] and [CleanupFailed] the Logger gets the first event, and then
// one line a minute with the count of further events.
//
// [Multi] joins several observers, [Sample] passes on a share of frequent events, [Slog] writes a log line for each event,
// and [Func] makes an Observer of a function:
//
//	logged := observe.Slog(logger)
//	counted := observe.Func(func(e observe.Event) { counts.Add(e.Kind, e.Primitive) })
//	observer := observe.Multi(logged, counted)
//
// Events are for people and for metrics. Berth makes no decision by an event, and an event
// reports the past. A program that depends on the state of a hold must use its handle: Err,
// Context and Fence.
//
// To count the claims that wait in line, add 1 at each event of kind [Queued], and subtract 1
// at each other event with Event.WasQueued set. To count the holds, add 1 at each [Granted],
// [Reentered] and [Resumed], and subtract 1 at each event with Event.WasHeld set. Both counts
// have each claim exactly once, however the claim ends. Do not put such an observer behind
// [Sample].
//
// Package measure derives such metrics from the events; contrib/otel and contrib/prometheus
// register the metrics.
//
// docs/generated/events.md, generated from the comments of this package, lists all kinds with
// the primitives that send each kind.
package observe
