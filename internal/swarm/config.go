package swarm

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

const (
	// memory is how long a condemned id is remembered.
	memory = 24 * time.Hour
	// tombstone is for how long an unanswered probe is believed to be able to run.
	tombstone = time.Minute
)

// Config is what a Swarm is made of.
type Config struct {
	// Runner runs the scripts. Required.
	Runner *scriptkit.Runner
	// Space builds the keys. Required.
	Space keyspace.Space
	// Label is the process's.
	Label string
	// ProbeEvery is how often the node probes, at least 1 ms. Default 2 s.
	ProbeEvery time.Duration
	// ZombieAfter is how old this node's last probe must be for it to count as
	// dead, in whole milliseconds, and at least twice ProbeEvery. It travels with
	// the probe, so others need not have the same. Default 15 s.
	ZombieAfter time.Duration
	// FlushEvery is how often the node flushes; negative for never. Default 10 s.
	FlushEvery time.Duration
	// Clock is what the horizon refers to. Required.
	Clock clock.Clock
	// Node returns the id of the node; it is asked by Start. Required.
	Node func() string
	// Replace ends all handles of the node, has what it held given back in the
	// background, makes a new node, and returns the new id, or "" where there will be none because the
	// process is closing. It is called on the swarm's goroutine, and must not call
	// the swarm nor wait for the server. Until it returns, Passed is true for the
	// old id, and false for the new one. Required.
	Replace func(ctx context.Context, reason Reason) (node string)
	// Leaving is called before the node leaves, until it succeeds: once it has, no
	// claim of the node says on the server that the node is in a swarm. See Limit.
	// Default nil: no claim ever does.
	Leaving func(ctx context.Context) error
	// Line is what there is to flush. Required.
	Line Line
	// Observe takes events: ProbeFailed, Condemned and Flushed. NodeReplaced is
	// sent by Replace, which knows how many handles ended. Default nil: nobody.
	Observe func(observe.Event)
	// Rand draws the jitter of the flushes, from 0 up to 1. Default
	// math/rand/v2.Float64.
	Rand func() float64
}

// Reason says why a node is replaced.
type Reason string

// The reasons.
const (
	// ReasonSilent: no probe was confirmed before the horizon.
	ReasonSilent Reason = "no probe was confirmed in time"
	// ReasonCondemned: another node found this one dead.
	ReasonCondemned Reason = "condemned"
	// ReasonUnsure: Stop was cut short, and it is not known whether the node has
	// left the swarm.
	ReasonUnsure Reason = "not known to have left"
)

// Line is what a swarm flushes. Its methods are called by several goroutines at
// once.
type Line interface {
	// Names goes through all names, of all kinds, that may hold something.
	Names(ctx context.Context) iter.Seq2[berth.Ref, error]
	// Holders goes through the holds of a name. One without end says by its
	// ZombieAfter that its node is in a swarm.
	Holders(ctx context.Context, name berth.Ref) iter.Seq2[berth.Holder, error]
	// Waiters goes through the claims that wait for a name.
	Waiters(ctx context.Context, name berth.Ref) iter.Seq2[berth.Waiter, error]
	// ForceRelease ends the claim of the node given, held or waiting, and hands
	// on. For one that is gone, or has another node by now, it returns an error
	// that matches berth.ErrNotHeld.
	ForceRelease(ctx context.Context, name berth.Ref, claim, node string) error
	// Unknown says that this node neither has that claim nor is about to take it up.
	Unknown(claim string) bool
}

// withDefaults fills what is zero.
func (c Config) withDefaults() Config {
	if c.ProbeEvery == 0 {
		c.ProbeEvery = 2 * time.Second
	}
	if c.ZombieAfter == 0 {
		c.ZombieAfter = 15 * time.Second
	}
	if c.FlushEvery == 0 {
		c.FlushEvery = 10 * time.Second
	}
	if c.Observe == nil {
		c.Observe = func(observe.Event) {}
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return c
}

// Validate returns a *berth.ConfigError for the first time that cannot be, after
// the defaults. Its fields begin with "Swarm.", as in the configuration of a
// node.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.ProbeEvery < time.Millisecond:
		return berth.Invalid("Swarm.ProbeEvery", "%s is below 1ms", c.ProbeEvery)
	case c.ZombieAfter < settings.MinLease:
		return berth.Invalid("Swarm.ZombieAfter", "%s is below the shortest, %s", c.ZombieAfter, settings.MinLease)
	case c.ZombieAfter > memory:
		return berth.Invalid("Swarm.ZombieAfter", "%s is above the longest, %s", c.ZombieAfter, memory)
	case c.ZombieAfter < 2*c.ProbeEvery:
		return berth.Invalid("Swarm.ZombieAfter", "%s is below twice ProbeEvery, %s", c.ZombieAfter, c.ProbeEvery)
	case c.FlushEvery > 0 && c.FlushEvery < time.Millisecond:
		return berth.Invalid("Swarm.FlushEvery", "%s is below 1ms", c.FlushEvery)
	}
	return settings.Duration("Swarm.ZombieAfter", c.ZombieAfter)
}
