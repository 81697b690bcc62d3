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
	// ErrNotAcquired says that a claim was not granted. The reason is in *AcquireError. When a
	// context ended the wait, the error also matches ctx.Err() and context.Cause(ctx).
	ErrNotAcquired = errors.New("berth: not acquired")

	// ErrBusy says that a claim was not granted because others hold the name or wait for it, or
	// because a pool has no free resource now. The reasons are full, resting, empty, held, queued
	// ahead, paused, timed out and attempts used up. ErrBusy comes with ErrNotAcquired. ErrBusy
	// never matches if the server was not reached (ErrUnavailable), the caller cancelled, or the
	// node was closed.
	ErrBusy = errors.New("berth: busy")

	// ErrNotHeld says that the server does not know the hold, or no longer knows it.
	ErrNotHeld = errors.New("berth: not held")

	// ErrLost says that a lease ended that should have been renewed: the server could not be
	// reached in time, or the server had given the place away. ErrLost matches ErrNotHeld.
	ErrLost error = &notHeldError{"berth: lease lost"}

	// ErrExpired says that a hold ended at its own limit: its MaxHold, or its lease under NoRenew.
	// ErrExpired matches ErrNotHeld.
	ErrExpired error = &notHeldError{"berth: hold expired"}

	// ErrReleased says that the handle no longer has its hold: Release, Close or an operator ended
	// the hold, or Detach left the hold to its token.
	ErrReleased = errors.New("berth: released")

	// ErrDeadlock says that a claim would have waited for a hold of its own owner.
	ErrDeadlock = errors.New("berth: would wait for its own owner")

	// ErrTooManyEntries says that an owner has 100 entries of a lock, the most allowed.
	ErrTooManyEntries = errors.New("berth: the owner has 100 entries already")

	// ErrNotRunning says that a swarm does not run: it was not started, or it is being stopped.
	ErrNotRunning = errors.New("berth: the swarm does not run")

	// ErrAbsent says that the target of a call does not exist. A semaphore has no stored capacity,
	// because nobody has used it or the server forgot it; a resource is not in the pool, is
	// leaving it or is damaged; or a drain has ended by itself.
	ErrAbsent = errors.New("berth: absent")

	// ErrOvertaken says that another operator's call has changed the same thing since this call
	// began. The other call's change stands; *OvertakenError describes it.
	ErrOvertaken = errors.New("berth: changed by another call meanwhile")

	// ErrDraining says that an operator has asked this process to drain: the process finishes its
	// holds and gets nothing new. ErrDraining comes with ErrNotAcquired.
	ErrDraining = errors.New("berth: the process drains")

	// ErrClosed says that the node, the pool, the job or the election is closed.
	ErrClosed = errors.New("berth: closed")

	// ErrUnavailable says that the server did not answer a call or did not run it. The server was
	// not reached, was silent for CallTimeout, or refused for now: READONLY of a replica, LOADING,
	// CLUSTERDOWN, MISCONF, a busy script and the like, and WRONGPASS or NOAUTH if the server has
	// served the node before.
	//
	// A call without an answer may have run; every call of Berth can be repeated safely.
	// ErrUnavailable does not match a permanent refusal (NOPERM, WRONGTYPE, a full server),
	// ErrIncompatible, or a lost hold. If the caller's context ended a call before the answer, the
	// error matches ctx.Err() too.
	ErrUnavailable = errors.New("berth: the server is unavailable")

	// ErrInvalidConfig says that a value was refused and that nothing was changed. The field is in
	// *ConfigError. Most values are refused before anything is sent. Only the server can refuse a
	// weight above the stored capacity, a capacity (CapacityStrict) or settings (Strict) that
	// differ from the stored ones, a call above a pool's limit, and a Resume of an attached hold.
	// Only the server can tell that it evicts keys.
	ErrInvalidConfig = errors.New("berth: invalid configuration")

	// ErrIncompatible says that the server is too old, or that a newer release of Berth wrote the
	// data of a name. Nothing was written.
	ErrIncompatible = errors.New("berth: incompatible")
)

