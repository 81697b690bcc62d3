package qlock

import (
	"math/rand/v2"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
)

// Access says where in the line a claim stands. The zero value stands for
// Config.Access in LockOptions, and for Queued in Config.
type Access int

// The ways to stand in line. They may be mixed on one name: the claims of one
// priority stand in one line.
const (
	// Queued: first come, first served. A Random claim may draw a place ahead
	// of it.
	Queued Access = iota + 1
	// Random: a rank drawn once, evenly among the Queued and Random ones of its
	// priority, before the first and behind the last included.
	Random
	// LIFO: last come, first served, behind the Queued and Random ones of its
	// priority, for as long as there are any.
	LIFO
)

// String is the word that the scripts read: queued, random or lifo.
func (a Access) String() string {
	switch a {
	case Queued:
		return "queued"
	case Random:
		return "random"
	case LIFO:
		return "lifo"
	}
	return "unknown"
}

func (a Access) valid() bool { return a >= Queued && a <= LIFO }

// Conflict says what happens when the owner of a claim holds the lock already.
// Owners are given by berth.WithOwner, and by the context of Do, Within or Context.
type Conflict int

// The conflict strategies.
const (
	// FailDeadlock: the call returns berth.ErrDeadlock at once.
	FailDeadlock Conflict = iota
	// Wait: the claim stands in line behind its owner's own hold. Where neither
	// that hold nor the wait has an end, it is refused with berth.ErrDeadlock.
	Wait
	// WorkThrough: the claim is granted at once, and ends with the outermost
	// entry at the latest.
	WorkThrough
	// ExtendAndWorkThrough: the same, and the owner's deadline moves further off
	// by the claim's lease; what is unused is given back when the claim is
	// released.
	ExtendAndWorkThrough
)

// String is the word that the scripts read: fail, wait, work or extend.
func (s Conflict) String() string {
	switch s {
	case FailDeadlock:
		return "fail"
	case Wait:
		return "wait"
	case WorkThrough:
		return "work"
	case ExtendAndWorkThrough:
		return "extend"
	}
	return "unknown"
}

// LockOptions are the options of one claim. A nil pointer means all defaults.
type LockOptions struct {
	// Priority moves the claim ahead of lower ones in line: -128 to 127.
	// Default 0.
	Priority int
	// Lease is how long the lock is held without being renewed: whole
	// milliseconds, at least 20 ms, or berth.Forever. What is longer than
	// Config.Lease begins with the first heartbeat after the grant, a third of
	// Config.Lease later at the most; with NoRenew or MaxHold, before Lock
	// returns. For an entry of an owner that holds the lock already it counts
	// only with ExtendAndWorkThrough, as what is added. Default Config.Lease.
	Lease time.Duration
	// NoRenew leaves the renewing to the caller: the hold ends with its lease
	// unless Renew is called. Default false.
	NoRenew bool
	// MaxHold bounds how long the lock may be held, renewed or not: whole
	// milliseconds. Default 0, no bound.
	MaxHold time.Duration
	// MaxWait bounds the wait, beside ctx. Default 0, no bound.
	MaxWait time.Duration
	// Meta is stored with the claim and shown in listings: up to 16 KiB.
	// Default none.
	Meta map[string]string
	// Attrs goes to the observer with every event of the claim, and nowhere
	// else. Default none.
	Attrs map[string]any
	// Access is how the claim stands in line. Default Config.Access.
	Access Access
	// Conflict is what happens if the owner holds the lock already. Default
	// FailDeadlock.
	Conflict Conflict
	// QueueTTL sends the claim to the end of the line once each such period of
	// waiting: at least 20 ms. Not with LIFO, whose end is where it is. Default
	// 0, never.
	QueueTTL time.Duration
	// MaxAttempts bounds the wait to so many attempts, RetryDelay apart, the
	// first at once; nothing polls. Default 0, no bound.
	MaxAttempts int
	// RetryDelay is the pause between two of MaxAttempts. Default 200 ms.
	RetryDelay time.Duration
	// RetryJitter is drawn from 0 up to it and added to each RetryDelay; below 0
	// for none. Default 25 ms.
	RetryJitter time.Duration
	// DetailedErrors adds who holds, and who waits, to an *AcquireError for
	// which others are the reason: two more calls. It can be turned on for a
	// call, not off. Default Config.DetailedErrors.
	DetailedErrors bool
}

