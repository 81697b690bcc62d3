// Package berthotel makes OpenTelemetry metrics and spans from the events of Berth.
//
//	metrics, err := berthotel.NewMetrics(otel.GetMeterProvider(), measure.Config{NameClass: measure.Collapse})
//	traces, err := berthotel.NewTraces(otel.GetTracerProvider())
//	n, err := node.New(redis, node.Config{Observer: observe.Multi(metrics, traces)})
//
// One observer for metrics and one for traces serve all nodes of a process. Package measure is
// github.com/berth-go/berth/pkg/observe/measure.
//
// # Metrics
//
// Every metric has the attribute berth.primitive: "sem", "lock", "pool", or "node" for metrics about none of these, such as
// heartbeats; berth.events also has "once". Metrics with a star also have berth.name_class, the class of the name by
// Config.NameClass:
//
//	berth.acquires*          {acquire}    berth.outcome   acquires that have ended
//	berth.wait_time*         s, histogram of how long granted acquires took
//	berth.waiting*           {claim}      claims that wait in line now
//	berth.held*              {hold}       holds that last now
//	berth.hold_time*         s, histogram of how long holds lasted
//	berth.hold_ends*         {hold}       berth.outcome   holds that have ended
//	berth.repeated_calls*    {call}       attempts of calls that failed, and were repeated
//	berth.unanswered_calls*  {call}       berth.call      given up: acquire, release, cleanup
//	berth.heartbeats         {heartbeat}  berth.outcome   answered, unanswered
//	berth.heartbeat_delay    s, histogram of how late heartbeats were sent
//	berth.events*            {event}      berth.kind      all others: rested, damaged, ran, run_failed, missed, ...
//
// An acquire ends as granted, reentered, refused, timed_out, cancelled, attempts_used_up, deadlock or
// failed; a hold as released, released_by_other, lost, expired, reentry_ended, detached or
// release_failed. See the kinds of package observe.
//
// Metrics that a connection pool would have too are modeled on the db.client.connection metrics of
// the semantic conventions: wait_time has the same name, hold_time stands for use_time, waiting for
// pending_requests, and held for the count of connections in use.
//
// # Spans
//
// Each acquire is a span "berth wait", and each hold a span "berth hold" with a link to the wait.
// Both are in the trace of the acquiring call's context. See [NewTraces].
package berthotel