// notHeldError is a sentinel that also matches ErrNotHeld.
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
	// ReasonResting: a call that does not wait found that all resources of the pool rest and none
	// is held, or that the requested resource rests.
	ReasonResting Reason = "resting"
	// ReasonEmpty: a call that does not wait found a pool without resources.
	ReasonEmpty Reason = "empty"
	// ReasonHeld: a call that does not wait found the lock, or the requested resource, held.
	ReasonHeld Reason = "held"
	// ReasonAbsent: the requested resource is not in the pool, or has left the pool. The error
	// matches ErrAbsent.
	ReasonAbsent Reason = "absent"
	// ReasonQueuedAhead: a call that does not wait found others waiting.
	ReasonQueuedAhead Reason = "queued ahead"
	// ReasonPaused: a call that does not wait, or a Swap, found the name paused.
	// AcquireError.Pause has the remaining time and the reason.
	ReasonPaused Reason = "paused"
	// ReasonCancelled: the caller's context was cancelled.
	ReasonCancelled Reason = "cancelled"
	// ReasonTimedOut: MaxWait, or the deadline of the caller's context, passed.
	ReasonTimedOut Reason = "timed out"
	// ReasonAttempts: the attempts that the call allowed were used up.
	ReasonAttempts Reason = "attempts used up"
	// ReasonTooHeavy: the weight is above the stored capacity.
	ReasonTooHeavy Reason = "too heavy"
	// ReasonGone: an operator removed the claim.
	ReasonGone Reason = "gone"
	// ReasonCapacity: the stored capacity differs from that of a semaphore with CapacityStrict.
	ReasonCapacity Reason = "capacity differs"
	// ReasonDiffers: the stored settings of the pool differ from those of a process with
	// Config.Strict. Cause is a *ConfigError that names the field.
	ReasonDiffers Reason = "settings differ"
	// ReasonLimited: the call asked for a longer Lease or MaxHold than the pool's settings allow.
	// Cause is a *ConfigError that names the field and the limit.
	ReasonLimited Reason = "above a limit"
	// ReasonDeadlock: the claim would have waited for a hold of its own owner. The error matches
	// ErrDeadlock.
	ReasonDeadlock Reason = "deadlock"
	// ReasonTooManyEntries: the owner of the claim has 100 entries of the lock, the most allowed.
	// The error matches ErrTooManyEntries.
	ReasonTooManyEntries Reason = "too many entries"
	// ReasonDraining: an operator has asked this process to drain. The error matches
	// ErrDraining.
	ReasonDraining Reason = "draining"
	// ReasonClosed: the node, the pool, the job or the election was closed during the wait.
	ReasonClosed Reason = "closed"
	// ReasonFailed: the server could not be reached or refused, or a pool's resource could not be
	// opened; Cause has the error. ReasonFailed also stands for a wait that MaxWait, a deadline or
	// the attempts ended while the server had never answered, or not within the wait lease. Cause
	// matches ErrUnavailable then.
	ReasonFailed Reason = "failed"
)

// AcquireError says why a claim was not granted. AcquireError matches ErrNotAcquired, ErrBusy
// if others were the reason, and all that its Cause matches.
type AcquireError struct {
	// Name is the name that the claim asked for.
	Name string
	// Claim is the id of the claim.
	Claim string
	// Reason says why.
	Reason Reason
	// Capacity is the stored capacity, or the number of a pool's resources; 0 if it is not known.
	Capacity int
	// Held is how much of the capacity was held when the server answered a call that does not wait; for a
	// pool, how many claims held. 0 for a wait that timed out.
	Held int
	// Waiting is how many claims waited when Held was read.
	Waiting int
	// Pause is the pause of the name: the reason for ReasonPaused; for ReasonTimedOut and ReasonAttempts the
	// pause read up to 1 s before the end of the wait. Else nil.
	Pause *Pause
	// Swept is how many expired entries the server dropped in the answering script.
	Swept int
	// Waited is how long the call took.
	Waited time.Duration
	// Holders are the claims that held the name shortly after the answer, and Waiters the first in
	// line then, if the call asked for details; else nil.
	Holders []Holder
	Waiters []Waiter
	// Cause is the underlying error: the context's, the server's, Open's, or nil.
	Cause error
}

