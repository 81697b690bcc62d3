// Package measure makes metrics of the events of package observe: which instruments
// there are, what an event adds to each, and which series a name belongs to. It depends on no
// metrics library. contrib/prometheus and contrib/otel register what it measures; to write
// to another library, see [New].
//
// # Names
//
// There is no limit to how many names users contend for, so a name never becomes a label.
// Config.NameClass maps each name to a class, and [Collapse] is such a function. The first
// Config.MaxClasses classes have series of their own; all others share the class [Other].
// A class keeps its series for good, so that what begins in a series also ends there.
//
// # Instruments
//
// [Instruments] lists them. Where a pool of connections would have the same, the name
// and the meaning are those of OpenTelemetry's db.client.connection metrics.
//
//	berth.acquires            acquires that have ended, by outcome
//	berth.wait_time           how long it took to get what was asked for
//	berth.waiting             claims that wait in line now
//	berth.held                holds that last now
//	berth.hold_time           how long holds lasted
//	berth.hold_ends           holds that have ended, by outcome
//	berth.repeated_calls      attempts of calls that failed, and were repeated
//	berth.unanswered_calls    calls that were given up without an answer
//	berth.heartbeats          heartbeats of claims, by outcome
//	berth.heartbeat_delay     how late heartbeats were sent
//	berth.events              all other events, by kind
//
// All of them say what this process knows. What no process knows of itself, such as
// who else waits, is read from the server by `berth exporter`.
package measure
