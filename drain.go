package berth

// DrainTarget says which processes are to drain. One of the fields is set.
type DrainTarget struct {
	// Node is the id of a node: that of its ID method, and in listings.
	Node string `json:"node,omitzero"`
	// Label is a node's Config.Label or, where it ends in *, what stands before the * begins one.
	Label string `json:"label,omitzero"`
}

// Drained is what a drain came to. The numbers are of claims.
type Drained struct {
	// Asked is how many holds were asked for back. A process that hears of the drain by itself gives back unasked.
	Asked int `json:"asked"`
	// Cancelled is how many waits were ended.
	Cancelled int `json:"cancelled"`
	// Ended is how many holds were ended by force.
	Ended int `json:"ended"`
	// Detached is how many holds no process has: they are left to whoever resumes them, or to their lease.
	Detached int `json:"detached"`
	// Left is how many holds and waits the last pass has found.
	Left int `json:"left"`
}
