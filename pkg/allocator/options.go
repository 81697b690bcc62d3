package allocator

import (
	"cmp"
	"maps"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/settings"
)

// AllocateOptions are the options of one allocation. A zero field is taken from
// Config.Defaults, then from the default named here. A nil pointer leaves all fields zero.
type AllocateOptions struct {
	// Priority moves the claim ahead of lower ones in line: -128 to 127.
	// Default 0.
	Priority int
	// Lease is how long the hold lives without being renewed: whole
	// milliseconds, at least 20 ms, or berth.Forever. What is longer than
	// the node's Lease begins with the first heartbeat after the grant, a third of
	// the node's Lease later at the most; with NoRenew or MaxHold, before Allocate
	// returns. Default the node's Lease.
	Lease time.Duration
	// NoRenew leaves the renewing to the caller: the hold ends with its lease
	// unless Renew is called. Default false.
	NoRenew bool
	// MaxHold bounds how long the resource may be held, renewed or not: whole
	// milliseconds, at least 20 ms, or berth.Forever for no bound. Default no bound.
	MaxHold time.Duration
	// MaxWait bounds the wait, beside ctx; berth.Forever is no bound. TryAllocate and
	// TryDo refuse it. Default no bound.
	MaxWait time.Duration
	// WantAfter is how long the claim waits until it asks for what it lacks, once it stands first: the
	// Wanted of so many holders is closed, the longest first. After each further such time it asks again. At
	// least 20 ms, or berth.Forever for never. TryAllocate and
	// TryDo refuse it. Default never.
	WantAfter time.Duration
	// Meta is stored with the claim and shown in listings: up to 16 KiB.
	// Default none.
	Meta map[string]string
	// Attrs goes to the Logger and the Observer with every event of the claim, and not
	// to the server. Default none.
	Attrs map[string]any
	// Cooldown is how long the resource rests after this hold at least: whole milliseconds,
	// not berth.Forever. It does not shorten what the settings say, see Settings. Default 0.
	Cooldown time.Duration
	// Bind names a binding, any bytes up to 512: the claim gets the resource that
	// is bound to it if that is free, and another one otherwise, which is bound to
	// it then. Default none.
	Bind string
	// BindWait is for how long the claim waits for the resource that Bind names while
	// that one is held, rests or is being checked, before it takes another one: whole
	// milliseconds, or berth.Forever to take no other. Where nothing is
	// bound to the name when the claim comes, or the bound resource leaves the pool, the
	// claim takes any, also with berth.Forever. A call that does not wait takes what it would get at once. Default 0: it
	// takes another one at once.
	BindWait time.Duration
	// Resource is the key of the only resource that will do. The claim waits in line
	// for it, and others behind are served meanwhile with what it does not want. If it is
	// not in the pool, the call ends with berth.ErrAbsent; if it leaves the pool, the wait
	// does. Default any.
	Resource string
	// BindFor is how long the binding lasts at least, counted from the grant: whole
	// milliseconds, or berth.Forever. A binding to the same resource that lasts longer
	// stays as it is. The BindFor of a call needs a Bind, of the call or of the
	// defaults. Default as the settings say, see Settings.
	BindFor time.Duration
	// NoDefaults has the call go by its own fields and the defaults named here alone,
	// not by those of the pool. Default false.
	NoDefaults bool

	// alone says that nobody else may hold the resource, as for a check. Default false.
	alone bool
	// anyLease and anyHold say that nobody has set a Lease, or a MaxHold: a limit of the pool will do.
	// Default false.
	anyLease, anyHold bool
}

// own returns the options with maps that are nobody else's: every call reads those of defaults.
func (o AllocateOptions) own() AllocateOptions {
	o.Meta, o.Attrs = maps.Clone(o.Meta), maps.Clone(o.Attrs)
	return o
}

// or returns the options with the fields of d where o says nothing.
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

// complete returns the options as they are meant: the last defaults filled in, of them the node's lease, and no bound as 0.
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

// validateDefaults refuses Defaults that no call could go by.
func (o AllocateOptions) validateDefaults(lease time.Duration) error {
	if o.NoDefaults {
		return berth.Invalid("Defaults.NoDefaults", "it is for a call")
	}
	o = o.complete(lease)
	return settings.Within("Defaults", o.validate())
}

// validate returns a *berth.ConfigError for the first value that cannot be.
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

// options returns the options of a call as they are meant, or a *berth.ConfigError. A nil opts
// goes by the pool's defaults, which are complete and checked.
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
