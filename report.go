package berth

import "time"

// Report is what Check has found out about a server that will do.
type Report struct {
	// Server is "redis" or "valkey", "" where it could not be asked.
	Server string `json:"server"`
	// Version is the server's own: "7.0.15"; "" where it could not be asked. In
	// a cluster it is the lowest of all nodes.
	Version string `json:"version"`
	// Mode is "standalone" or "cluster"; "" where it could not be
	// asked.
	Mode string `json:"mode"`
	// Eviction is the server's maxmemory-policy, "" where it could not
	// be asked.
	Eviction string `json:"eviction"`
	// Latency is the median of some round trips.
	Latency time.Duration `json:"latencyMs"`
	// Warnings are what should be known and is no reason to stop.
	Warnings []string `json:"warnings"`
}
