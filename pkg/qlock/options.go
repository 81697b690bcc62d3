package qlock

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
)

// Access says where in the line a claim stands. The zero value says nothing: see
// LockOptions.
type Access int

// The ways to stand in line. They may be mixed on one name: the claims of one
// priority stand in one line.
const (
	// Queued: first come, first served. A Random claim may draw a place ahead
	// of it.
	Queued Access = iota + 1
	// Random: the claim draws one place, each as likely, among the Queued and Random
	// claims of its priority, from before the first to behind the last.
	Random
	// LIFO: last come, first served, behind the Queued and Random ones of its
	// priority, for as long as there are any.
	LIFO
)

// String is the word that the scripts read: queued, random or lifo.
func (a Access) String() string {
	switch a {
	case 0: // it says nothing
		return ""
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
// The zero value says nothing: see LockOptions.
type Conflict int

// The conflict strategies.
const (
	// FailDeadlock: the call returns berth.ErrDeadlock at once. The error says which claim holds for the owner.
	FailDeadlock Conflict = iota + 1
	// Wait: the claim stands in line behind its owner's own hold. Where neither
	// that hold nor the wait has an end, it is refused with berth.ErrDeadlock.
	Wait
	// WorkThrough: the claim is granted at once, and ends with the outermost
	// entry at the latest. Goroutines that share an owner, as by the context of one Do, are then inside together:
	// berth.WithOwner(ctx, "") makes each its own owner.
	WorkThrough
	// ExtendAndWorkThrough: the same, and the owner's deadline moves further off
	// by the claim's lease; what is unused is given back when the claim is
	// released.
	ExtendAndWorkThrough
)

// String is the word that the scripts read: fail, wait, work or extend.
func (s Conflict) String() string {
	switch s {
	case 0: // it says nothing
		return ""
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

func (s Conflict) valid() bool { return s >= FailDeadlock && s <= ExtendAndWorkThrough }

// LockOptions are the options of one claim. A zero field is taken from Config.Defaults,
// then from the default named here. A nil pointer leaves all fields zero.
type LockOptions struct {
	// Priority moves the claim ahead of lower ones in line: -128 to 127.
	// Default 0.
	Priority int
	// Lease is how long the lock is held without being renewed: whole
	// milliseconds, at least 20 ms, or berth.Forever. A lease that is longer than
	// the wait lease begins with the first heartbeat after the grant, a third of
	// the wait lease later at the most; with NoRenew or MaxHold, before Lock
	// returns. For an entry of an owner that holds the lock already the lease counts
	// only with ExtendAndWorkThrough, as what is added. Default Config.Lease.
	Lease time.Duration
	// NoRenew leaves the renewing to the caller: the hold ends with its lease
	// unless Renew is called. Default false.
	NoRenew bool
	// MaxHold bounds how long the lock may be held, renewed or not: whole
	// milliseconds, at least 20 ms, or berth.Forever for no bound. Default no bound.
	MaxHold time.Duration
	// MaxWait bounds the wait, beside ctx; berth.Forever is no bound. Calls that do
	// not wait refuse it. Default no bound.
	MaxWait time.Duration
	// WantAfter is how long the claim waits until it asks for what it lacks, once it stands first: the
	// Wanted of so many holders is closed. After each further such time it asks again. At
	// least 20 ms, or berth.Forever for never. Calls that do not
	// wait refuse it. Default never.
	WantAfter time.Duration
	// Meta is stored with the claim and shown in listings: up to 16 KiB. It takes the
	// place of the defaults' Meta; an empty map is none. Default none.
	Meta map[string]string
	// Attrs goes to the Logger and the Observer with every event of the claim, and not
	// to the server. It takes the place of the defaults' Attrs. Default none.
	Attrs map[string]any
	// Access is how the claim stands in line. Default Queued.
	Access Access
	// Conflict is what happens if the owner holds the lock already. Default
	// FailDeadlock.
	Conflict Conflict
	// RequeueEvery sends the claim to the end of the line once each such period of
	// waiting: at least 20 ms, or berth.Forever for never. Not with LIFO, whose end of
	// the line is where the claim stands. Calls that do not wait refuse it. Default never.
	RequeueEvery time.Duration
	// Attempts bounds the wait to a number of attempts. Calls that do not wait refuse
	// it. Default no bound.
	Attempts Attempts
	// DetailedErrors adds who holds, and who waits, to an *AcquireError for
	// which others are the reason: two more calls. Default false.
	DetailedErrors bool
	// NoDefaults has the call go by its own fields and the defaults named here alone,
	// not by Config.Defaults. Default false.
	NoDefaults bool
}

// Attempts bounds a wait to the time that so many attempts would take. Nothing polls:
// the claim stands in line for all of that time. A field that is zero says nothing, as
// in LockOptions.
type Attempts struct {
	// Max is how many attempts there are, up to 1,000,000; the first one is at once, so
	// that 1 never waits. Below 0 there is no bound. Default no bound.
	Max int
	// Delay is the pause between two attempts. Default 200 ms.
	Delay time.Duration
	// Jitter is drawn from 0 up to it and added to each Delay; below 0 for none.
	// Default 25 ms.
	Jitter time.Duration
}

// or returns the options with the fields of d where o says nothing.
func (o LockOptions) or(d LockOptions) LockOptions {
	o.Priority = cmp.Or(o.Priority, d.Priority)
	o.Lease = cmp.Or(o.Lease, d.Lease)
	o.NoRenew = o.NoRenew || d.NoRenew
	o.MaxHold = cmp.Or(o.MaxHold, d.MaxHold)
	o.MaxWait = cmp.Or(o.MaxWait, d.MaxWait)
	o.WantAfter = cmp.Or(o.WantAfter, d.WantAfter)
	if o.Meta == nil {
		o.Meta = d.Meta
	}
	if o.Attrs == nil {
		o.Attrs = d.Attrs
	}
	o.Access = cmp.Or(o.Access, d.Access)
	o.Conflict = cmp.Or(o.Conflict, d.Conflict)
	o.RequeueEvery = cmp.Or(o.RequeueEvery, d.RequeueEvery)
	o.Attempts.Max = cmp.Or(o.Attempts.Max, d.Attempts.Max)
	o.Attempts.Delay = cmp.Or(o.Attempts.Delay, d.Attempts.Delay)
	o.Attempts.Jitter = cmp.Or(o.Attempts.Jitter, d.Attempts.Jitter)
	o.DetailedErrors = o.DetailedErrors || d.DetailedErrors
	return o
}

// bounded returns the options with 0 for what they say has no bound.
func (o LockOptions) bounded() LockOptions {
	for _, d := range [...]*time.Duration{&o.MaxHold, &o.MaxWait, &o.RequeueEvery, &o.WantAfter} {
		if *d == berth.Forever {
			*d = 0
		}
	}
	o.Attempts.Max = max(o.Attempts.Max, 0)
	return o
}

// builtin are the options of a call that goes by none: the last of the defaults.
func (l *Locks) builtin() LockOptions {
	return LockOptions{
		Lease: l.lease, Access: Queued, Conflict: FailDeadlock,
		Attempts: Attempts{Delay: 200 * time.Millisecond, Jitter: 25 * time.Millisecond},
	}
}

// complement returns Config.Defaults, complete, or a *berth.ConfigError where no call could go
// by them.
func (l *Locks) complement(o LockOptions) (LockOptions, error) {
	if o.NoDefaults {
		return o, berth.Invalid("Defaults.NoDefaults", "it is for a call")
	}
	o = o.or(l.builtin()).bounded()
	o.Meta, o.Attrs = maps.Clone(o.Meta), maps.Clone(o.Attrs) // they are read by every call from now on
	return o, settings.Within("Defaults", o.validate())
}

// options are those of a call, complete and valid.
func (l *Locks) options(opts *LockOptions, wait bool) (LockOptions, error) {
	o := l.defaults
	if opts != nil && opts.NoDefaults {
		o = l.builtin()
	}
	if !wait {
		o.MaxWait, o.RequeueEvery, o.WantAfter, o.Attempts.Max = 0, 0, 0, 0
	}
	if opts == nil {
		return o, nil
	}
	o = opts.or(o).bounded()
	if own := opts.Attempts; o.Attempts.Max == 0 && (own.Delay != 0 || own.Jitter != 0) {
		return o, berth.Invalid("Attempts.Delay", "it stands between attempts, and Max is no bound")
	}
	if err := o.validate(); err != nil || wait {
		return o, err
	}
	return o, opts.validateTry()
}

// validate returns a *berth.ConfigError for the first value that cannot be.
func (o *LockOptions) validate() error {
	c := settings.Claim{Priority: o.Priority, Lease: o.Lease, MaxHold: o.MaxHold, MaxWait: o.MaxWait, WantAfter: o.WantAfter, Meta: o.Meta}
	if err := c.Validate(); err != nil {
		return err
	}
	if !o.Access.valid() {
		return berth.Invalid("Access", "%d is no way to stand in line", int(o.Access))
	}
	if !o.Conflict.valid() {
		return berth.Invalid("Conflict", "%d is no strategy", int(o.Conflict))
	}
	if o.Conflict == ExtendAndWorkThrough && o.Lease == berth.Forever {
		return berth.Invalid("Lease", "ExtendAndWorkThrough adds it, so it must end")
	}
	return o.validateWait()
}

// maxAttempts keeps drawing the jitter of all short.
const maxAttempts = 1_000_000

func (o *LockOptions) validateWait() error {
	a := o.Attempts
	switch {
	case o.RequeueEvery != 0 && o.RequeueEvery < settings.MinLease:
		return berth.Invalid("RequeueEvery", "%s is below %s", o.RequeueEvery, settings.MinLease)
	case o.RequeueEvery != 0 && o.Access == LIFO:
		return berth.Invalid("RequeueEvery", "a LIFO claim has no end of the line to go to")
	case a.Max > maxAttempts:
		return berth.Invalid("Attempts.Max", "%d is above %d", a.Max, maxAttempts)
	case a.Max > 0 && max(a.Delay, a.Jitter) > berth.Forever/2/time.Duration(a.Max):
		return berth.Invalid("Attempts.Delay", "%d times %s is longer than can be waited", a.Max, max(a.Delay, a.Jitter))
	case a.Delay < 0:
		return berth.Invalid("Attempts.Delay", "%s is negative", a.Delay)
	}
	return nil
}

// validateTry refuses what only a wait has.
func (o *LockOptions) validateTry() error {
	const problem = "a call that does not wait has no use for it"
	switch {
	case o.MaxWait != 0:
		return berth.Invalid("MaxWait", problem)
	case o.Attempts.Max != 0:
		return berth.Invalid("Attempts.Max", problem)
	case o.RequeueEvery != 0:
		return berth.Invalid("RequeueEvery", problem)
	case o.WantAfter != 0:
		return berth.Invalid("WantAfter", problem)
	}
	return nil
}

// bound is how long the pauses between all attempts take, 0 for no bound and for a
// single attempt.
func (a Attempts) bound() (bound time.Duration) {
	for range a.Max - 1 {
		bound += a.Delay
		if a.Jitter > 0 {
			bound += rand.N(a.Jitter)
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
