// Package job is what the driver of a torture run tells a worker process: its job,
// as JSON in one variable of the environment.
package job

import (
	"encoding/json"
	"fmt"
	"os"
)

// Env is the variable of the environment that holds the job of a worker.
const Env = "BERTH_TORTURE_WORKER"

// What a worker reads on its standard input and writes on its standard output, a
// line each. The end of its input ends a worker at once.
const (
	// Ready is what a worker prints when it has begun to work.
	Ready = "ready"
	// Drain orders a worker to begin nothing new, to end what it has, and to exit:
	// with 0, or with 1 where something is stuck or a history could not be written.
	Drain = "drain"
	// Long orders a worker to hold a third of what it gets from now on for 2 to 4 leases,
	// and the rest for up to half of one; Short to end such holds, and to hold as its job
	// says again.
	Long  = "long"
	Short = "short"
	// Part, with a number of ms after it, orders a worker to give back what it has held
	// for longer than that.
	Part = "part"
	// Endless orders a worker to take the names of Job.Endless without an end, each for a moment, until Short.
	Endless = "endless"
)

// Redis is how a worker reaches the server. It has the fields of harness.Spec,
// which is not used here because the harness would be linked into the worker.
type Redis struct {
	Addresses []string `json:"addresses"`
	MasterSet string   `json:"master_set,omitempty"` // of Sentinel
	Cluster   bool     `json:"cluster,omitempty"`
	// Password is that of the default user. A server without one takes any.
	Password string `json:"password,omitempty"`
}

// Kind is what a worker does with a lock.
type Kind string

// The kinds of locks.
const (
	Queued    Kind = "queued"    // every acquire queues
	Mixed     Kind = "mixed"     // queued, random and last-come places
	Reentrant Kind = "reentrant" // queued; owners enter again
)

// Semaphore is a semaphore that all workers contend for.
type Semaphore struct {
	Name     string `json:"name"`
	Capacity int    `json:"capacity"` // at least 1
}

// Lock is a lock that all workers contend for.
type Lock struct {
	Name string `json:"name"`
	Kind Kind   `json:"kind"` // default Queued
}

// Pool is a pool that all workers contend for. The driver fills it.
type Pool struct {
	Name      string   `json:"name"`
	Resources []string `json:"resources"`
	// Sharers is how many may hold a resource at once. Default 1.
	Sharers int `json:"sharers,omitempty"`
	// Cooldown is how long a resource rests after each hold: ms. Default not at all.
	Cooldown int64 `json:"cooldown,omitempty"`
	// Moves has workers take resources out now and then, and put them back.
	Moves bool `json:"moves,omitempty"`
}

// Job is what one worker process does. Times are in ms.
type Job struct {
	Redis Redis `json:"redis"`
	// Dial gives the address to dial for that of a node, so that its connections
	// pass a proxy. Addresses that are not in it are dialled as they are.
	Dial      map[string]string `json:"dial,omitempty"`
	Namespace string            `json:"namespace"`
	Process   string            `json:"process"` // "w3.1": the second life of the third
	Seed      int64             `json:"seed"`
	History   string            `json:"history"` // path of a file that is not there yet

	Sems  []Semaphore `json:"sems,omitempty"`
	Locks []Lock      `json:"locks,omitempty"`
	Pools []Pool      `json:"pools,omitempty"`
	// Endless are what nobody uses but by the order to: each is a lock, and a semaphore of 1.
	Endless []string `json:"endless,omitempty"`

	// Goroutines is how many contend at a time. Default 12.
	Goroutines int `json:"goroutines,omitempty"`
	// Lease is the wait lease, and that of most holds. Default 1000.
	Lease int64 `json:"lease,omitempty"`
	// HoldMax is the longest of the ordinary, short holds. Default 30.
	HoldMax int64 `json:"hold_max,omitempty"`
	// Life is how long a node lives at the most, and at the least half of it.
	// Default 4000.
	Life int64 `json:"life,omitempty"`
	// DrainLimit is after how long a drain calls stuck what has not returned.
	// Default 20 000.
	DrainLimit int64 `json:"drain_limit,omitempty"`
	// CloseLimit is how long the closing of a node may take, and the listing after it.
	// Default 4000.
	CloseLimit int64 `json:"close_limit,omitempty"`
	// Calm leaves out cancels, tries, weights, short leases, late and forced
	// releases, and long holds: what remains is acquire, of any or of one resource, hold,
	// release, and what a Pool says of itself.
	Calm bool `json:"calm,omitempty"`
	// Pauses is how often names are paused, and pauses ended: once in so many turns of a
	// goroutine. 0 is never.
	Pauses int `json:"pauses,omitempty"`
	// Wants is how often holds are asked back, in the same way. Nobody heeds that.
	Wants int `json:"wants,omitempty"`
	// Swarms is how many nodes are in a swarm, and Drains how many are drained before their end: one in so many. 0 is none.
	// What is in a swarm is replaced where it was silent for half as long again as a lease.
	Swarms int `json:"swarms,omitempty"`
	Drains int `json:"drains,omitempty"`
}

// Variable is the job as an entry for the environment of a process.
func (j Job) Variable() (string, error) {
	text, err := json.Marshal(j)
	return Env + "=" + string(text), err
}

// FromEnv reads the job of this process, with its defaults filled in.
func FromEnv() (Job, error) {
	var j Job
	if err := json.Unmarshal([]byte(os.Getenv(Env)), &j); err != nil {
		return Job{}, fmt.Errorf("%s: %w", Env, err)
	}
	return j.WithDefaults(), nil
}

// WithDefaults is the job with the default of every number that is 0.
func (j Job) WithDefaults() Job {
	set := func(field *int64, value int64) {
		if *field == 0 {
			*field = value
		}
	}
	set(&j.Lease, 1000)
	set(&j.HoldMax, 30)
	set(&j.Life, 4000)
	set(&j.DrainLimit, 20_000)
	set(&j.CloseLimit, 4000)
	if j.Goroutines == 0 {
		j.Goroutines = 12
	}
	return j
}