func (o LockOptions) withDefaults(cfg *Config) LockOptions {
	if o.Lease == 0 {
		o.Lease = cfg.Lease
	}
	if o.Access == 0 {
		o.Access = cfg.Access
	}
	if o.RetryDelay == 0 {
		o.RetryDelay = 200 * time.Millisecond
	}
	if o.RetryJitter == 0 {
		o.RetryJitter = 25 * time.Millisecond
	}
	o.DetailedErrors = o.DetailedErrors || cfg.DetailedErrors
	return o
}

// validate returns a *berth.ConfigError for the first value that cannot be.
func (o *LockOptions) validate() error {
	if err := settings.Priority("Priority", o.Priority); err != nil {
		return err
	}
	if err := settings.Lease("Lease", o.Lease); err != nil {
		return err
	}
	if err := settings.MaxHold("MaxHold", o.MaxHold); err != nil {
		return err
	}
	if o.MaxWait < 0 {
		return berth.Invalid("MaxWait", "%s is negative", o.MaxWait)
	}
	if !o.Access.valid() {
		return berth.Invalid("Access", "%d is no way to stand in line", int(o.Access))
	}
	if o.Conflict < FailDeadlock || o.Conflict > ExtendAndWorkThrough {
		return berth.Invalid("Conflict", "%d is no strategy", int(o.Conflict))
	}
	if o.Conflict == ExtendAndWorkThrough && o.Lease == berth.Forever {
		return berth.Invalid("Lease", "ExtendAndWorkThrough adds it, so it must end")
	}
	if err := o.validateWait(); err != nil {
		return err
	}
	return settings.Meta("Meta", o.Meta)
}

// maxAttempts keeps drawing the jitter of all short.
const maxAttempts = 1_000_000

func (o *LockOptions) validateWait() error {
	switch {
	case o.QueueTTL != 0 && o.QueueTTL < settings.MinLease:
		return berth.Invalid("QueueTTL", "%s is below %s", o.QueueTTL, settings.MinLease)
	case o.QueueTTL != 0 && o.Access == LIFO:
		return berth.Invalid("QueueTTL", "a LIFO claim has no end of the line to go to")
	case o.MaxAttempts < 0:
		return berth.Invalid("MaxAttempts", "%d is negative", o.MaxAttempts)
	case o.MaxAttempts > maxAttempts:
		return berth.Invalid("MaxAttempts", "%d is above %d", o.MaxAttempts, maxAttempts)
	case o.MaxAttempts > 0 && max(o.RetryDelay, o.RetryJitter) > berth.Forever/2/time.Duration(o.MaxAttempts):
		return berth.Invalid("RetryDelay", "%d times %s is longer than can be waited", o.MaxAttempts, max(o.RetryDelay, o.RetryJitter))
	case o.RetryDelay < 0:
		return berth.Invalid("RetryDelay", "%s is negative", o.RetryDelay)
	}
	return nil
}

// validateTry refuses what only a wait has.
func (o *LockOptions) validateTry() error {
	switch {
	case o.MaxWait != 0:
		return berth.Invalid("MaxWait", "a call that does not wait has no use for it")
	case o.MaxAttempts != 0:
		return berth.Invalid("MaxAttempts", "a call that does not wait has no use for it")
	case o.QueueTTL != 0:
		return berth.Invalid("QueueTTL", "a call that does not wait has no use for it")
	}
	return nil
}

// attempts is how long the pauses between MaxAttempts take, 0 for no bound and for
// a single one.
func (o *LockOptions) attempts() (bound time.Duration) {
	for range o.MaxAttempts - 1 {
		bound += o.RetryDelay
		if o.RetryJitter > 0 {
			bound += rand.N(o.RetryJitter)
		}
	}
	return bound
}

// extends is by how much the claim lengthens what its owner holds, 0 for one that
// does not.
func (o *LockOptions) extends() time.Duration {
	if o.Conflict != ExtendAndWorkThrough {
		return 0
	}
	if o.MaxHold > 0 {
		return min(o.Lease, o.MaxHold)
	}
	return o.Lease
}
