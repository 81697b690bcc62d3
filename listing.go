package berth

import "time"

// Holder is a hold as listings show it.
type Holder struct {
	// ID is the id of the claim.
	ID string
	// Node is the id of the node that holds it, Label that node's label.
	Node, Label string
	// Owner is whom it is for, "" for none.
	Owner string
	// Weight is how much of the capacity it takes; 1 where there is no weight.
	Weight int
	// Fence is the number of the grant.
	Fence int64
	// Resource is what it holds of a pool, any bytes; "" elsewhere.
	Resource string
	// Lease is the lease, Forever for none; Left is what is left of it.
	Lease, Left time.Duration
	// WaitLease is the wait lease of its node: a process that renews is heard of more often than that. 0 where the
	// lease is not longer.
	WaitLease time.Duration
	// NoRenew says that it does not renew by itself.
	NoRenew bool
	// MaxHold is the bound of the hold, 0 for none.
	MaxHold time.Duration
	// Granted is when it was granted, by the server's clock.
	Granted time.Time
	// Held is how long it has been held, by the server's clock.
	Held time.Duration
	// Wanted is how long ago somebody asked for it back, by the server's clock: at least 1 ms; 0 for
	// nobody.
	Wanted time.Duration
	// Detached says that nobody renews it.
	Detached bool
	// ZombieAfter is that of its node, to the ms, where the node is in a swarm and the
	// hold has no end; else 0.
	ZombieAfter time.Duration
	// Meta is what the claim was given.
	Meta map[string]string
}

// Waiter is a claim that waits in line, as listings show it.
type Waiter struct {
	// ID is the id of the claim.
	ID string
	// Node is the id of the node that waits, Label that node's label.
	Node, Label string
	// Owner is whom it is for, "" for none.
	Owner string
	// Weight is how much of the capacity it asks for; 1 where there is no
	// weight.
	Weight int
	// Priority moves it ahead of lower ones.
	Priority int
	// Resource is the one resource of a pool that it waits for, any bytes; "" for any, and
	// elsewhere.
	Resource string
	// BindWait is how long it waits for that resource alone, Forever for no end; 0 where it
	// waits for any.
	BindWait time.Duration
	// Ahead is how many stand before it, of those who wait for the same.
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
