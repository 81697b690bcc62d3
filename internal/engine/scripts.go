package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Scripts is what differs between the primitives: the calls to the server,
// typed. Every method may be repeated for the same claim. Where an error comes
// back, and a script may have run without its answer having been read, the
// error is a *scriptkit.Error that says so.
type Scripts interface {
	// Acquire asks for the claim. It makes one attempt.
	Acquire(ctx context.Context, c *Claim) (Answer, error)
	// Release gives the claim back, as a hold or out of the line. With stays
	// above 0 it leaves a tombstone for so long.
	Release(ctx context.Context, c *Claim, stays time.Duration) (Parting, error)
	// Beat sends the own calls of claims that wait or are held, heartbeats or others by the
	// mode. All are of one name. It makes one attempt.
	Beat(ctx context.Context, name string, mode Mode, claims []*Claim) (Round, error)
	// BeatMany sends a Beat in ModeBeat for each batch, many of them at a time, and gives
	// answered what Beat would return, with the index of the batch: once for each, from
	// several goroutines at a time, and before it returns.
	BeatMany(ctx context.Context, batches []Batch, answered func(i int, r Round, err error))
	// Restore puts waiting claims of one name back where they stood. It makes
	// one attempt.
	Restore(ctx context.Context, name string, claims []*Claim) (Round, error)
	// Requeue sends a waiting claim with a RequeueEvery to the end of the line. It makes one
	// attempt. ok is false for a claim that does not wait there any more.
	Requeue(ctx context.Context, c *Claim) (answer Answer, ok bool, err error)
	// Load sends the script that Beat runs to every node of the server, so that no
	// first Beat has to. Nothing depends on it.
	Load(ctx context.Context) error
	// Sweep drops what has expired and hands on. It makes one attempt.
	Sweep(ctx context.Context, at Line) (NextDeadline, error)
	// Key is a Redis key of a name: the server that has it runs the name's scripts.
	Key(at Line) string
}

// Line is what claims stand in line for: a name of a kind. Two kinds may have the same name.
type Line struct {
	Kind keyspace.Kind
	Name string
}

// Batch is claims of one name.
type Batch struct {
	Name   string
	Claims []*Claim
}

// Mode says what a call of a holder is for.
type Mode string

// The modes of a Beat.
const (
	// ModeBeat is a heartbeat or a confirmation.
	ModeBeat Mode = "beat"
	// ModeWant is the heartbeat of a claim that has waited for WantAfter: if it stands first, it asks for
	// holds of others.
	ModeWant Mode = "want"
	// ModeRenew sets even a fixed lease anew.
	ModeRenew Mode = "renew"
	// ModeDetach marks the hold as one that nobody renews.
	ModeDetach Mode = "detach"
)

// modeExtend moves the deadline further off by so much, once: the call has an id.
func modeExtend(by time.Duration, call string) Mode {
	return Mode(fmt.Sprintf("extend %d %s", by.Milliseconds(), call))
}

// The words of the modes that name a lease: what ModeRenew and ModeBeat are for a holder that has
// asked for it, see Hold.RenewFor.
const renewFor, keepFor = "renew", "keep"

// modeFor is such a mode: the hold has that lease from then on.
func modeFor(word string, lease time.Duration) Mode {
	r := Record{Lease: lease}
	return Mode(fmt.Sprintf("%s %d", word, r.LeaseMillis()))
}

// asksFor is the lease that a call of RenewFor asks for, 0 for every other call.
func (m Mode) asksFor() time.Duration {
	word, millis, named := strings.Cut(string(m), " ")
	if !named || word != renewFor {
		return 0
	}
	lease, err := strconv.ParseInt(millis, 10, 64)
	switch {
	case err != nil:
		return 0
	case lease == 0:
		return berth.Forever
	}
	return time.Duration(lease) * time.Millisecond
}

// NextDeadline is what every reply tells about the line: when a place may become free by itself.
type NextDeadline struct {
	// In is the time until a place may become free by itself, below 0 for
	// never.
	In time.Duration
	// First says that the first in line is of this node.
	First bool
	// More says that the script stopped at its bound: sweep again at once.
	More bool
	// Own says that In is for the claims of the call that wait, each for what it waits for.
	Own bool
	// Dropped is how many a sweep has dropped, and how much that is damaged it was the first to tell of.
	Dropped int
}

// Rounds are the runs of one sweep, for as long as they say that more is left.
type Rounds struct{ quiet int }

// mostQuiet is how many runs in a row may drop nothing, though each may grant to 100, or look at 100 places. What goes
// on for longer goes by what somebody else has stored.
const mostQuiet = 10_000

// Next says whether a run is to follow one that has told t; t says so, too.
func (r *Rounds) Next(t *NextDeadline) bool {
	if r.quiet++; t.Dropped > 0 {
		r.quiet = 0
	}
	t.More = t.More && r.quiet < mostQuiet
	return t.More
}

// over says that the runs have ended at that.
func (r *Rounds) over() bool { return r.quiet >= mostQuiet }

// tries are those of one call that the script has ended at its bound, with a sweep behind each.
type tries struct{ quiet int }

// mostTries is how many of them in a row may be followed by a sweep that drops nothing: another sweep may have dropped
// what was there, and of what is damaged each try takes 100 away by itself.
const mostTries = 100

