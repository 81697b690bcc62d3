// Package integration holds the tests that need a real Redis, real time and real
// processes: children that are killed and stopped, connections that break, a
// server that is restarted, flushed, halted and filled.
//
// Every test has a namespace of its own. Those that only use Redis share one
// server; those that do something to it start their own.
package integration
