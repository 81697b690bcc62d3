package run

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/supervise"
	"github.com/berth-go/berth/pkg/keyspace"
)

// validate looks at the flags before anything is sent, and fills in the lease and
// the grace.
func (o *runOptions) validate(flags *pflag.FlagSet) error {
	if err := o.validateName(flags); err != nil {
		return err
	}
	o.leaseGiven, o.graceGiven = flags.Changed("lease"), flags.Changed("grace")
	if !o.leaseGiven {
		o.lease = defaultLease
		if len(o.locks) > 0 || o.once.name != "" {
			o.lease = defaultLockLease
		}
	}
	switch {
	case o.lease == berth.Forever:
		return berth.Invalid("--lease", "it must end")
	case o.maxHold < 0 || (o.maxHold == 0 && flags.Changed("max-hold")):
		return berth.Invalid("--max-hold", "%s is not above 0", o.maxHold)
	case o.maxHold != 0 && o.maxHold < settings.MinLease:
		return berth.Invalid("--max-hold", "%s is below the shortest, %s", o.maxHold, settings.MinLease)
	case o.wait < 0 || (o.wait == 0 && flags.Changed("wait")):
		return berth.Invalid("--wait", "%s is not above 0; to not wait at all there is --try", o.wait)
	case o.wait > 0 && o.try:
		return berth.Invalid("--wait", "with --try nothing waits; leave one of them out")
	}
	if err := errors.Join(
		settings.Priority("--priority", o.priority),
		settings.Lease("--lease", o.lease),
		settings.Duration("--max-hold", o.maxHold),
	); err != nil {
		return err
	}
	if o.onWanted != "" || flags.Changed("on-wanted") {
		var known bool
		if o.wanted, known = supervise.Named(o.onWanted); !known {
			return berth.Invalid("--on-wanted", "%q is no signal", o.onWanted)
		}
	}
	if err := o.validateClaim(flags); err != nil {
		return err
	}
	if err := o.fillGrace(o.graceGiven); err != nil {
		return err
	}
	if o.maxHold != 0 && o.maxHold < 2*o.grace {
		return berth.Invalid("--max-hold", "%s is below twice the grace, %s; a shorter --grace allows it", o.maxHold, 2*o.grace)
	}
	return nil
}

// validateName looks at what to wait for, and at what only a semaphore, only a lock
// or only a pool has.
func (o *runOptions) validateName(flags *pflag.FlagSet) error {
	sem, lock, pool, period := flags.Changed("sem"), flags.Changed("lock"), flags.Changed("pool"), flags.Changed("once")
	ofSem := "" // what is given that only a semaphore has
	for _, only := range []string{"weight", "capacity"} {
		if flags.Changed(only) {
			ofSem = only
		}
	}
	switch {
	case !sem && !lock && !pool && !period:
		return app.Usage("nothing to wait for is given: --sem NAME, or --lock NAME, or --pool NAME, or --once NAME")
	case period && (sem || lock || pool):
		return berth.Invalid("--once", "with --sem, --lock or --pool there are two to wait for; leave one of them out")
	case sem && lock:
		return berth.Invalid("--lock", "with --sem there are two to wait for; leave one of them out")
	case pool && (sem || lock):
		return berth.Invalid("--pool", "with --sem or --lock there are two to wait for; leave one of them out")
	case lock && ofSem != "":
		return berth.Invalid("--"+ofSem, "a lock has neither --capacity nor --weight: it lets in one")
	case pool && ofSem != "":
		return berth.Invalid("--"+ofSem, "a pool has neither --capacity nor --weight: it has resources, and each goes to one")
	case !lock && flags.Changed("access"):
		return berth.Invalid("--access", "a semaphore lets in who came first, and a pool too; only with --lock there is a choice")
	case !lock && flags.Changed("conflict"):
		return berth.Invalid("--conflict", "it is for --lock; only a lock can be entered again")
	}
	for _, only := range []string{"every", "offset", "daily", "weekly", "monthly", "zone", "attempts", "retry-after", "strict"} {
		if !period && flags.Changed(only) {
			return berth.Invalid("--"+only, "it is for --once")
		}
	}
	if pool {
		return cmp.Or(app.InFlags(keyspace.CheckName(o.pool), "name", "--pool"), o.validatePool(flags))
	}
	for _, only := range []string{"bind", "bind-for", "bind-wait", "resource", "quoted", "cooldown"} {
		if flags.Changed(only) {
			return berth.Invalid("--"+only, "it is for --pool; only a pool has resources")
		}
	}
	if period {
		return o.once.validate(flags)
	}
	if lock {
		return o.validateLocks(flags)
	}
	given := flags.Changed("capacity")
	switch {
	case given && o.capacity < 1:
		return berth.Invalid("--capacity", "%d is below 1", o.capacity)
	case o.weight < 1:
		return berth.Invalid("--weight", "%d is below 1", o.weight)
	case given && o.weight > o.capacity:
		return berth.Invalid("--weight", "%d is above the capacity, %d", o.weight, o.capacity)
	}
	return app.InFlags(keyspace.CheckName(o.sem), "name", "--sem")
}

