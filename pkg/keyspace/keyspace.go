package keyspace

import (
	"strings"

	"github.com/berth-go/berth"
)

// DefaultNamespace is the namespace of a node whose Config names none.
const DefaultNamespace = "berth"

// Kind is the second part of a key: what the key belongs to.
type Kind = berth.Kind

// The kinds of keys. None contains a colon, see [CheckNamespace].
const (
	// Sem is for semaphores.
	Sem Kind = "sem"
	// Lock is for locks.
	Lock Kind = "lock"
	// Pool is for pools of resources.
	Pool Kind = "pool"
	// Swarm is for the nodes that watch each other.
	Swarm Kind = "swarm"
	// Notice is for what operators say to all clients.
	Notice Kind = "notice"
	// Fence is for guards that remember the greatest fence of a name.
	Fence Kind = "fence"
	// Once is for what has become of the runs of a name that runs once in each period.
	Once Kind = "once"
	// Waits is for the registry of names that somebody waits for, whatever their kind.
	Waits Kind = "waits"
)

// The parts of a name's keys, the last part of a key.
const (
	// StatePart is what is known about a name and its holds. It exists while anything is
	// held or waits, and for some time (Linger) afterwards, so that a listing of the state
	// keys finds every name in use. A guard's never expires. What is known of runs stays until
	// the end of the period after the next.
	StatePart = "state"
	// LinePart is all deadlines and places of a name: its holds, its waiting claims, and
	// the ends of a pool's rests, resources and bindings. It exists while there are any.
	LinePart = "line"
	// ItemsPart is what is known of the resources of a pool. It exists as long as
	// the pool's state.
	ItemsPart = "items"
	// FreePart is a pool's free resources, in the order in which they came back. It
	// exists as long as the pool's state.
	FreePart = "free"
	// BindingsPart is which name is bound to which of a pool's resources. It exists as
	// long as the pool's state.
	BindingsPart = "bindings"
	// ProbesPart is when each node of a swarm has probed last, and which of
	// them are condemned. It exists while there are any.
	ProbesPart = "probes"
	// NamesPart is a part of the registry of names that somebody waits for, each with the
	// moment until which that is believed. It exists until the last of these moments.
	NamesPart = "names"
)

// Space builds the keys and channels of one namespace. Make one with [New];
// the zero value has no namespace and is of no use. It may be copied and used
// by many goroutines at once.
type Space struct {
	ns string
}

// New returns the Space of a namespace. Its errors are those of
// [CheckNamespace].
func New(ns string) (Space, error) {
	if err := CheckNamespace(ns); err != nil {
		return Space{}, err
	}
	return Space{ns: ns}, nil
}

// Namespace returns the namespace.
func (s Space) Namespace() string { return s.ns }

// Key returns <namespace>:<kind>:{<name>}:<part>. The name must have passed
// [CheckName]. The part is one of the constants of this package.
func (s Space) Key(kind Kind, name, part string) string {
	return s.ns + ":" + string(kind) + ":{" + name + "}:" + part
}

// State returns the key of a name's state, see [StatePart].
func (s Space) State(kind Kind, name string) string {
	return s.Key(kind, name, StatePart)
}

// Line returns the key of a name's deadlines and places, see [LinePart].
func (s Space) Line(kind Kind, name string) string {
	return s.Key(kind, name, LinePart)
}

// Notice returns the key of what operators say to all clients.
func (s Space) Notice() string {
	return s.Key(Notice, "all", StatePart)
}

// Probes returns the key of a swarm's probes, see [ProbesPart].
func (s Space) Probes(name string) string {
	return s.Key(Swarm, name, ProbesPart)
}

// Wake returns the channel on which a node hears of grants and losses:
// <namespace>:wake:<node>. The node id must not contain a colon. Wake("") is the prefix
// that a script puts before a stored node id.
func (s Space) Wake(node string) string {
	return s.ns + ":wake:" + node
}

// Match returns the pattern with which SCAN finds the state keys of a kind,
// so every name of that kind once: <namespace>:<kind>:{*}:state. It may find
// keys that Berth never wrote; [Space.NameOf] sorts them out.
func (s Space) Match(kind Kind) string {
	return s.State(kind, "*")
}

// NameOf returns the name whose [Space.State] is key. ok is false for every
// other key: of another namespace, kind or part, or with a name that
// [CheckName] refuses.
func (s Space) NameOf(kind Kind, key string) (name string, ok bool) {
	// The name's own key, cut where the name would stand.
	before, after, _ := strings.Cut(s.State(kind, "*"), "*")
	name, ok = strings.CutPrefix(key, before)
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(name, after)
	if !ok || CheckName(name) != nil {
		return "", false
	}
	return name, true
}
