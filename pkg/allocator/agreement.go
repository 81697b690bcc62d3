package allocator

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/berth-go/berth"
)

// limitsKept is how long a limit is remembered by which the pool has refused a claim.
const limitsKept = time.Minute

// agreement has the stored settings of a pool, as far as this process has read them.
type agreement struct {
	says     Settings // what the process says
	opinions string   // the same, as scripts take it
	strict   bool

	mu     sync.Mutex
	told   string        // guarded by mu: the stored settings that differ, "" for none
	limits Settings      // guarded by mu: MaxLease and MaxHold, where a claim was refused by them
	until  time.Duration // guarded by mu: when they are forgotten
}

// args returns the arguments of pool_acquire.
func (a *agreement) args() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return []string{a.opinions, a.told}
}

// hear records stored settings that differ, and reports whether they are new.
func (a *agreement) hear(stored string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	news := a.told != stored
	a.told = stored
	return news
}

// bound remembers the limits.
func (a *agreement) bound(limits Settings, now time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limits, a.until = limits, now+limitsKept
}

// within returns the options of a call within the limits, as far as the call leaves that open.
func (a *agreement) within(o AllocateOptions, now time.Duration) AllocateOptions {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until > now {
		o = o.within(a.limits)
	}
	return o
}

// within takes the limits of a pool for what the caller did not set.
func (o AllocateOptions) within(limits Settings) AllocateOptions {
	if most := limits.MaxLease; o.anyLease && most != 0 {
		o.Lease = min(o.Lease, most)
	}
	if most := limits.MaxHold; o.anyHold && most != 0 && most != berth.Forever {
		o.MaxHold = most
	}
	return o
}

// above says which of the limits the options are above; nil for none.
func (o AllocateOptions) above(limits Settings) error {
	if most := limits.MaxLease; most != 0 && o.Lease > most {
		return berth.Invalid("Lease", "%s is above the longest that the pool allows, %s", spell(o.Lease), most)
	}
	if most := limits.MaxHold; most != 0 && most != berth.Forever && (o.MaxHold == 0 || o.MaxHold > most) {
		return berth.Invalid("MaxHold", "%s is above the longest that the pool allows, %s", spell(cmp.Or(o.MaxHold, berth.Forever)), most)
	}
	return nil
}

// limited is the error for a lease of d that the pool has refused to a hold.
func (p *core) limited(ctx context.Context, d time.Duration) error {
	most := "MaxLease"
	if set, err := p.pools.settings(ctx, p.name); err == nil && set.MaxLease != 0 {
		most = spell(set.MaxLease)
	}
	return berth.Invalid("d", "%s is above the longest lease that the pool allows, %s", spell(d), most)
}

func spell(d time.Duration) string {
	if d == berth.Forever {
		return "forever"
	}
	return d.String()
}

// differs is the *berth.ConfigError for stored settings that are not those of a strict process.
func (a *agreement) differs(stored string) error {
	s, err := parseSettings(stored)
	if err != nil {
		return err
	}
	if all := a.says.differences(s); len(all) > 0 {
		name, mine, theirs := all[0][0], all[0][1], all[0][2]
		return berth.Invalid(name, "%s is not the stored one, %s", mine, theirs)
	}
	return berth.Invalid("Strict", "the stored settings are others: %s", s)
}