// swept notes what the sweep behind a try has dropped.
func (t *tries) swept(dropped int) {
	switch {
	case dropped > 0:
		t.quiet = 0
	case dropped == 0:
		t.quiet++
	default:
		t.quiet = mostTries
	}
}

// last says that what still seems to be in the way of the next try is not.
func (t *tries) last() bool { return t.quiet >= mostTries }

// Answer is what the server says to an acquire.
type Answer struct {
	// Granted says that the claim holds; else it waits, unless Refused is set.
	Granted bool
	// Refused says why the claim got nothing, nil if it did.
	Refused *berth.AcquireError
	// Confirmed says that the grant's deadlines run as the claim asked. A grant
	// that a hand-off made, or that asks for longer than the wait lease, is
	// confirmed by the claimant's next call.
	Confirmed bool
	// Ticket is when the claim came.
	Ticket int64
	// Place is where a waiting claim stands. Of two claims the lesser text stands before.
	Place string
	// Ahead is how many stand before it.
	Ahead int
	// Capacity is the stored one, 0 where the primitive has none.
	Capacity int
	// Fence is the number of the grant.
	Fence int64
	// Left is the time left of the hold or of the wait lease, below 0 for a
	// hold without end.
	Left time.Duration
	// Resource is what a grant gives where the primitive has resources; of a claim that
	// waits the one that it waits for alone, so that what else becomes free is nothing to it.
	Resource string
	// Told is what else the kind's script tells, for who reads its answer.
	Told string
	// Entry is set where the owner held the name already.
	Entry        *Entry
	NextDeadline NextDeadline
}

// Waits says that the claim waits.
func (a *Answer) Waits() bool { return !a.Granted && a.Refused == nil }

// Terms are what the deadlines of a hold go by: those of its claim's record, or,
// for an entry of an owner that held the name already, the outermost one's.
type Terms struct {
	Lease   time.Duration // berth.Forever for none
	NoRenew bool
	MaxHold time.Duration // 0 for none
}

// lease is what a renewal gives, within the maximum hold, so that the margin is no
// larger than it.
func (t Terms) lease() time.Duration {
	if t.MaxHold > 0 {
		return min(t.Lease, t.MaxHold)
	}
	return t.Lease
}

// Entry is what the server says of a claim whose owner held the name already.
type Entry struct {
	Terms
	// Extends is by how much the claim extends the common deadline, confirmed
	// or not.
	Extends time.Duration
	// Common is what is left of the common deadline, below 0 for no end, and where
	// the outermost entry has yet to speak.
	Common time.Duration

	rest    time.Duration // what its claimant's confirming call adds
	replied time.Duration // when this was read
}

// Parting is what the server says to a release.
type Parting struct {
	Word Released
	// Fence is the number of the grant that it ended, 0 for none.
	Fence int64
	// Unanswered says that an earlier attempt of the same call may have run.
	Unanswered bool
	// More says that the script stopped at its bound: sweep at once.
	More bool
	// Entries is how many entries of the owner the name is still held by.
	Entries int
	// Then is called when what the release of a hold has done may be told, without
	// any lock; nil for nothing to tell.
	Then func(ctx context.Context)
}

// Released says what became of a claim.
type Released string

// The answers to a release.
const (
	// GivenBack: it was held and is not any more.
	GivenBack Released = "released"
	// LeftLine: it was waiting and is not any more.
	LeftLine Released = "cancelled"
	// HadExpired: its deadline had passed.
	HadExpired Released = "expired"
	// NotHeld: the server does not know it.
	NotHeld Released = "not_held"
	// ForceReleased: somebody with the right to had released it.
	ForceReleased Released = "force_released"
	// TakenOver: another node has resumed it.
	TakenOver Released = "taken"
)

// Round is what the server says to a Beat or a Restore.
type Round struct {
	// Status has one entry for each claim, in their order.
	Status       []Status
	NextDeadline NextDeadline
}

// waiting is how many of the claims wait.
func (r *Round) waiting() int {
	n := 0
	for i := range r.Status {
		if r.Status[i].Word.Waits() {
			n++
		}
	}
	return n
}

// Status is what the server says of one claim.
type Status struct {
	Word Word
	// Left is the time left, below 0 for a hold without end.
	Left time.Duration
	// Fence is the number of the grant, 0 while it waits.
	Fence int64
	// Resource is what it holds where the primitive has resources.
	Resource string
	// Capacity, Held and Waiting are the name's, of a claim that is too heavy.
	Capacity, Held, Waiting int
}

// Word says what a claim is for the server.
type Word string

// The words of a Status.
const (
	WordHeld     Word = "held"
	WordLimited  Word = "limited" // it holds, and keeps its lease: it has asked for a longer one than it may
	WordWanted   Word = "wanted"  // it holds, and somebody wants it back
	WordWaiting  Word = "waiting"
	WordAsked    Word = "asked" // it waits, stands first, and has asked for holds of others
	WordUnknown  Word = "unknown"
	WordTaken    Word = "taken"
	WordTooHeavy Word = "too_heavy"
	WordAbsent   Word = "absent"
	WordGone     Word = "gone"
	WordReleased Word = "released"
)

// Waits says whether the claim waits.
func (w Word) Waits() bool { return w == WordWaiting || w == WordAsked }
