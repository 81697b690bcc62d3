package berth

import "time"

// Report is what Check has found out about a server that will do.
type Report struct {
	// Server is "redis" or "valkey", "" where it could not be asked.
	Server string
	// Version is the server's own: "7.0.15"; "" where it could not be asked. In
	// a cluster it is the lowest of all nodes.
	Version string
	// Mode is "standalone" or "cluster"; "" where it could not be
	// asked.
	Mode string
	// Eviction is the server's maxmemory-policy, "" where it could not
	// be asked.
	Eviction string
	// Latency is the median of some round trips.
	Latency time.Duration
	// Warnings are what should be known and is no reason to stop.
	Warnings []string
}
