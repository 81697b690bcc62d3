package sketch

import (
	"errors"
	"time"
)

// What follows is proposed for the root package, under the same names.

// ErrBusy says that a claim was not acquired because others hold, or wait for,
// what it asked for: the reasons full, held, queued ahead, timed out and
// attempts used up. It never matches when the server was not reached, when the
// caller left or when the client was closed. An error that matches it matches
// ErrNotAcquired, too.
var ErrBusy = errors.New("berth: busy")

// Report is what Check found out about the server.
type Report struct {
	// Server is "redis" or "valkey", or "" if the server would not say.
	Server string
	// Version is the server's version, or "" if the server would not say.
	Version string
	// Mode is "standalone", "sentinel" or "cluster", or "" if the server would
	// not say.
	Mode string
	// Eviction is the server's maxmemory-policy, or "" if it would not say.
	Eviction string
	// Latency is the median of five round trips.
	Latency time.Duration
	// Warnings say what could not be looked at, and what is unwise but works.
	Warnings []string
}

// Holder is a hold as listings show it.
type Holder struct {
	// ID is the id of the claim.
	ID string
	// Node is the id of the client that holds it, Label that client's label.
	Node, Label string
	// Owner is whom it is for, "" for none.
	Owner string
	// Resource is the key of the resource; pools only.
	Resource string
	// Weight is how much of the capacity it takes; 1 for locks and pools.
	Weight int
	// Fence is the number of the grant.
	Fence int64
	// Lease is the lease, berth.Forever for none; Left is what is left of it.
	Lease, Left time.Duration
	// NoRenew says that it does not renew by itself.
	NoRenew bool
	// MaxHold is the bound of the hold, 0 for none.
	MaxHold time.Duration
	// Granted is when it was granted, by the server's clock.
	Granted time.Time
	// Held is how long it has been held, by the server's clock.
	Held time.Duration
	// Detached says that nobody renews it.
	Detached bool
	// Meta is what the claim was given.
	Meta map[string]string
}

// Waiter is a claim that waits in line, as listings show it.
type Waiter struct {
	// ID is the id of the claim.
	ID string
	// Node is the id of the client that waits, Label that client's label.
	Node, Label string
	// Owner is whom it is for, "" for none.
	Owner string
	// Weight is how much of the capacity it asks for; 1 for locks and pools.
	Weight int
	// Priority moves it ahead of lower ones.
	Priority int
	// Ahead is how many stand before it.
	Ahead int
	// Since is when it came, by the server's clock.
	Since time.Time
	// Waited is how long it has waited, by the server's clock.
	Waited time.Duration
	// Alive is how long it stays in line if nothing is heard of its process.
	Alive time.Duration
	// Meta is what the claim was given.
	Meta map[string]string
}
