package allocator

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/caller"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/state"
)

// AddOptions are the options of Add and Replace. A nil pointer means all defaults.
type AddOptions struct {
	// Expiry is how long the resources stay in the pool from this call on, including kept ones:
	// whole milliseconds. Default 0, forever.
	Expiry time.Duration
	// MaxSharers is how many claims may hold one of these resources at once: 1 to 100. MaxSharers
	// counts until an operator sets another number, for the pool or for the resource. Default as
	// in the Settings; if unset there, a resource already in the pool keeps its number.
	MaxSharers int
	// Progress is called on the caller's goroutine with the number of resources sent so far.
	// Progress must not call Replace, Clear or Refresh of the pool, which would wait for the
	// Replace that called Progress. Default none.
	Progress func(done, total int)
}

// Change is the result of a call that changed a pool.
type Change struct {
	// Added is how many resources are new, or were leaving and stay. If the call was repeated for
	// lack of an answer, some of these resources may count as kept.
	Added int `json:"added"`
	// Kept is how many resources were already in the pool.
	Kept int `json:"kept"`
	// Removed is how many resources have left the pool, or will leave when they are given back.
	Removed int `json:"removed"`
}

// State is the state of a resource.
type State string

// The states of a resource.
const (
	// Free: the next claim may get the resource.
	Free State = "free"
	// Leased: at least one claim holds the resource.
	Leased State = "leased"
	// Resting: the resource becomes free at the end of its rest.
	Resting State = "resting"
	// Absent: the resource is not in the pool.
	Absent State = "absent"
	// Damaged: the server's record of the resource cannot be read, because another program has
	// written there. No claim gets the resource; Remove takes it out, Add repairs it.
	Damaged State = "damaged"
)

// ResourceInfo is a resource at one moment.
type ResourceInfo struct {
	// Resource is the key of the resource.
	Resource string `json:"resource"`
	// State is the state of the resource. With MaxSharers, other claims may get a leased resource.
	State State `json:"state"`
	// Left is how long the resource stays leased or resting if nothing happens; berth.Forever for
	// no end, 0 if the resource is free or absent.
	Left time.Duration `json:"leftMs"`
	// Reason is why the resource rests, or will rest when it is given back, or "".
	Reason string `json:"reason,omitzero"`
	// Expiry is how long the resource still stays in the pool; 0 for no expiry.
	Expiry time.Duration `json:"expiryMs,omitzero"`
	// Leaving says that the resource leaves the pool when it is given back.
	Leaving bool `json:"leaving"`
	// MaxSharers is how many claims may hold the resource at once; 0 if it is absent.
	MaxSharers int `json:"maxSharers"`
	// Own are the settings that an operator has given to this resource alone: Cooldown, MaxSharers
	// and BindFor. For a zero field the pool's setting counts.
	Own Settings `json:"own,omitzero"`
	// Holders are the claims that hold the resource: up to MaxSharers, or more after an operator
	// has lowered MaxSharers.
	Holders []berth.Holder `json:"holders"`
}

// Add puts resources at the end of the pool, in their order, in steps of up to 200. After each step waiting claims may get
// the resources. Keys are 1 to 1024 bytes of any kind. A resource that is already in the pool keeps its place, but gets the
// expiry of this call and, if given, its MaxSharers, unless an operator has given the resource a MaxSharers of its own. Add
// repairs a Damaged resource, and its holders keep it. Add returns berth.ErrInvalidConfig for a bad key or expiry,
// berth.ErrIncompatible, or the server's error. The Change is valid even with an error.
func (p *Pool[T]) Add(ctx context.Context, resources []string, opts *AddOptions) (Change, error) {
	if err := p.core.usable(); err != nil {
		return Change{}, err
	}
	resources, o, err := checkAdd(resources, opts)
	if err != nil {
		return Change{}, err
	}
	return p.core.add(ctx, resources, o.Expiry, o.MaxSharers, 0, o.Progress)
}

