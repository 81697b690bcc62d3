package semaphore

import (
	"cmp"
	"maps"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
)

// AcquireOptions are the options of one acquire. A field that is zero is taken from the
// Semaphore's Config.Defaults, then from the default named here. A nil pointer leaves all fields zero.
type AcquireOptions struct {
	// Weight is how much of the capacity the permit takes, at least 1.
	// Default 1.
	Weight int
	// Priority moves the claim ahead of lower ones in line: -128 to 127.
	// Default 0.
	Priority int
	// Lease is how long the permit lives without being renewed: whole milliseconds, at
	// least 20 ms, or berth.Forever. A lease longer than node.Config.Lease begins with the
	// first heartbeat after the grant, at most a third of node.Config.Lease later; with
	// NoRenew or MaxHold it begins before Acquire returns. Default node.Config.Lease.
	Lease time.Duration
	// NoRenew leaves the renewing to the caller: the permit ends with its lease
	// unless Renew is called. Default false.
	NoRenew bool
	// MaxHold bounds how long the permit may be held, renewed or not: whole
	// milliseconds, at least 20 ms, or berth.Forever for no bound. Default no bound.
	MaxHold time.Duration
	// MaxWait bounds the wait, and so does ctx; berth.Forever for no bound. TryAcquire
	// and TryDo refuse it. Default no bound.
	MaxWait time.Duration
	// WantAfter is how long the claim waits until it asks for what it lacks, once it stands first: it asks the longest
	// holders, as many as hold that weight, by closing their Wanted. After each further such time it asks again. At
	// least 20 ms, or berth.Forever for never. TryAcquire and TryDo
	// refuse it. Default never.
	WantAfter time.Duration
	// Meta is stored with the claim and shown in listings: up to 16 KiB.
	// Default none.
	Meta map[string]string
	// Attrs goes to the Logger and the Observer with every event of the claim, and not
	// to the server. Default none.
	Attrs map[string]any
	// NoDefaults leaves out the defaults of the Semaphore: the call goes
	// by its own fields and the defaults named here. Default false.
	NoDefaults bool
}

// own returns the options with maps that are nobody else's: every call reads those of defaults.
func (o AcquireOptions) own() AcquireOptions {
	o.Meta, o.Attrs = maps.Clone(o.Meta), maps.Clone(o.Attrs)
	return o
}

// or returns the options with the fields of d where o says nothing.
func (o AcquireOptions) or(d AcquireOptions) AcquireOptions {
	if o.NoDefaults {
		return o
	}
	o.Weight = cmp.Or(o.Weight, d.Weight)
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
	return o
}

// complete returns the options as they are meant: the last defaults filled in, of them the node's lease, and no bound as 0.
func (o AcquireOptions) complete(lease time.Duration) AcquireOptions {
	o.Weight = cmp.Or(o.Weight, 1)
	o.Lease = cmp.Or(o.Lease, lease)
	if o.MaxHold == berth.Forever {
		o.MaxHold = 0
	}
	if o.MaxWait == berth.Forever {
		o.MaxWait = 0
	}
	if o.WantAfter == berth.Forever {
		o.WantAfter = 0
	}
	return o
}

// validateDefaults refuses Config.Defaults that no call could go by.
func (o AcquireOptions) validateDefaults(lease time.Duration) error {
	if o.NoDefaults {
		return berth.Invalid("Defaults.NoDefaults", "it is for a call")
	}
	o = o.complete(lease)
	return settings.Within("Defaults", o.validate())
}

func (o *AcquireOptions) validate() error {
	if o.Weight < 1 || o.Weight > maxCapacity {
		return berth.Invalid("Weight", "%d is not within 1 to %d", o.Weight, maxCapacity)
	}
	c := settings.Claim{Priority: o.Priority, Lease: o.Lease, MaxHold: o.MaxHold, MaxWait: o.MaxWait, WantAfter: o.WantAfter, Meta: o.Meta}
	return c.Validate()
}

// CapacityPolicy says what happens when a Semaphore's capacity differs from the stored
// one.
type CapacityPolicy int

// The policies.
const (
	// CapacityStored goes by the stored capacity. An event at level warn reports the
	// difference once.
	CapacityStored CapacityPolicy = iota
	// CapacityStrict refuses the acquire with ReasonCapacity.
	CapacityStrict
	// CapacityOverride stores the Semaphore's capacity, as Resize would.
	CapacityOverride
)

// String is the policy's word, which semaphore_acquire reads: stored, strict or
// override.
func (p CapacityPolicy) String() string {
	switch p {
	case CapacityStored:
		return "stored"
	case CapacityStrict:
		return "strict"
	case CapacityOverride:
		return "override"
	}
	return "unknown"
}

// ResizeOptions are the options of Resize.
type ResizeOptions struct {
	// Keep remembers the capacity for good. Without it, also after an earlier Resize with it, the capacity is forgotten with
	// the idle semaphore: after node.Config.Linger; where an operator's call has changed it, a minute later still. Default false.
	Keep bool
	// Create stores the capacity also where none is stored yet. Default false: such a
	// name is refused with berth.ErrAbsent.
	Create bool
}
