package berth

import "time"

// Holder is a hold as listings show it.
type Holder struct {
	// ID is the id of the claim.
	ID string `json:"claim"`
	// Node is the id of the claim's node, Label that node's label.
	Node  string `json:"node"`
	Label string `json:"label"`
	// Owner is the owner that the caller gave the claim, "" for none.
	Owner string `json:"owner"`
	// Weight is how much of the capacity the hold takes; 1 for kinds without weights.
	Weight int `json:"weight"`
	// Fence is the fencing token of the grant.
	Fence int64 `json:"fence"`
	// Resource is the pool's resource that is held, any bytes; "" for other kinds.
	Resource string `json:"resource,omitzero"`
	// Lease is the requested lease, Forever for no end. Left is the rest of the lease if nothing
	// renews it.
	Lease time.Duration `json:"leaseMs"`
	Left  time.Duration `json:"leftMs"`
	// WaitLease is the wait lease of the node: a process that renews sends a heartbeat more often than that. 0 if
	// Lease is not longer than the wait lease.
	WaitLease time.Duration `json:"waitLeaseMs,omitzero"`
	// NoRenew says that the hold does not renew by itself.
	NoRenew bool `json:"noRenew"`
	// MaxHold is the limit of the hold's duration, 0 for none.
	MaxHold time.Duration `json:"maxHoldMs"`
	// Granted is when the hold was granted, by the server's clock.
	Granted time.Time `json:"since"`
	// Held is how long the hold has lasted, by the server's clock.
	Held time.Duration `json:"forMs"`
	// Wanted is how long ago somebody asked for the hold back, by the server's clock: at least 1 ms;
	// 0 for nobody.
	Wanted time.Duration `json:"wantedMs,omitzero"`
	// Detached says that the hold is detached, so that no process renews it.
	Detached bool `json:"detached"`
	// ZombieAfter is the node's ZombieAfter, in whole milliseconds, if the node is in a swarm and
	// the hold has no end; else 0.
	ZombieAfter time.Duration `json:"zombieAfterMs,omitzero"`
	// Meta is the Meta of the claim's options.
	Meta map[string]string `json:"meta"`
}

// Waiter is a claim that waits in line, as listings show it.
type Waiter struct {
	// ID is the id of the claim.
	ID string `json:"claim"`
	// Node is the id of the claim's node, Label that node's label.
	Node  string `json:"node"`
	Label string `json:"label"`
	// Owner is the owner that the caller gave the claim, "" for none.
	Owner string `json:"owner"`
	// Weight is how much of the capacity the claim asks for; 1 for kinds without weights.
	Weight int `json:"weight"`
	// Priority is the claim's priority; higher priorities stand ahead of lower ones.
	Priority int `json:"priority"`
	// Resource is the pool's only resource that the claim waits for, any bytes; "" for any
	// resource, and for other kinds.
	Resource string `json:"resource,omitzero"`
	// BindWait is how long the claim waits for Resource alone, Forever for no end; 0 if the claim
	// waits for any resource.
	BindWait time.Duration `json:"bindWaitMs,omitzero"`
	// Ahead is how many claims that wait for the same thing stand ahead.
	Ahead int `json:"ahead"`
	// Since is when the claim arrived, by the server's clock.
	Since time.Time `json:"since"`
	// Waited is how long the claim has waited, by the server's clock.
	Waited time.Duration `json:"forMs"`
	// Alive is how long the claim stays in line if its process sends no further heartbeat.
	Alive time.Duration `json:"leftMs"`
	// Meta is the Meta of the claim's options.
	Meta map[string]string `json:"meta"`
}