// Error returns a text with the name, the reason and the cause.
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

// visible makes a foreign text safe for a terminal: it returns printable text unchanged and
// quotes any other.
func visible(text string) string {
	if quoted := strconv.QuoteToGraphic(text); quoted[1:len(quoted)-1] != text {
		return quoted
	}
	return text
}

// Is reports whether target is ErrNotAcquired, or ErrBusy if the reason is one of those of
// ErrBusy.
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

// EndError says how a hold ended. After the end, the handle's Err, its other calls and the
// cause of its context return an EndError. EndError matches its Cause, which is or matches
// ErrLost, ErrExpired, ErrReleased or ErrClosed.
type EndError struct {
	// Name is the name that was held.
	Name string
	// Claim is the id of the claim.
	Claim string
	// Fence is the number of the grant.
	Fence int64
	// Held is how long this process held the name.
	Held time.Duration
	// Cause is the sentinel, or an error that matches it. Cause also matches ErrIncompatible if
	// renewals were refused because a newer release has written the name.
	Cause error
}

// Error returns a text with the name, how and after how long the hold ended, and the claim.
func (e *EndError) Error() string {
	return fmt.Sprintf("berth: %q: %s after %s (claim %s, fence %d)", e.Name,
		strings.TrimPrefix(e.Cause.Error(), "berth: "), e.Held.Round(time.Millisecond), e.Claim, e.Fence)
}

// Unwrap returns the cause.
func (e *EndError) Unwrap() error { return e.Cause }

// OvertakenError says what another call has changed since this one began. It matches ErrOvertaken. These calls overtake
// each other and return it: Resize, Set, Rest, Pause, Unpause, PauseAll, UnpauseAll, Drain, StopDrain, Remove, Replace,
// Clear and Refresh. An Add overtakes others and never returns OvertakenError.
//
// The overtaken call, or the overtaken step of a call that runs in steps, has changed nothing; or the server ran it, its
// answer was lost, and the other call came afterwards. Read the present state, and repeat the call if its change is still
// wanted.
type OvertakenError struct {
	// Name is the name of the semaphore, lock or pool; "" for PauseAll, UnpauseAll, Drain and
	// StopDrain.
	Name string
	// Resource is the pool's resource that was changed, "" for no single resource.
	Resource string
	// Changed describes the other call's change to people: "capacity 5, before 3", "rest 30s: banned", "Cooldown 30s",
	// "paused: migration", "unpaused", "added" (also for a resource that was kept), "removed", "replaced", "drain" or "stop".
	// "forgotten" means that the server has lost the pool or the drain.
	Changed string
}

// Error returns a text with the name, the resource and the change.
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

// ConfigError says which value was refused and why. ConfigError matches ErrInvalidConfig.
type ConfigError struct {
	// Field is the name of the field or argument: "Lease", "name".
	Field string
	// Problem says what is wrong with the value, and what would be right.
	Problem string
	// Cause is the underlying error, such as one of another library; nil for none.
	Cause error
}

// Error returns a text with the field and the problem.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("berth: invalid %s: %s", e.Field, e.Problem)
}

// Is reports whether target is ErrInvalidConfig.
func (e *ConfigError) Is(target error) bool { return target == ErrInvalidConfig }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Cause }

// Invalid returns a *ConfigError for the field. If the format has a verb %w, the error given for it is
// the Cause.
func Invalid(field, format string, args ...any) error {
	problem := fmt.Errorf(format, args...)
	return &ConfigError{Field: field, Problem: problem.Error(), Cause: errors.Unwrap(problem)}
}
