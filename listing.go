package berth

import "time"

// Holder is a hold as listings show it.
type Holder struct {
	// ID is the id of the claim.
	ID string `json:"claim"`
	// Node is the id of the node that holds it, Label that node's label.
	Node  string `json:"node"`
	Label string `json:"label"`
	// Owner is whom it is for, "" for none.
	Owner string `json:"owner"`
	// Weight is how much of the capacity it takes; 1 where there is no weight.
	Weight int `json:"weight"`
	// Fence is the number of the grant.
	Fence int64 `json:"fence"`
	// Resource is what it holds of a pool, any bytes; "" elsewhere.
	Resource string `json:"resource,omitzero"`
	// Lease is the lease, Forever for none; Left is what is left of it.
	Lease time.Duration `json:"leaseMs"`
	Left  time.Duration `json:"leftMs"`
	// WaitLease is the wait lease of its node: a process that renews is heard of more often than that. 0 where the
	// lease is not longer.
	WaitLease time.Duration `json:"waitLeaseMs,omitzero"`
	// NoRenew says that it does not renew by itself.
	NoRenew bool `json:"noRenew"`
	// MaxHold is the bound of the hold, 0 for none.
	MaxHold time.Duration `json:"maxHoldMs"`
	// Granted is when it was granted, by the server's clock.
	Granted time.Time `json:"since"`
	// Held is how long it has been held, by the server's clock.
	Held time.Duration `json:"forMs"`
	// Wanted is how long ago somebody asked for it back, by the server's clock: at least 1 ms; 0 for
	// nobody.
	Wanted time.Duration `json:"wantedMs,omitzero"`
	// Detached says that nobody renews it.
	Detached bool `json:"detached"`
	// ZombieAfter is that of its node, to the ms, where the node is in a swarm and the
	// hold has no end; else 0.
	ZombieAfter time.Duration `json:"zombieAfterMs,omitzero"`
	// Meta is what the claim was given.
	Meta map[string]string `json:"meta"`
}

// Waiter is a claim that waits in line, as listings show it.
type Waiter struct {
	// ID is the id of the claim.
	ID string `json:"claim"`
	// Node is the id of the node that waits, Label that node's label.
	Node  string `json:"node"`
	Label string `json:"label"`
	// Owner is whom it is for, "" for none.
	Owner string `json:"owner"`
	// Weight is how much of the capacity it asks for; 1 where there is no
	// weight.
	Weight int `json:"weight"`
	// Priority moves it ahead of lower ones.
	Priority int `json:"priority"`
	// Resource is the one resource of a pool that it waits for, any bytes; "" for any, and
	// elsewhere.
	Resource string `json:"resource,omitzero"`
	// BindWait is how long it waits for that resource alone, Forever for no end; 0 where it
	// waits for any.
	BindWait time.Duration `json:"bindWaitMs,omitzero"`
	// Ahead is how many stand before it, of those who wait for the same.
	Ahead int `json:"ahead"`
	// Since is when it came, by the server's clock.
	Since time.Time `json:"since"`
	// Waited is how long it has waited, by the server's clock.
	Waited time.Duration `json:"forMs"`
	// Alive is how long it stays in line if nothing is heard of its process.
	Alive time.Duration `json:"leftMs"`
	// Meta is what the claim was given.
	Meta map[string]string `json:"meta"`
}
