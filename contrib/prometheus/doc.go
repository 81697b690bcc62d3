// Package berthprom makes Prometheus metrics from the events of Berth.
//
//	metrics, err := berthprom.New(prometheus.DefaultRegisterer, measure.Config{NameClass: measure.Collapse})
//	n, err := node.New(redis, node.Config{Observer: metrics})
//
// Package measure is github.com/berth-go/berth/pkg/observe/measure.
//
// One observer serves all nodes of a process. Every metric has the label primitive: "sem", "lock", "pool", or
// "node" for metrics about none of these, such as heartbeats; berth_events_total also has "once". Metrics with
// a star also have name_class, the class of the name by Config.NameClass:
//
//	berth_acquires_total*          outcome   acquires that have ended
//	berth_wait_time_seconds*       histogram of how long granted acquires took
//	berth_waiting*                 gauge     claims that wait in line now
//	berth_held*                    gauge     holds that last now
//	berth_hold_time_seconds*       histogram of how long holds lasted
//	berth_hold_ends_total*         outcome   holds that have ended
//	berth_repeated_calls_total*    attempts of calls that failed, and were repeated
//	berth_unanswered_calls_total*  call      calls given up without an answer: acquire, release, cleanup
//	berth_heartbeats_total         outcome   heartbeats of claims: answered, unanswered
//	berth_heartbeat_delay_seconds  histogram of how late heartbeats were sent
//	berth_events_total*            kind      all other events: rested, damaged, ran, run_failed, missed, ...
//
// An acquire ends as granted, reentered, refused, timed_out, cancelled, attempts_used_up, deadlock or
// failed; a hold as released, released_by_other, lost, expired, reentry_ended, detached or
// release_failed. See the kinds of package observe.
//
// The names are those that an OpenTelemetry exporter gives to the metrics of contrib/otel, except that its labels
// begin with berth_: docs/metrics.md has the relabeling for rules and dashboard. All metrics measure this process
// alone; `berth exporter` reads the rest from the server.
package berthprom