// validateLocks looks at what only locks have. A lock that is named twice counts once.
func (o *runOptions) validateLocks(flags *pflag.FlagSet) error {
	switch {
	case !slices.Contains(words(accesses), o.access):
		return berth.Invalid("--access", "%q is none of %s", o.access, strings.Join(words(accesses), ", "))
	case !slices.Contains(words(conflicts), o.conflict):
		return berth.Invalid("--conflict", "%q is none of %s", o.conflict, strings.Join(words(conflicts), ", "))
	case flags.Changed("conflict") && !flags.Changed("owner"):
		return berth.Invalid("--conflict", "without --owner nobody else has the same owner")
	}
	for _, name := range o.locks {
		if err := keyspace.CheckName(name); err != nil {
			return app.InFlags(err, "name", "--lock")
		}
	}
	slices.Sort(o.locks)
	o.locks = slices.Compact(o.locks)
	return nil
}

// validateClaim looks at whom the claim is for, and reads what listings show of it.
func (o *runOptions) validateClaim(flags *pflag.FlagSet) error {
	if o.owner == "" && flags.Changed("owner") {
		return berth.Invalid("--owner", "it is empty")
	}
	if err := settings.Text("--owner", o.owner); err != nil {
		return err
	}
	for _, text := range o.metas {
		key, value, found := strings.Cut(text, "=")
		_, twice := o.meta[key]
		switch {
		case !found || key == "":
			return berth.Invalid("--meta", "%q is not KEY=VALUE", text)
		case twice:
			return berth.Invalid("--meta", "the key %q is given twice", key)
		case o.meta == nil:
			o.meta = make(map[string]string)
		}
		o.meta[key] = value
	}
	return settings.Meta("--meta", o.meta)
}

// validatePool looks at what only a pool has.
func (o *runOptions) validatePool(flags *pflag.FlagSet) error {
	if flags.Changed("resource") {
		var err error
		if o.key, err = app.KeyArgument("--resource", o.resource, o.quoted); err != nil {
			return err
		}
	}
	switch {
	case o.key == "" && o.quoted:
		return berth.Invalid("--quoted", "it is for --resource")
	case o.key != "" && flags.Changed("bind-wait"):
		return berth.Invalid("--bind-wait", "with --resource no other one will do, however long it takes; leave one of them out")
	case o.bind == "" && flags.Changed("bind-wait"):
		return berth.Invalid("--bind-wait", "it is for --bind")
	case o.bindWait < 0 || (o.bindWait == 0 && flags.Changed("bind-wait")):
		return berth.Invalid("--bind-wait", "%s is not above 0; without it another one is taken at once", o.bindWait)
	case o.bind == "" && flags.Changed("bind"):
		return berth.Invalid("--bind", "it is empty")
	case o.bind == "" && flags.Changed("bind-for"):
		return berth.Invalid("--bind-for", "it is for --bind")
	case o.bindFor < 0 || (o.bindFor == 0 && flags.Changed("bind-for")):
		return berth.Invalid("--bind-for", "%s is not above 0", o.bindFor)
	case o.cooldown < 0 || (o.cooldown == 0 && flags.Changed("cooldown")):
		return berth.Invalid("--cooldown", "%s is not above 0", o.cooldown)
	case o.cooldown == berth.Forever:
		return berth.Invalid("--cooldown", "it must end")
	}
	return cmp.Or(
		settings.Text("--bind", o.bind),
		settings.Duration("--bind-for", o.bindFor),
		settings.Duration("--bind-wait", o.bindWait),
		settings.Duration("--cooldown", o.cooldown))
}

// fillGrace refuses a grace that leaves renewals no time.
func (o *runOptions) fillGrace(given bool) error {
	if !given {
		o.grace = o.lease / 6
		if o.maxHold != 0 {
			o.grace = min(o.grace, o.maxHold/4)
		}
		o.grace = o.grace.Truncate(time.Millisecond)
	}
	switch {
	case o.grace <= 0:
		return berth.Invalid("--grace", "%s is not above 0", o.grace)
	case o.grace > o.lease/3:
		return berth.Invalid("--grace", "%s is above a third of the lease, %s", o.grace, (o.lease / 3).Truncate(time.Millisecond))
	}
	return nil
}
