package berth

import "time"

// Report is what Check found out about a server that meets Berth's requirements.
type Report struct {
	// Server is "redis" or "valkey", "" if it could not be read.
	Server string `json:"server"`
	// Version is the server's version, such as "7.0.15"; "" if it could not be read. In a cluster
	// Version is the lowest of all its nodes.
	Version string `json:"version"`
	// Mode is "standalone" or "cluster", "" if it could not be read.
	Mode string `json:"mode"`
	// Eviction is the server's maxmemory-policy, "" if it could not be read.
	Eviction string `json:"eviction"`
	// Latency is the median of several round trips.
	Latency time.Duration `json:"latencyMs"`
	// Warnings are findings that an operator should know but that do not prevent use.
	Warnings []string `json:"warnings"`
}
