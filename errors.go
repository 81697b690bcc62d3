package berth

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The errors of all primitives. Match them with errors.Is; the data behind
// them is in *AcquireError, *EndError, *OvertakenError and *ConfigError.
var (
	// ErrNotAcquired says that a claim did not get what it asked for. The
	// reason is in *AcquireError. When a context ended the wait, the error
	// also matches ctx.Err() and context.Cause(ctx).
	ErrNotAcquired = errors.New("berth: not acquired")

	// ErrBusy says that a claim was not acquired because others hold, or wait
	// for, what it asked for, or because a pool has nothing to give just then: the
	// reasons full, resting, empty, held, queued ahead, paused, timed out and attempts used
	// up. It never matches where the server was not reached (ErrUnavailable), the
	// caller cancelled or the node was closed. It comes with ErrNotAcquired.
	ErrBusy = errors.New("berth: busy")

	// ErrNotHeld says that the server does not know the hold, or no longer.
	ErrNotHeld = errors.New("berth: not held")

	// ErrLost says that a lease ended that was meant to be renewed: the
	// server could not be reached in time, or it had given the place away.
	// It matches ErrNotHeld.
	ErrLost error = &notHeldError{"berth: lease lost"}

	// ErrExpired says that a hold ended by its own limit: its MaxHold, or its
	// lease where it does not renew by itself. It matches ErrNotHeld.
	ErrExpired error = &notHeldError{"berth: hold expired"}

	// ErrReleased says that the hold is not this handle's any more: it was given
	// back by Release or Close, or by somebody with the right to force it, or left
	// to its token by Detach.
	ErrReleased = errors.New("berth: released")

	// ErrDeadlock says that a claim would wait for its own owner.
	ErrDeadlock = errors.New("berth: would wait for its own owner")

	// ErrTooManyEntries says that an owner holds a lock by as many entries as an
	// owner may have: 100.
	ErrTooManyEntries = errors.New("berth: the owner has 100 entries already")

	// ErrNotRunning says that a swarm does not run, so that its node has nothing to
	// say: it was not started, or is being stopped.
	ErrNotRunning = errors.New("berth: the swarm does not run")

	// ErrAbsent says that what a call is about is not there: a semaphore without a
	// stored capacity, because nobody has used it or it was forgotten; a resource
	// that is not in the pool, is leaving the pool or is damaged; or a drain that has
	// ended by itself.
	ErrAbsent = errors.New("berth: absent")

	// ErrOvertaken says that an operator's call came too late: another one has changed the
	// same thing since the call began, and decides. What that one has changed is in
	// *OvertakenError.
	ErrOvertaken = errors.New("berth: changed by another call meanwhile")

	// ErrDraining says that an operator has asked this process to drain: it finishes what
	// it holds, and gets nothing new. It comes with ErrNotAcquired.
	ErrDraining = errors.New("berth: the process drains")

	// ErrClosed says that the node is closed, or the pool, the job or the election.
	ErrClosed = errors.New("berth: closed")

	// ErrUnavailable says that the server did not answer a call, or did not run it:
	// it was not reached, was silent for CallTimeout, or refused for now (READONLY
	// of a replica, LOADING, CLUSTERDOWN, MISCONF, a busy script and the like; and WRONGPASS
	// or NOAUTH, where it has served the node before). A call that
	// was not answered may have run; every call of Berth can be repeated safely.
	// ErrUnavailable does not match what the server refuses for good (NOPERM,
	// WRONGTYPE, a full server), ErrIncompatible, or a hold that was lost. Where the
	// caller's context ended a call before the answer, the error matches ctx.Err()
	// too.
	ErrUnavailable = errors.New("berth: the server is unavailable")

	// ErrInvalidConfig says that a value was refused, and that nothing was changed. Most
	// values are refused before anything is sent. Only the server knows that a weight is
	// above the stored capacity, that CapacityStrict meets another capacity or Strict other
	// settings, that a call is above a limit of a pool, that a hold to resume is not detached, or
	// that it may evict keys. The field is in *ConfigError.
	ErrInvalidConfig = errors.New("berth: invalid configuration")

	// ErrIncompatible says that the server is too old, or that what is stored
	// under a name was written by a newer release of Berth. Nothing was
	// written.
	ErrIncompatible = errors.New("berth: incompatible")
)

// notHeldError is a sentinel of its own that matches ErrNotHeld too.
type notHeldError struct{ text string }

func (e *notHeldError) Error() string        { return e.text }
func (e *notHeldError) Is(target error) bool { return target == ErrNotHeld }

// Reason says why a claim was not acquired.
type Reason string

