// Package berthotel makes metrics and spans of OpenTelemetry from the events of Berth.
//
//	metrics, err := berthotel.NewMetrics(otel.GetMeterProvider(), measure.Config{NameClass: measure.Collapse})
//	traces, err := berthotel.NewTraces(otel.GetTracerProvider())
//	n, err := node.New(redis, node.Config{Observer: observe.Multi(metrics, traces)})
//
// One observer of each serves all nodes of a process. Package measure is
// github.com/berth-go/berth/pkg/observe/measure.
//
// # Metrics
//
// Every metric has the attribute berth.primitive ("sem", "lock", "pool"; "node" where it is about none of them, as of
// heartbeats; of berth.events also "once"), and those with a star also berth.name_class, the class of the name by Config.NameClass:
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
// Where a pool of connections has the same, the names follow the db.client.connection metrics
// of the semantic conventions: wait_time, and hold_time for use_time, waiting for pending_requests,
// held for the count of those in use.
//
// # Spans
//
// Each acquire is a span "berth wait", and each hold a span "berth hold" with a link to the wait.
// Both are in the trace of the acquiring call's context. See [NewTraces].
package berthotel
