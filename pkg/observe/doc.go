// Package observe tells what happens inside Berth: one typed [Event] for each
// thing, to one [Observer] per client.
//
// A client always tells its Observer everything. [Multi] makes several into
// one, [Sample] thins what comes often, [Zap] writes a log line per event, and
// [Func] is whatever else is wanted:
//
//	logged := observe.Zap(logger)
//	counted := observe.Func(func(e observe.Event) { counts.Add(e.Kind, e.Primitive) })
//	observer := observe.Multi(logged, counted)
//
// An event is for people and for metrics. Nothing in Berth waits for one or
// depends on one, and whatever an event says has already happened. For deciding
// there are the handles: their Err, their Context and their Fence.
//
// The names that users contend for are without number, so do not make them
// labels of a metric: map them to a few words first.
//
// docs/generated/events.md lists all kinds in one table, with the primitives that send
// each of them today. It is generated from the comments of this package.
package observe
