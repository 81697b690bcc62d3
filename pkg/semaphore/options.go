package semaphore

import (
	"cmp"
	"maps"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
)

// AcquireOptions are the options of one acquire. A zero field takes its value from the Semaphore's
// Config.Defaults, then from the default named here. A nil pointer means that all fields are zero.
type AcquireOptions struct {
	// Weight is how much of the capacity the permit takes, at least 1.
	// Default 1.
	Weight int
	// Priority puts the claim ahead of all lower priorities in line: -128 to 127. Default 0.
	Priority int
	// Lease is how long the permit lasts without a renewal: whole milliseconds, at least 20 ms, or
	// berth.Forever. A Lease longer than node.Config.Lease begins with the first heartbeat after
	// the grant, at most a third of node.Config.Lease later; with NoRenew or MaxHold such a Lease
	// begins before Acquire returns. Default node.Config.Lease.
	Lease time.Duration
	// NoRenew turns off automatic renewal: the permit ends with its lease unless the caller calls
	// Renew. Default false.
	NoRenew bool
	// MaxHold limits how long the permit may be held, renewed or not: whole milliseconds, at least
	// 20 ms, or berth.Forever for no limit. Default no limit.
	MaxHold time.Duration
	// MaxWait limits the wait, in addition to ctx; berth.Forever for no limit. TryAcquire and
	// TryDo refuse MaxWait. Default no limit.
	MaxWait time.Duration
	// WantAfter makes a claim that has waited at the head of the line for this long ask holders to give back: it
	// closes the Wanted of the longest holders, as many as hold the weight that the claim lacks. The claim asks again
	// after each further WantAfter. At least 20 ms, or berth.Forever for never. TryAcquire and TryDo refuse WantAfter.
	// Default never.
	WantAfter time.Duration
	// Meta is stored with the claim and shown in listings: up to 16 KiB.
	// Default none.
	Meta map[string]string
	// Attrs is passed to the Logger and the Observer with every event of the claim, but not sent
	// to the server. Default none.
	Attrs map[string]any
	// NoDefaults skips Config.Defaults: a zero field takes the default named here. Default false.
	NoDefaults bool
}

// own returns the options with copies of the maps, since every call reads the maps of the
// defaults.
func (o AcquireOptions) own() AcquireOptions {
	o.Meta, o.Attrs = maps.Clone(o.Meta), maps.Clone(o.Attrs)
	return o
}

// or returns the options with zero fields taken from d.
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

// complete returns the options with the last defaults filled in, including the node's lease, and with 0 for no limit.
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

// validateDefaults refuses Config.Defaults that no call could use.
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

// CapacityPolicy says what an acquire does if the Semaphore's capacity differs from the stored
// one.
type CapacityPolicy int

// The policies.
const (
	// CapacityStored uses the stored capacity. An event at level warn reports the difference once.
	CapacityStored CapacityPolicy = iota
	// CapacityStrict refuses the acquire with berth.ReasonCapacity.
	CapacityStrict
	// CapacityOverride stores the Semaphore's capacity, as Resize would.
	CapacityOverride
)

// String returns the policy's word, which semaphore_acquire reads: stored, strict or override.
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
	// Keep stores the capacity for good. Without Keep, even after an earlier Resize with Keep, an idle semaphore and its
	// capacity are forgotten after node.Config.Linger, or a minute later if an operator's call has changed the capacity.
	// Default false.
	Keep bool
	// Create stores the capacity even if none is stored yet. Default false: such a name is refused
	// with berth.ErrAbsent.
	Create bool
}
