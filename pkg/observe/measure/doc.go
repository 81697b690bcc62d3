// Package measure turns the events of package observe into metrics. It defines the instruments,
// how an event changes each of them, and the series that a name belongs to. It depends on no
// metrics library: contrib/prometheus and contrib/otel register the metrics; for another
// library see [New].
//
// # Names
//
// The number of names is unlimited, so a name never becomes a label. Instead Config.NameClass,
// for example [Collapse], maps each name to a class. The first Config.MaxClasses classes have
// series of their own; all other classes share the class [Other]. A class never loses its
// series, so a claim that begins in a series also ends there.
//
// # Instruments
//
// [Instruments] lists the instruments. An instrument that a connection pool would have too has
// the name and the meaning of OpenTelemetry's db.client.connection metrics.
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
// All instruments measure this process alone. The command `berth exporter` reads from the
// server what no single process knows, such as the length of a line.
package measure
