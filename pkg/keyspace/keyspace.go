package keyspace

import (
	"strings"

	"github.com/berth-go/berth"
)

// DefaultNamespace is the namespace of a node whose Config sets none.
const DefaultNamespace = "berth"

// Kind is the kind of thing that a key belongs to: the second part of the key.
type Kind = berth.Kind

// The kinds of keys. None contains a colon, see [CheckNamespace].
const (
	// Sem is for semaphores.
	Sem Kind = "sem"
	// Lock is for locks.
	Lock Kind = "lock"
	// Pool is for pools of resources.
	Pool Kind = "pool"
	// Swarm is for swarms: nodes that watch each other.
	Swarm Kind = "swarm"
	// Notice is for operators' messages to all clients.
	Notice Kind = "notice"
	// Fence is for guards, which store the greatest fence of a name.
	Fence Kind = "fence"
	// Once is for the records of runs of package once.
	Once Kind = "once"
	// Waits is for the registry of names, of any kind, that claims wait for.
	Waits Kind = "waits"
)

// The parts of a name's keys, the last part of a key.
const (
	// StatePart is the state of a name and its holds. The key exists while claims hold or wait,
	// and for some time (Linger) afterwards, so that a listing of the state keys finds every name
	// in use. A guard's state never expires. The state of runs stays until the end of the period
	// after the next.
	StatePart = "state"
	// LinePart has all deadlines and places of a name: those of its holds and waiting claims, and
	// of a pool's rests, resources and bindings. The key exists while there are any.
	LinePart = "line"
	// ItemsPart has the data of a pool's resources. The key exists as long as the pool's state.
	ItemsPart = "items"
	// FreePart has a pool's free resources, in the order in which they came back. The key exists
	// as long as the pool's state.
	FreePart = "free"
	// BindingsPart maps each bound name to a resource of the pool. The key exists as long as the
	// pool's state.
	BindingsPart = "bindings"
	// ProbesPart says when each node of a swarm is dead, and which nodes are condemned. The key
	// exists while there are any.
	ProbesPart = "probes"
	// NamesPart is one part of the registry of names that claims wait for. Each name has the time
	// until which its entry is valid, and the key exists until the last of these times.
	NamesPart = "names"
)

// Space builds the keys and channels of one namespace. Make a Space with [New]; the zero value
// has no namespace and cannot be used. A Space may be copied, and is safe for concurrent use.
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

// State returns the key of a name's state; see [StatePart].
func (s Space) State(kind Kind, name string) string {
	return s.Key(kind, name, StatePart)
}

// Line returns the key of a name's deadlines and places; see [LinePart].
func (s Space) Line(kind Kind, name string) string {
	return s.Key(kind, name, LinePart)
}

// Notice returns the key of operators' messages to all clients.
func (s Space) Notice() string {
	return s.Key(Notice, "all", StatePart)
}

// Probes returns the key of a swarm's probes; see [ProbesPart].
func (s Space) Probes(name string) string {
	return s.Key(Swarm, name, ProbesPart)
}

// Wake returns the channel on which a node receives news of grants and losses:
// <namespace>:wake:<node>. The node id must not contain a colon. Wake("") is the prefix that a
// script puts before a stored node id.
func (s Space) Wake(node string) string {
	return s.ns + ":wake:" + node
}

// Match returns the pattern with which SCAN finds every name of a kind once, by its state key:
// <namespace>:<kind>:{*}:state. The pattern may also match keys that Berth never wrote;
// [Space.NameOf] rejects them.
func (s Space) Match(kind Kind) string {
	return s.State(kind, "*")
}

// NameOf returns the name whose [Space.State] is key. ok is false for every other key: one of
// another namespace, kind or part, and one with a name that [CheckName] refuses.
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