func checkAdd(resources []string, opts *AddOptions) ([]string, AddOptions, error) {
	if opts == nil {
		opts = &AddOptions{}
	}
	if opts.Expiry == berth.Forever {
		return nil, *opts, berth.Invalid("Expiry", "for good is 0")
	}
	if err := settings.Duration("Expiry", opts.Expiry); err != nil {
		return nil, *opts, err
	}
	if err := checkSharers(opts.MaxSharers); err != nil {
		return nil, *opts, err
	}
	for _, resource := range resources {
		if err := checkResource(resource); err != nil {
			return nil, *opts, err
		}
	}
	return unique(resources), *opts, nil
}

// Remove takes resources out of the pool, in steps of up to 200. A leased resource stays with its
// holder and leaves when it is given back; an Add before that undoes the removal. A Replace under way
// ends with berth.ErrOvertaken. Remove returns berth.ErrOvertaken if another call, since this call
// began, has added a resource of the step, made it rest or given it settings of its own, or has begun
// a Replace. The other errors are those of Add.
func (p *Pool[T]) Remove(ctx context.Context, resources []string) (Change, error) {
	if err := p.core.usable(); err != nil {
		return Change{}, err
	}
	resources, _, err := checkAdd(resources, nil)
	if err != nil {
		return Change{}, err
	}
	change, err := p.core.remove(ctx, resources)
	for _, resource := range resources {
		p.values.Drop(resource)
	}
	return change, err
}

// Replace makes these resources, and no others, the resources of the pool, in steps like Add
// and Remove; new resources are added first. Resources that stay keep their place, their rest
// and their holders. An empty list is refused; use Clear. If another call has meanwhile begun a
// newer Replace, or has removed resources, the other call counts, and this Replace returns
// berth.ErrOvertaken. The Replaces of one process run one after the other. The other errors are
// those of Add.
func (p *Pool[T]) Replace(ctx context.Context, resources []string, opts *AddOptions) (Change, error) {
	if err := p.core.usable(); err != nil {
		return Change{}, err
	}
	resources, o, err := checkAdd(resources, opts)
	if err != nil {
		return Change{}, err
	}
	if len(resources) == 0 {
		return Change{}, berth.Invalid("resources", "there are none; Clear empties a pool")
	}
	return p.replace(ctx, resources, o)
}

// replace also closes the values of resources that have gone; a value in use is closed
// when its resource comes back.
func (p *Pool[T]) replace(ctx context.Context, resources []string, o AddOptions) (Change, error) {
	change, err := p.core.replace(ctx, resources, o.Expiry, o.MaxSharers, o.Progress)
	if err == nil && change.Removed > 0 {
		stay := make(map[string]bool, len(resources))
		for _, resource := range resources {
			stay[resource] = true
		}
		for _, resource := range p.values.Idle() {
			if !stay[resource] {
				p.values.Drop(resource)
			}
		}
	}
	return change, err
}

// Clear removes all resources, like Remove. Clear returns the errors of Replace.
func (p *Pool[T]) Clear(ctx context.Context) (Change, error) {
	if err := p.core.usable(); err != nil {
		return Change{}, err
	}
	return p.replace(ctx, nil, AddOptions{})
}

// RestOptions are the options of Rest.
type RestOptions struct {
	// Exactly sets the rest to d even if the resource already rests for longer. Default false: the
	// longer rest counts.
	Exactly bool
}

// Rest makes a free or resting resource rest for d from now, rounded up to the millisecond. A leased resource rests
// when it is next given back. A present or planned rest that is longer than d stays, with its reason, unless
// RestOptions.Exactly is set. A d of 0 ends a rest; a rest of berth.Forever lasts until then. The reason is any text
// of up to 512 bytes.
//
// Rest returns berth.ErrAbsent if the resource is not in the pool, is leaving it or is damaged. Rest returns
// berth.ErrOvertaken if another call, since this call began, has added the resource, made it rest, or given it
// settings of its own. Rest also returns berth.ErrInvalidConfig for bad arguments, or the server's error.
func (p *Pool[T]) Rest(ctx context.Context, resource string, d time.Duration, reason string, opts *RestOptions) error {
	if err := p.core.usable(); err != nil {
		return err
	}
	if err := checkResource(resource); err != nil {
		return err
	}
	if d < 0 {
		return berth.Invalid("d", "%s is negative", d)
	}
	if err := settings.Text("reason", reason); err != nil {
		return err
	}
	if opts == nil {
		opts = &RestOptions{}
	}
	return p.core.rest(ctx, resource, d, reason, opts.Exactly)
}

