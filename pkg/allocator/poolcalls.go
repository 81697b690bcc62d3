package allocator

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// Only this file, readcalls.go and script.go run scripts; here are those that write, about a pool and not
// about a claim.

// run runs a script of the pool, repeated by Config.Retry of the node.
func (p *core) run(ctx context.Context, script *scriptkit.Script, args ...string) (scriptkit.Reply, error) {
	return p.pools.face().Run(ctx, script, scriptkit.Bounded, p.name, args...)
}

// chunk is how many resources one script takes.
const chunk = 200

// add runs pool_add, in chunks. gen is the revision of the Replace that it is part of,
// 0 for none.
func (p *core) add(ctx context.Context, resources []string, expiry time.Duration, sharers int, gen int64, progress func(done, total int)) (Change, error) {
	var change Change
	for done := 0; done < len(resources); {
		some := resources[done:min(done+chunk, len(resources))]
		for left := some; len(left) > 0; { // what is damaged is made whole first, and then kept
			last := gen == 0 && done+len(some) == len(resources)
			damaged, err := p.addOnce(ctx, left, expiry, sharers, gen, last, &change)
			if err != nil {
				return change, err
			}
			if _, err := p.mend(ctx, damaged, true); err != nil {
				return change, err
			}
			left = damaged
		}
		done += len(some)
		if progress != nil {
			progress(done, len(resources))
		}
	}
	return change, nil
}

// addOnce runs one pool_add, and counts what it did. It returns the damaged resources,
// and leaves them as they are.
func (p *core) addOnce(ctx context.Context, some []string, expiry time.Duration, sharers int, gen int64, last bool, change *Change) (damaged []string, err error) {
	args := append([]string{line.Decimal(expiry.Milliseconds()), strconv.Itoa(sharers), line.Decimal(gen), line.Flag(last), p.agreed.opinions}, some...)
	r, err := p.run(ctx, composed.PoolAdd, args...)
	if err != nil {
		return nil, err
	}
	switch r.Status() {
	case statusAdded:
	case statusStale:
		return nil, staleBy(p.name, &r)
	case statusDiffers:
		return nil, p.agreed.differs(r.Str(1))
	default:
		return nil, line.Unexpected(p.name, &r)
	}
	change.Added, change.Kept = change.Added+int(r.Int(1)), change.Kept+int(r.Int(2))
	more, damaged := line.More(&r, 3), line.Texts(&r, 4)
	if r.Err() != nil {
		return nil, r.Err()
	}
	return damaged, p.pools.face().SweepOn(ctx, p.name, more)
}

