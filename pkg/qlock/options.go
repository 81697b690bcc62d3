package qlock

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
)

// Access says where in the line a claim stands. The zero value means unset; see LockOptions.
type Access int

// The ways to stand in line. One name may have claims of all ways, which stand in one line per
// priority.
const (
	// Queued: first come, first served. A Random claim may draw a place ahead of a Queued one.
	Queued Access = iota + 1
	// Random: the claim draws one place, with equal chances, among the Queued and Random claims of
	// its priority, from before the first to behind the last.
	Random
	// LIFO: last come, first served, but behind all Queued and Random claims of the same priority.
	LIFO
)

// String returns the word that the scripts read: queued, random or lifo.
func (a Access) String() string {
	switch a {
	case 0: // unset
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

// Conflict says what happens to a claim whose owner already holds the lock. The owner comes
// from berth.WithOwner, or from the context of Do, Within or Context. The zero value means
// unset; see LockOptions.
type Conflict int

// The conflict strategies.
const (
	// FailDeadlock: the call returns berth.ErrDeadlock at once. The error names the owner's holding claim.
	FailDeadlock Conflict = iota + 1
	// Wait: the claim waits in line for the end of its owner's own hold. If neither that hold nor
	// the wait has an end, the claim is refused with berth.ErrDeadlock.
	Wait
	// WorkThrough: the claim is granted at once, and ends with the outermost entry at the latest. Goroutines that
	// share an owner, such as those with the context of one Do, are then inside together; berth.WithOwner(ctx,
	// "") makes each its own owner.
	WorkThrough
	// ExtendAndWorkThrough: like WorkThrough, and the claim's lease is added to the owner's
	// deadline. The release of the claim gives unused time back.
	ExtendAndWorkThrough
)

// String returns the word that the scripts read: fail, wait, work or extend.
func (s Conflict) String() string {
	switch s {
	case 0: // unset
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

// LockOptions are the options of one claim. A zero field takes its value from Config.Defaults,
// then from the default named here. A nil pointer means that all fields are zero.
type LockOptions struct {
	// Priority puts the claim ahead of all lower priorities in line: -128 to 127. Default 0.
	Priority int
	// Lease is how long the lock is held without a renewal: whole milliseconds, at least 20 ms, or
	// berth.Forever. A Lease longer than the wait lease begins with the first heartbeat after the
	// grant, at most a third of the wait lease later; with NoRenew or MaxHold such a Lease begins
	// before Lock returns. If the owner already holds the lock, Lease is only used by
	// ExtendAndWorkThrough, as the time to add. Default Config.Lease.
	Lease time.Duration
	// NoRenew turns off automatic renewal: the hold ends with its lease unless the caller calls
	// Renew. Default false.
	NoRenew bool
	// MaxHold limits how long the lock may be held, renewed or not: whole milliseconds, at least
	// 20 ms, or berth.Forever for no limit. Default no limit.
	MaxHold time.Duration
	// MaxWait limits the wait, in addition to ctx; berth.Forever for no limit. Calls that do not
	// wait refuse MaxWait. Default no limit.
	MaxWait time.Duration
	// WantAfter makes a claim that has waited at the head of the line for this long ask for the lock:
	// the Wanted of every entry of the holding owner is closed. The claim asks again after each
	// further WantAfter. At least 20 ms, or berth.Forever for never. Calls that do not wait refuse
	// WantAfter. Default never.
	WantAfter time.Duration
	// Meta is stored with the claim and shown in listings: up to 16 KiB. Meta replaces the Meta of
	// the defaults; an empty map means none. Default none.
	Meta map[string]string
	// Attrs is passed to the Logger and the Observer with every event of the claim, but not sent
	// to the server. Attrs replaces the Attrs of the defaults. Default none.
	Attrs map[string]any
	// Access says where in the line the claim stands. Default Queued.
	Access Access
	// Conflict says what happens if the owner already holds the lock. Default FailDeadlock.
	Conflict Conflict
	// RequeueEvery sends the claim to the end of the line each time it has waited this long: at
	// least 20 ms, or berth.Forever for never. RequeueEvery cannot be combined with LIFO. Calls
	// that do not wait refuse RequeueEvery. Default never.
	RequeueEvery time.Duration
	// Attempts limits the wait to a number of attempts. Calls that do not wait refuse Attempts.
	// Default no limit.
	Attempts Attempts
	// DetailedErrors adds holders and waiters to an *AcquireError if others are the reason, at the
	// cost of two more calls. Default false.
	DetailedErrors bool
	// NoDefaults skips Config.Defaults: a zero field takes the default named here. Default false.
	NoDefaults bool
}

// Attempts limits a wait to the time that a number of attempts would take. Nothing polls: the
// claim stands in line for all of that time. A zero field means unset, as in LockOptions.
type Attempts struct {
	// Max is the number of attempts, up to 1,000,000. The first attempt is made at once, so 1
	// never waits. Below 0 for no limit. Default no limit.
	Max int
	// Delay is the pause between two attempts. Default 200 ms.
	Delay time.Duration
	// Jitter is the maximum of a random time added to each Delay; below 0 for none. Default 25 ms.
	Jitter time.Duration
}

// or returns the options with zero fields taken from d.
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