// replace makes these resources, and no others, those of the pool, after the earlier Replaces
// of this process. If the server has lost the pool meanwhile, replace begins again.
func (p *core) replace(ctx context.Context, resources []string, expiry time.Duration, sharers int, progress func(done, total int)) (Change, error) {
	select {
	case p.replacing <- struct{}{}:
	case <-ctx.Done():
		return Change{}, caller.EndOf(ctx)
	}
	defer func() { <-p.replacing }()
	const flushes = 3 // as many are bad luck, more are something else
	for again := 0; ; again++ {
		change, gen, err := p.replaceNow(ctx, resources, expiry, sharers, progress)
		var by *staleError
		if again == flushes || !errors.As(err, &by) || by.revision >= gen {
			return change, err
		}
	}
}

// replaceNow begins a Replace at a revision of its own, adds the resources, and removes those that
// were last named at an earlier one.
func (p *core) replaceNow(ctx context.Context, resources []string, expiry time.Duration, sharers int, progress func(done, total int)) (change Change, gen int64, err error) {
	seen, err := p.pools.face().Revision(ctx, "Replace", p.name)
	if err != nil {
		return Change{}, 0, err
	}
	var opinions []string
	if len(resources) > 0 { // else nothing is added that they could be about
		opinions = []string{p.agreed.opinions}
	}
	_, gen, err = p.replaceOnce(ctx, "begin", seen, p.pools.face().Engine.ClaimID(), opinions...)
	if err != nil {
		return Change{}, seen, err
	}
	change, err = p.add(ctx, resources, expiry, sharers, gen, progress)
	if err != nil {
		return change, gen, err
	}
	for cursor := "0"; ; {
		next, removed, err := p.replaceOnce(ctx, "prune", gen, cursor)
		if err != nil {
			return change, gen, err
		}
		change.Removed += int(removed)
		if cursor = next; cursor == "0" {
			return change, gen, nil
		}
	}
}

const (
	// maxResource is how long the key of a resource may be, in bytes.
	maxResource = state.MaxResource
	// maxReason is how much of a reason is stored, in bytes.
	maxReason = state.MaxText
)

// checkResource refuses a bad key: the empty one, which is the free list's sentinel,
// and one that is too long.
func checkResource(resource string) error { return checkKey("resource", resource) }

// checkKey refuses it by the name of its field.
func checkKey(field, resource string) error {
	switch {
	case resource == "":
		return berth.Invalid(field, "a key must not be empty")
	case len(resource) > maxResource:
		return berth.Invalid(field, "%.40q... has %d bytes, more than %d", resource, len(resource), maxResource)
	}
	return nil
}

// checkSharers refuses a bad MaxSharers; 0 is none given.
func checkSharers(n int) error {
	if n < 0 || n > maxSharers {
		return berth.Invalid("MaxSharers", "%d is not within 1 to %d", n, maxSharers)
	}
	return nil
}

// unique returns the resources without repeats, each where it came first.
func unique(resources []string) []string {
	seen := make(map[string]struct{}, len(resources))
	kept := make([]string, 0, len(resources))
	for _, resource := range resources {
		if _, repeat := seen[resource]; !repeat {
			seen[resource] = struct{}{}
			kept = append(kept, resource)
		}
	}
	return kept
}

// cutReason shortens a reason to the stored length, and cuts no character in two. Bytes
// that are not UTF-8 are cut anywhere.
func cutReason(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	end := maxReason
	for end > maxReason-utf8.UTFMax && !utf8.RuneStart(reason[end]) {
		end--
	}
	if !utf8.RuneStart(reason[end]) {
		end = maxReason
	}
	return reason[:end]
}
