package scriptkit

import (
	"slices"
	"strings"

	"github.com/berth-go/berth"
)

// Course says what follows a refusal.
type Course int

const (
	// Final ends the call at once: the same call would be refused again.
	Final Course = iota
	// Passes has the call repeated: the server did not run it, and soon will.
	Passes
	// PassesOnceServed has the call repeated by a Runner that the server has served before,
	// since somebody is changing what lets the client in. It ends the call of a Runner that
	// was never served: its credentials are wrong.
	PassesOnceServed
)

// Refusal is an error that a server answers to what Berth sends.
type Refusal struct {
	// Begins is how the answer begins, "ERR " aside: whole words.
	Begins string
	// Means says, in a few words, what the server says by it.
	Means string
	// Course is what follows.
	Course Course
	// Doubt says that the call may have run where the refusal passes: rueidis gives a refused AUTH
	// as the answer to all that is on its way on that connection.
	Doubt bool
	// Is is a sentinel that the error of the call matches, or nil. Where the refusal passes, the
	// error matches berth.ErrUnavailable.
	Is error
	// Seen are the servers that a test has had answer so.
	Seen []string
}

// Refusals returns all that Redis 7 and 8 and Valkey 7.2 to 9 are known to answer, by the texts in their
// sources. Any other error is Final.
func Refusals() []Refusal { return slices.Clone(refusals) }

const redis, valkey = "Redis", "Valkey"

var refusals = []Refusal{
	{Begins: "BUSY", Means: "a script or a module's command runs for long", Course: Passes, Seen: []string{redis, valkey}},
	{Begins: "CLUSTERDOWN", Means: "the cluster, or the key's slot, is not served", Course: Passes, Seen: []string{redis, valkey}},
	{Begins: "LOADING", Means: "the server reads its data from disk", Course: Passes, Seen: []string{redis, valkey}},
	{Begins: "MASTERDOWN", Means: "a replica has lost its master, and may not serve what is stale", Course: Passes, Seen: []string{redis, valkey}},
	{Begins: "MISCONF", Means: "a snapshot, or a write to the append-only file, has failed: all writes are refused until one succeeds", Course: Passes, Seen: []string{redis, valkey}},
	{Begins: "NOREPLICAS", Means: "too few replicas are in step (`min-replicas-to-write`)", Course: Passes, Seen: []string{redis, valkey}},
	{Begins: "READONLY", Means: "the server is a replica", Course: Passes, Seen: []string{redis, valkey}},
	{Begins: "REDIRECT", Means: "the server is a replica, and the client asked to be told of its master", Course: Passes, Seen: []string{valkey}},
	{Begins: "TRYAGAIN", Means: "the slot is moving, with a part of the keys", Course: Passes, Seen: []string{redis, valkey}},
	{Begins: "max number of clients", Means: "the server takes no more connections", Course: Passes, Seen: []string{redis, valkey}},
	{Begins: "Script attempted to execute a", Means: "the cluster is down, and serves reads (`cluster-allow-reads-when-down`): the script's first write", Course: Passes, Seen: []string{redis, valkey}},
	{Begins: "Script killed by user", Means: "somebody ended a script before its first write (SCRIPT KILL)", Course: Passes, Seen: []string{redis, valkey}},
	{Begins: "AUTH <password> called without any password", Means: "the server has no password, and the client gave one", Course: PassesOnceServed, Doubt: true, Seen: []string{redis, valkey}},
	{Begins: "DENIED", Means: "protected mode: a server without a password refuses other machines", Course: PassesOnceServed},
	{Begins: "NOAUTH", Means: "the client gave no password", Course: PassesOnceServed, Seen: []string{redis, valkey}},
	{Begins: "WRONGPASS", Means: "the password is another one, or the user is disabled", Course: PassesOnceServed, Doubt: true, Seen: []string{redis, valkey}},
	{Begins: "ASK", Means: "the key is on another server, and the client does not follow", Seen: []string{redis, valkey}},
	{Begins: "CROSSSLOT", Means: "keys of several slots: a mistake in the program", Seen: []string{redis, valkey}},
	{Begins: "MOVED", Means: "the slot is on another server, and the client does not follow", Seen: []string{redis, valkey}},
	{Begins: "NOPERM", Means: "the user lacks a right", Seen: []string{redis, valkey}},
	{Begins: "NOPROTO", Means: "the server does not speak the protocol asked for", Seen: []string{redis, valkey}},
	{Begins: "OOM", Means: "the server is full; releases and renewals go on", Seen: []string{redis, valkey}},
	{Begins: "WRONGTYPE", Means: "the key holds something of somebody else", Seen: []string{redis, valkey}},
	{Begins: "unknown command", Means: "the server is too old", Is: berth.ErrIncompatible, Seen: []string{redis, valkey}},
}

// Matches says whether an answer, as rueidis hands it on, is this refusal.
func (r *Refusal) Matches(answer string) bool {
	rest, ok := strings.CutPrefix(answer, r.Begins)
	return ok && (rest == "" || rest[0] == ' ')
}

// refused tells what an answer means to a Runner that was served before, or was not.
func refused(answer string, served bool) verdict {
	i := slices.IndexFunc(refusals, func(r Refusal) bool { return r.Matches(answer) })
	if i < 0 || refusals[i].Course == Final || refusals[i].Course == PassesOnceServed && !served {
		return verdict{}
	}
	return verdict{repeat: true, mayHaveRun: refusals[i].Doubt}
}