// mend takes resources whose records are damaged out of the pool, or makes them whole if they
// are to stay, and returns how many those were. Only the claims know who holds them, so mend
// goes through all claims; nobody gets a damaged resource meanwhile. A held one stays with its holders.
func (p *core) mend(ctx context.Context, resources []string, stay bool) (removed int, err error) {
	if len(resources) == 0 {
		return 0, nil
	}
	holders, err := p.pools.face().Decide.HoldersOf(ctx, p.name, resources)
	if err != nil {
		return 0, err
	}
	for some := range slices.Chunk(resources, chunk/2) {
		args := []string{line.Flag(stay)}
		for _, resource := range some {
			if len(holders[resource]) == 0 {
				args = append(args, resource, "")
			}
			for _, claim := range holders[resource] {
				args = append(args, resource, claim)
			}
		}
		r, err := p.run(ctx, composed.PoolMend, args...)
		if err != nil {
			return removed, err
		}
		if r.Status() != statusRemoved {
			return removed, line.Unexpected(p.name, &r)
		}
		removed += int(r.Int(1))
		more := line.More(&r, 2)
		if r.Err() != nil {
			return removed, r.Err()
		}
		if err := p.pools.face().SweepOn(ctx, p.name, more); err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// remove runs pool_remove, in chunks.
func (p *core) remove(ctx context.Context, resources []string) (Change, error) {
	var change Change
	seen, err := p.pools.face().Revision(ctx, "Remove", p.name)
	if err != nil {
		return change, err
	}
	for some := range slices.Chunk(resources, chunk) {
		// Each step has an id of its own, so that a repeated one is told what it has removed.
		r, err := p.run(ctx, composed.PoolRemove, append([]string{line.Decimal(seen), p.pools.face().Engine.ClaimID()}, some...)...)
		if err != nil {
			return change, err
		}
		switch r.Status() {
		case statusRemoved:
		case statusStale:
			return change, staleBy(p.name, &r)
		default:
			return change, line.Unexpected(p.name, &r)
		}
		change.Removed += int(r.Int(1))
		more, damaged := line.More(&r, 2), line.Texts(&r, 3)
		if r.Err() != nil {
			return change, r.Err()
		}
		mended, err := p.mend(ctx, damaged, false)
		change.Removed += mended
		if err == nil {
			err = p.pools.face().SweepOn(ctx, p.name, more)
		}
		if err != nil {
			return change, err
		}
	}
	return change, nil
}

// staleError is a *berth.StaleError with the revision of the change that has overtaken the call.
type staleError struct {
	error
	revision int64
}

func (e *staleError) Unwrap() error { return e.error }

// staleBy reads the reply that a call was overtaken.
func staleBy(name string, r *scriptkit.Reply) error {
	stale, revision := line.Stale(name, r)
	if r.Err() != nil {
		return r.Err()
	}
	return &staleError{stale, revision}
}

// replaceOnce runs pool_replace: begin returns the revision of the Replace, prune the next
// cursor and how many were removed, the damaged ones included. opinions are for begin, see agreement.
func (p *core) replaceOnce(ctx context.Context, step string, revision int64, cursor string, opinions ...string) (next string, count int64, err error) {
	r, err := p.run(ctx, composed.PoolReplace, append([]string{step, line.Decimal(revision), cursor}, opinions...)...)
	if err != nil {
		return "", 0, err
	}
	switch r.Status() {
	case statusBegun:
		return "", r.Int(1), r.Err()
	case statusRemoved:
		next, count = r.Str(1), r.Int(2)
		more, damaged := line.More(&r, 3), line.Texts(&r, 4)
		if r.Err() != nil {
			return "", 0, r.Err()
		}
		mended, err := p.mend(ctx, damaged, false)
		if err == nil {
			err = p.pools.face().SweepOn(ctx, p.name, more)
		}
		return next, count + int64(mended), err
	case statusDiffers:
		return "", 0, p.agreed.differs(r.Str(1))
	case statusStale:
		return "", 0, staleBy(p.name, &r)
	}
	return "", 0, line.Unexpected(p.name, &r)
}

// rest runs pool_rest.
func (p *core) rest(ctx context.Context, resource string, d time.Duration, reason string, exactly bool) error {
	seen, err := p.pools.face().Revision(ctx, "Rest", p.name)
	if err != nil {
		return err
	}
	r, err := p.run(ctx, composed.PoolRest, resource, line.Decimal(restMillis(d)), reason,
		line.Decimal(seen), p.pools.face().Engine.ClaimID(), line.Flag(exactly))
	if err != nil {
		return err
	}
	switch r.Status() {
	case statusRested:
	case statusStale:
		return staleBy(p.name, &r)
	case statusAbsent:
		return berth.ErrAbsent
	default:
		return line.Unexpected(p.name, &r)
	}
	more := line.More(&r, 1)
	if r.Err() != nil {
		return r.Err()
	}
	if longer := r.Int(1)&1 != 0; d > 0 && !longer {
		p.tell(observe.Event{Kind: observe.Rested, Context: ctx, Resource: resource, Left: d, Detail: reason})
	}
	return p.pools.face().SweepOn(ctx, p.name, more)
}

// restShared is rest for a holder of a shared resource. It is no operator's call: what others say of the
// resource in that moment, who found the same, is no error. A holder who was overtaken says it again, and
// leaves it to the others in the end.
func (p *core) restShared(ctx context.Context, resource string, d time.Duration, reason string) error {
	const tries = 3
	for range tries {
		if err := p.rest(ctx, resource, d, reason, false); !errors.Is(err, berth.ErrStale) {
			return err
		}
	}
	return nil
}

// expire runs pool_expire.
func (p *core) expire(ctx context.Context, resource string, d time.Duration) error {
	r, err := p.run(ctx, composed.PoolExpire, resource, line.Decimal(restMillis(d)))
	if err != nil {
		return err
	}
	switch r.Status() {
	case statusExpires:
		more := line.More(&r, 1)
		if r.Err() != nil {
			return r.Err()
		}
		return p.pools.face().SweepOn(ctx, p.name, more)
	case statusAbsent:
		return berth.ErrAbsent
	}
	return line.Unexpected(p.name, &r)
}

// refreshing runs pool_refresh.
func (p *core) refreshing(ctx context.Context, every time.Duration, still string) (mine bool, left time.Duration, err error) {
	r, err := p.run(ctx, composed.PoolRefresh, p.turnID, line.Decimal(every.Milliseconds()), still, p.pools.face().Linger)
	if err != nil {
		return false, 0, err
	}
	switch r.Status() {
	case statusTurn:
		return true, 0, r.Err()
	case statusLater:
		return false, state.Millis(r.Int(1)), r.Err()
	}
	return false, 0, line.Unexpected(p.name, &r)
}

// bind runs pool_bind; no resource ends the binding.
func (p *core) bind(ctx context.Context, name, resource string, lasts time.Duration) error {
	r, err := p.run(ctx, composed.PoolBind, name, resource, bindMillis(lasts))
	if err != nil {
		return err
	}
	switch r.Status() {
	case statusBound, statusUnbound:
		return r.Err()
	case statusAbsent:
		return berth.ErrAbsent
	}
	return line.Unexpected(p.name, &r)
}
