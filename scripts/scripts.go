// Package scripts holds the Lua of all kinds as it is written. What a script does, takes
// and answers is in its header; docs/generated/scripts.md lists them all. What a server gets is in the folder
// composed. The package is no part of what compatibility covers.
//
// The verbs of the folder line call names that the files in the folder kind define: each file all of Needed, and of
// Hooks what it needs. In a kind's file the constants come first. line/head and line/renewal are included right above
// the function that needs each, because what they call has to stand before them.
//
// # Words
//
// Beside those of docs/architecture.md:
//
//   - state, run (st, at): what a script works with: the name's values; its keys, the time, the messages to send
//   - fatten, slim: to give a name the other form
//   - busy, calm: when a name last needed its fat form; that this was 10 s ago or more
//   - mark: the member - that keeps a fat name's line from being empty; w:<resource>: when that lane is looked at next
//   - wants: the fixed terms of a pool's claim alone
//   - item, holding, free: the stored text of a resource; which resource a claim holds; the free ones
//   - patience: how long a claim waits for one resource alone
//   - arrival: an acquire, seen as if it stood in line already
//   - patrol, look: the search for dead claims behind the head; how far it has come
//   - budget: how much a run may still drop and grant
//   - wish: the caller's choice for a claim's end; only the kind reads it
//   - next deadline: when a place may next become free by itself, and for whom
//   - setting, extra, flags: fields of replies; see docs/keys-and-scripts.md
//   - tombstone: the trace of an ended claim, for an acquire that comes late
//   - plain case, fast path: a call that needs no decision; the script's short way through it
package scripts

import "embed"

// FS holds the scripts, <kind>_<verb>.lua, and in folders what they include.
//
//go:embed *.lua */*.lua
var FS embed.FS

// Outdated is the first of the two files that fence.Lua puts together.
//
//go:embed fence/outdated.lua
var Outdated string

// Admit is the second one.
//
//go:embed fence/admit.lua
var Admit string

// Needed are the names that every kind's file defines.
var Needed = []string{
	"kind_open",    // (keys, linger, channel, name, ...) Returns the run, the state, and the claim's record as text. The scripts call it
	"kind_spare",   // How much of its budget an acquire keeps for its own kind_next
	"kind_full",    // (at, st, r) Returns whether something expired may be in the way
	"kind_next",    // (at, st, budget, arrival) Returns the first in line: claim, record, and what it gets, false for nothing
	"kind_arrive",  // (at, st, budget, arrival) Returns the same for a claim that arrives, if nobody stands ahead of it; may be kind_next
	"kind_refused", // (at, st, ask, swept, more) Returns the reply to a claim that only tries and gets nothing
	"kind_renew",   // (at, st, claim, r, mode, m) Takes an own call: changes the record, and moves the deadline in m. Returns whether it asks for a longer lease than it may
}

// Hooks are the names that a kind's file may define. One that it does not define is false, where the verbs name it.
var Hooks = []string{
	"kind_fresh",     // (at) Removes what an older state of a name that begins has left behind
	"kind_save",      // (at, st) Returns the text of the field pool
	"kind_thin",      // Whether names have a thin form
	"kind_refuse",    // (at, st, ask) Returns a reply if the claim is refused before anything is written
	"kind_enter",     // (at, st, ask, holds, swept, more) Answers a claim that names an owner: reply, fields to save, furthest; or nil. With holds the claim holds already
	"kind_place",     // (lane, ticket, at, ask) Returns the lane and the place. False: by the ticket
	"kind_heavy",     // (st, r) Returns whether the claim will never fit
	"kind_stand",     // (at, st, claim, r, lane, apart) Has a claim that waits stand elsewhere than in its lane of the line
	"kind_stands",    // (at, claim, r) Returns where such a claim stands, and how many before it; nil for others
	"kind_alarm",     // (at, claim, r) Returns whether a claim stands so, when it may get something by itself (ms), and whether that is for it first
	"kind_rejoin",    // (at, st, apart) Returns what such a claim is when it is restored, nil if it waits; and where, "" for the line
	"kind_vacate",    // (at, st, claim, place) Forgets what a waiting claim had beside its place
	"kind_deal",      // (at, st, claim, what) Gives what kind_next returned. Returns extra, and the field that keeps it
	"kind_setting",   // (st) Returns the setting. False: the capacity
	"kind_hold",      // (at, st, claim) Returns the record of a hold with its deadline, or nil
	"kind_deadlines", // (at, st, m) Moves what follows the own calls of a run
	"kind_left",      // (at, st, claim) Returns how long the holder may believe in the hold (ms, -1 = no end)
	"kind_extras",    // (at, calls) Returns a text for each own call, for the end of the reply
	"kind_leave",     // (at, st, claim, r, deadline, wish) Takes back what a leaving claim had. Returns extra, fields to save, sooner
	"kind_remove",    // (at, st, claim, r, wish) Has the rest go on after a hold was ended. Returns the same, and whether all the rest has expired
	"kind_weighs",    // Whether an end by force makes the counts anew
	"kind_expire",    // (at, st, claim, terms, deadline) Takes back what an expired hold had. Returns sooner
	"kind_due",       // (at, st, budget) Drops what else ends by time
	"kind_moment",    // (at, st) Returns the earliest end that frees something, holds aside (ms)
	"kind_asks",      // (at, claim, r) Returns whose holds a claim that waits may ask for, nil for all, and how many it needs, nil for its weight
	"kind_pending",   // (at) Returns whether a sweep may find something of the kind's to drop or to tell
	"kind_tell",      // (at, st, reply) Adds to the reply of a sweep. Returns whether it has written
}
