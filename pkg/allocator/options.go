package allocator

import (
	"cmp"
	"maps"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
)

// AllocateOptions are the options of one allocation. A zero field takes its value from
// Config.Defaults, then from the default named here. A nil pointer means that all fields are
// zero.
type AllocateOptions struct {
	// Priority puts the claim ahead of all lower priorities in line: -128 to 127. Default 0.
	Priority int
	// Lease is how long the hold lasts without a renewal: whole milliseconds, at least 20 ms, or
	// berth.Forever. A Lease longer than the node's Lease begins with the first heartbeat after
	// the grant, at most a third of the node's Lease later; with NoRenew or MaxHold such a Lease
	// begins before Allocate returns. Default the node's Lease.
	Lease time.Duration
	// NoRenew turns off automatic renewal: the hold ends with its lease unless the caller calls
	// Renew. Default false.
	NoRenew bool
	// MaxHold limits how long the resource may be held, renewed or not: whole milliseconds, at
	// least 20 ms, or berth.Forever for no limit. Default no limit.
	MaxHold time.Duration
	// MaxWait limits the wait, in addition to ctx; berth.Forever for no limit. TryAllocate and
	// TryDo refuse MaxWait. Default no limit.
	MaxWait time.Duration
	// WantAfter makes a claim that has waited at the head of the line for this long ask for a resource: the
	// Wanted of the longest holder is closed. The claim asks again after each further WantAfter. At least 20
	// ms, or berth.Forever for never. TryAllocate and TryDo refuse WantAfter. Default never.
	WantAfter time.Duration
	// Meta is stored with the claim and shown in listings: up to 16 KiB.
	// Default none.
	Meta map[string]string
	// Attrs is passed to the Logger and the Observer with every event of the claim, but not sent
	// to the server. Default none.
	Attrs map[string]any
	// Cooldown is the minimum rest of the resource after this hold: whole milliseconds, not
	// berth.Forever. Cooldown does not shorten the cooldown of the Settings. Default 0.
	Cooldown time.Duration
	// Bind names a binding, up to 512 bytes of any kind. The claim gets the bound resource if it
	// is free, and otherwise another resource, which is then bound to the name. Default none.
	Bind string
	// BindWait is how long the claim waits for the bound resource, while that resource is held, rests or is checked,
	// before the claim takes another one: whole milliseconds, or berth.Forever to take no other. If nothing is bound
	// when the claim arrives, or if the bound resource leaves the pool, the claim takes any resource, even with
	// berth.Forever. A call that does not wait takes the resource that it would get at once. Default 0: the claim takes
	// another resource at once.
	BindWait time.Duration
	// Resource is the key of the only acceptable resource. The claim waits in line for this
	// resource, while claims behind are served with others. If the resource is not in the pool, or
	// leaves the pool during the wait, the call ends with berth.ErrAbsent. Default any.
	Resource string
	// BindFor is how long the binding lasts at least, from the grant: whole milliseconds, or
	// berth.Forever. A binding to the same resource that lasts longer is not changed. A call with
	// BindFor needs a Bind, of the call or of the defaults. Default as in the Settings.
	BindFor time.Duration
	// NoDefaults skips Config.Defaults: a zero field takes the default named here. Default false.
	NoDefaults bool

	// alone says that no other claim may hold the resource, as for a check. Default false.
	alone bool
	// anyLease and anyHold say that no Lease or no MaxHold was given, so that a limit of the pool
	// applies. Default false.
	anyLease, anyHold bool
}

// own returns the options with copies of the maps, since every call reads the maps of the
// defaults.
func (o AllocateOptions) own() AllocateOptions {
	o.Meta, o.Attrs = maps.Clone(o.Meta), maps.Clone(o.Attrs)
	return o
}

// or returns the options with zero fields taken from d.
func (o AllocateOptions) or(d AllocateOptions) AllocateOptions {
	if o.NoDefaults {
		return o
	}
	o.anyLease, o.anyHold = o.Lease == 0 && d.anyLease, o.MaxHold == 0 && d.anyHold
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
	o.Cooldown = cmp.Or(o.Cooldown, d.Cooldown)
	o.Bind = cmp.Or(o.Bind, d.Bind)
	o.BindFor = cmp.Or(o.BindFor, d.BindFor)
	o.BindWait = cmp.Or(o.BindWait, d.BindWait)
	o.Resource = cmp.Or(o.Resource, d.Resource)
	return o
}

// complete returns the options with the last defaults filled in, including the node's lease, and with 0 for no limit.
func (o AllocateOptions) complete(lease time.Duration) AllocateOptions {
	if o.Lease == 0 {
		o.Lease, o.anyLease = lease, true
	}
	switch o.MaxHold {
	case 0:
		o.anyHold = true
	case berth.Forever:
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

// validateDefaults refuses Defaults that no call could use.
func (o AllocateOptions) validateDefaults(lease time.Duration) error {
	if o.NoDefaults {
		return berth.Invalid("Defaults.NoDefaults", "it is for a call")
	}
	o = o.complete(lease)
	return settings.Within("Defaults", o.validate())
}

// validate returns a *berth.ConfigError for the first bad value.
func (o *AllocateOptions) validate() error {
	c := settings.Claim{Priority: o.Priority, Lease: o.Lease, MaxHold: o.MaxHold, MaxWait: o.MaxWait, WantAfter: o.WantAfter, Meta: o.Meta}
	if err := c.Validate(); err != nil {
		return err
	}
	if o.Cooldown == berth.Forever {
		return berth.Invalid("Cooldown", "nobody could use the resource again")
	}
	if err := settings.Duration("Cooldown", o.Cooldown); err != nil {
		return err
	}
	if o.Resource != "" {
		if err := checkKey("Resource", o.Resource); err != nil {
			return err
		}
	}
	return cmp.Or(settings.Text("Bind", o.Bind), settings.Duration("BindFor", o.BindFor), settings.Duration("BindWait", o.BindWait))
}

// options returns the complete options of a call, or a *berth.ConfigError. With nil opts it
// returns the pool's defaults, which are complete and checked.
func (p *core) options(opts *AllocateOptions, wait bool) (AllocateOptions, error) {
	o := p.defaults
	if p.bad != nil {
		return o, p.bad
	}
	if !wait {
		o.MaxWait, o.WantAfter = 0, 0
	}
	if opts == nil {
		return o, nil
	}
	if !wait && opts.MaxWait != 0 {
		return o, berth.Invalid("MaxWait", "a call that does not wait has no use for it")
	}
	if !wait && opts.WantAfter != 0 {
		return o, berth.Invalid("WantAfter", "a call that does not wait has no use for it")
	}
	o = opts.or(o)
	if opts.BindFor != 0 && o.Bind == "" {
		return o, berth.Invalid("BindFor", "there is no Bind that could last for %s", opts.BindFor)
	}
	switch {
	case opts.BindWait != 0 && o.Bind == "":
		return o, berth.Invalid("BindWait", "there is no Bind whose resource could be waited for")
	case opts.BindWait != 0 && o.Resource != "":
		return o, berth.Invalid("BindWait", "a claim that names its Resource waits for no other")
	}
	anyHold := o.anyHold || opts.NoDefaults && opts.MaxHold == 0
	o = o.complete(p.pools.p.Settings.Lease)
	o.anyHold = anyHold
	return o, o.validate()
}