// The reasons of an *AcquireError.
const (
	// ReasonFull: a call that does not wait found too little free capacity, or no
	// free resource.
	ReasonFull Reason = "full"
	// ReasonResting: a call that does not wait found nothing held, and that all
	// resources of the pool rest; or that the resource that it asked for rests.
	ReasonResting Reason = "resting"
	// ReasonEmpty: a call that does not wait found a pool without resources.
	ReasonEmpty Reason = "empty"
	// ReasonHeld: a call that does not wait found the lock held, or the resource that it
	// asked for.
	ReasonHeld Reason = "held"
	// ReasonAbsent: the resource that the call asked for is not in the pool, or has left
	// it. The error matches ErrAbsent.
	ReasonAbsent Reason = "absent"
	// ReasonQueuedAhead: a call that does not wait found others waiting.
	ReasonQueuedAhead Reason = "queued ahead"
	// ReasonPaused: a call that does not wait, or a Swap, found the name paused. Pause
	// says for how long yet, and why.
	ReasonPaused Reason = "paused"
	// ReasonCancelled: the caller's context was cancelled.
	ReasonCancelled Reason = "cancelled"
	// ReasonTimedOut: MaxWait, or the deadline of the caller's context, passed.
	ReasonTimedOut Reason = "timed out"
	// ReasonAttempts: the attempts that the call allowed are used up.
	ReasonAttempts Reason = "attempts used up"
	// ReasonTooHeavy: the weight is above the stored capacity.
	ReasonTooHeavy Reason = "too heavy"
	// ReasonGone: the claim was removed by somebody with the right to.
	ReasonGone Reason = "gone"
	// ReasonCapacity: the stored capacity is another one and the semaphore
	// insists on its own.
	ReasonCapacity Reason = "capacity differs"
	// ReasonDiffers: the stored settings of the pool are others and the process insists on
	// its own. Cause is a *ConfigError that names the field.
	ReasonDiffers Reason = "settings differ"
	// ReasonLimited: the call asked for a longer Lease or MaxHold than the settings of the pool
	// allow. Cause is a *ConfigError that names the field and the limit.
	ReasonLimited Reason = "above a limit"
	// ReasonDeadlock: the claim would have waited for its own owner. The error
	// matches ErrDeadlock.
	ReasonDeadlock Reason = "deadlock"
	// ReasonTooManyEntries: the owner of the claim has as many entries of the lock as
	// an owner may have. The error matches ErrTooManyEntries.
	ReasonTooManyEntries Reason = "too many entries"
	// ReasonDraining: an operator has asked this process to drain. The error matches
	// ErrDraining.
	ReasonDraining Reason = "draining"
	// ReasonClosed: the node was closed during the wait, or the pool, the job or the election.
	ReasonClosed Reason = "closed"
	// ReasonFailed: the server could not be reached or refused, or a pool's resource
	// could not be opened; see Cause. Also where MaxWait, the deadline of the caller's
	// context or the attempts ended the wait, and the server never answered or its
	// last answer was older than the wait lease: Cause matches ErrUnavailable then.
	ReasonFailed Reason = "failed"
)

// AcquireError tells why a claim did not get what it asked for. It matches
// ErrNotAcquired, ErrBusy where others were the reason, and whatever its Cause
// matches.
type AcquireError struct {
	// Name is what was contended for.
	Name string
	// Claim is the id of the claim.
	Claim string
	// Reason says why.
	Reason Reason
	// Capacity is the stored capacity, of a pool the number of its resources; 0 where
	// it is not known.
	Capacity int
	// Held is how much of the capacity was held when the server answered a call that does not wait, of a pool
	// by how many claims; 0 for a wait that ended by its time.
	Held int
	// Waiting is how many claims waited then.
	Waiting int
	// Pause is the pause that was the reason, for ReasonPaused; for ReasonTimedOut and ReasonAttempts that of the
	// name, as it was read up to 1 s before the end of the wait. Else nil.
	Pause *Pause
	// Swept is how many expired entries that answer dropped.
	Swept int
	// Waited is how long the call took.
	Waited time.Duration
	// Holders are those who held it shortly after, and Waiters the first in
	// line then, where the call asked for details; else nil.
	Holders []Holder
	Waiters []Waiter
	// Cause is the error behind it: the context's, the server's, Open's, or nil.
	Cause error
}

// Error names the claim's name, the reason and the cause.
func (e *AcquireError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "berth: %q not acquired: %s", e.Name, e.Reason)
	switch e.Reason {
	case ReasonPaused:
		if e.Pause != nil {
			b.WriteString(e.Pause.lasts())
		}
	case ReasonHeld: // of a lock, which has no capacity
		fmt.Fprintf(&b, " (waiting %d)", e.Waiting)
	case ReasonFull, ReasonResting, ReasonEmpty, ReasonQueuedAhead, ReasonTooHeavy, ReasonCapacity:
		b.WriteString(" (")
		if e.Capacity > 0 {
			fmt.Fprintf(&b, "capacity %d, ", e.Capacity)
		}
		fmt.Fprintf(&b, "held %d, waiting %d)", e.Held, e.Waiting)
	case ReasonCancelled, ReasonTimedOut, ReasonAttempts, ReasonClosed:
		fmt.Fprintf(&b, " after %s", e.Waited.Round(time.Millisecond))
		if e.Pause != nil {
			b.WriteString("; paused" + e.Pause.lasts())
		}
	}
	if len(e.Holders) > 0 {
		h := e.Holders[0]
		fmt.Fprintf(&b, "; held by %s (%s) for %s", h.ID, visible(h.Label), h.Held.Round(time.Millisecond))
	}
	if len(e.Waiters) > 0 {
		w := e.Waiters[0]
		fmt.Fprintf(&b, "; first in line is %s (%s)", w.ID, visible(w.Label))
	}
	if e.Cause != nil { // joined errors stand on lines of their own
		cause := strings.ReplaceAll(e.Cause.Error(), "\n", "; ")
		b.WriteString(": " + strings.TrimPrefix(cause, "berth: "))
	}
	return b.String()
}

// visible writes a text of somebody else's so that it cannot move a cursor: as it is
// where all of it can be seen, else quoted.
func visible(text string) string {
	if quoted := strconv.QuoteToGraphic(text); quoted[1:len(quoted)-1] != text {
		return quoted
	}
	return text
}

// Is reports whether target is ErrNotAcquired, or ErrBusy where the reason is
// one of its.
func (e *AcquireError) Is(target error) bool {
	if target == ErrBusy {
		switch e.Reason {
		case ReasonFull, ReasonResting, ReasonEmpty, ReasonHeld, ReasonQueuedAhead, ReasonPaused, ReasonTimedOut, ReasonAttempts:
			return true
		}
	}
	return target == ErrNotAcquired
}

// Unwrap returns the cause.
func (e *AcquireError) Unwrap() error { return e.Cause }

// EndError tells how a hold ended. It is what Err, the cause of its context, and the
// calls of its handle say from then on. It matches ErrLost, ErrExpired, ErrReleased or
// ErrClosed, whichever its Cause is, and what that one matches.
type EndError struct {
	// Name is what was held.
	Name string
	// Claim is the id of the claim.
	Claim string
	// Fence is the number of the grant.
	Fence int64
	// Held is for how long this process held it.
	Held time.Duration
	// Cause is the sentinel, or says more and matches it: ErrIncompatible too where a newer
	// release has begun to write the name, so that no renewal was taken any more.
	Cause error
}

// Error names the name, how it ended, after how long, and the claim.
func (e *EndError) Error() string {
	return fmt.Sprintf("berth: %q: %s after %s (claim %s, fence %d)", e.Name,
		strings.TrimPrefix(e.Cause.Error(), "berth: "), e.Held.Round(time.Millisecond), e.Claim, e.Fence)
}

// Unwrap returns the cause.
func (e *EndError) Unwrap() error { return e.Cause }

// OvertakenError tells what another call has changed since this one began. These calls return it, and
// overtake each other: Resize, Set, Rest, Pause, Unpause, PauseAll, UnpauseAll, Drain, StopDrain, Remove,
// Replace, Clear and Refresh. An Add overtakes too, and never returns it. This call, or its step where it goes in steps, has
// changed nothing; or the server had run it, its answer was lost, and the other call came
// after it. Look at what is there now, and call again if it is still wanted. It matches ErrOvertaken.
type OvertakenError struct {
	// Name is the name of the semaphore, lock or pool, "" of PauseAll, UnpauseAll, Drain and StopDrain.
	Name string
	// Resource is the resource of the pool that was changed, "" for none in particular.
	Resource string
	// Changed says what the other call did, for people: "capacity 5, before 3", "rest 30s: banned",
	// "Cooldown 30s", "paused: migration", "unpaused", "added" also of what was kept, "removed", "replaced", "drain", "stop"; or "forgotten": the
	// server has lost the pool, or the drain.
	Changed string
}

// Error names the name, the resource, and what was changed.
func (e *OvertakenError) Error() string {
	what := ""
	if e.Name != "" {
		what = fmt.Sprintf(" %q:", e.Name)
	}
	if e.Resource != "" {
		what += fmt.Sprintf(" resource %q", e.Resource)
	}
	return fmt.Sprintf("berth:%s changed by another call meanwhile: %s", what, visible(e.Changed))
}

// Is reports whether target is ErrOvertaken.
func (e *OvertakenError) Is(target error) bool { return target == ErrOvertaken }

// ConfigError says which value was refused. It matches ErrInvalidConfig.
type ConfigError struct {
	// Field is the name of the field or argument: "Lease", "name".
	Field string
	// Problem says what is wrong with it, and what would be right.
	Problem string
	// Cause is the error behind it, such as that of another library; nil for none.
	Cause error
}

// Error names the field and the problem.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("berth: invalid %s: %s", e.Field, e.Problem)
}

// Is reports whether target is ErrInvalidConfig.
func (e *ConfigError) Is(target error) bool { return target == ErrInvalidConfig }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Cause }

// Invalid returns a *ConfigError for the field. Its cause is the error of the verb %w, if there is one.
func Invalid(field, format string, args ...any) error {
	problem := fmt.Errorf(format, args...)
	return &ConfigError{Field: field, Problem: problem.Error(), Cause: errors.Unwrap(problem)}
}
