package allocator

import (
	"context"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// face is the node that the process is now, as pools see it. Only this file runs the scripts that are specific to
// pools; request.go has the pools' arguments and replies of the scripts of all kinds.
type face struct {
	*line.Face
	p    *line.Process
	look *reader.Reader // for readings
}

func (s *pools) face() face { return face{s.p.Face(keyspace.Pool), s.p, s.look} }

// work has Close wait until done is called. It reports false once Close has begun.
func (s *pools) work() (done func(), ok bool) {
	for {
		f := s.face()
		if done, ok = f.Engine.Work(); ok || f.Node == s.p.Node() {
			return done, ok
		}
	}
}

// kind returns the arguments and replies that are specific to the pools of a process.
func (s *pools) kind() *line.Kind {
	return &line.Kind{
		Kind: keyspace.Pool, Of: s,
		Scripts: line.Scripts{
			Acquire: composed.PoolAcquire, Release: composed.PoolRelease, Renew: composed.PoolRenew, Resume: composed.PoolResume,
			Restore: composed.PoolRestore, Sweep: composed.PoolSweep, ForceRelease: composed.PoolForceRelease, Pause: composed.PoolPause,
			Want: composed.PoolWant,
		},
		Parts:       line.PoolParts,
		AcquireArgs: acquireArgs, AcquireReply: s.acquireReply, ReleaseArgs: releaseArgs, ReleaseReply: s.releaseReply,
		Empty: s.empty, Swept: s.damaged, Request: func() any { return &request{} }, Trial: s.trial,
	}
}

// The statuses of the scripts that are specific to pools; a test compares them with the
// headers.
const (
	statusFull    = "full"
	statusAhead   = "ahead"
	statusPaused  = "paused"
	statusSwapped = "swapped"
	statusNotHeld = "not_held"
	statusTaken   = "taken"
	statusSet     = "set"
	statusDiffers = "differs"
	statusAdded   = "added"
	statusRemoved = "removed"
	statusBegun   = "begun"
	statusStale   = "stale"
	statusRested  = "rested"
	statusAbsent  = "absent"
	statusBound   = "bound"
	statusUnbound = "unbound"
	statusPage    = "page"
	statusExpires = "expires"
	statusTurn    = "turn"
	statusLater   = "later"
	statusPart    = "part"
)

// run runs a script of the pool, repeated by node.Config.Retry.
func (p *core) run(ctx context.Context, script *scriptkit.Script, args ...string) (scriptkit.Reply, error) {
	return p.pools.face().Run(ctx, script, scriptkit.Bounded, p.name, args...)
}

// sweptOn reads at i, as the last part of a reply, whether the sweep must continue, and then
// continues it.
func (f face) sweptOn(ctx context.Context, name string, r *scriptkit.Reply, i int) error {
	more := line.More(r, i)
	if r.Err() != nil {
		return r.Err()
	}
	return f.SweepOn(ctx, name, more)
}

// staleError is a *berth.OvertakenError with the revision of the change that has overtaken the call.
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

// swap runs pool_swap once. left says that the old resource has left the pool.
func (f face) swap(ctx context.Context, c *engine.Claim, asked *wish) (x engine.Exchanged, left bool, err error) {
	rest, reason, expiry := asked.args()
	r, err := f.Run(ctx, composed.PoolSwap, scriptkit.Once, c.Name, f.ID, c.ID, line.Decimal(c.Fence()), rest, reason, expiry)
	if err != nil {
		return x, false, err
	}
	switch r.Status() {
	case statusSwapped:
		x.Fence, x.More, x.Resource = r.Int(2), line.More(&r, 4), r.Str(6)
		left = r.Int(7) == 0
	case statusFull, statusAhead, statusPaused:
		refused := f.Refusal(c.Caller(), c.Name, &r)
		refine(refused)
		refused.Name, refused.Claim = c.Name, c.ID
		x.Refused, x.More = refused, line.More(&r, 4)
	case statusNotHeld:
		x.Ended = berth.ErrLost
		if r.Str(1) != "" {
			x.Ended = berth.ErrReleased // by an operator
		}
	case statusTaken:
		x.Ended = berth.ErrReleased
	default:
		return x, false, line.Unexpected(c.Name, &r)
	}
	return x, left, r.Err()
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
	damaged = line.Texts(&r, 4)
	return damaged, p.pools.face().sweptOn(ctx, p.name, &r, 3)
}

// mendOnce runs one pool_mend. args are a flag, and pairs of a resource and a claim that holds it.
func (p *core) mendOnce(ctx context.Context, args []string) (removed int, err error) {
	r, err := p.run(ctx, composed.PoolMend, args...)
	if err != nil {
		return 0, err
	}
	if r.Status() != statusRemoved {
		return 0, line.Unexpected(p.name, &r)
	}
	removed = int(r.Int(1))
	return removed, p.pools.face().sweptOn(ctx, p.name, &r, 2)
}

// removeOnce runs one pool_remove, of what was not changed since the revision seen.
func (p *core) removeOnce(ctx context.Context, seen int64, some []string) (removed int, err error) {
	// Each step has an id of its own, so that a repeated step gets the same answer.
	r, err := p.run(ctx, composed.PoolRemove, append([]string{line.Decimal(seen), p.pools.face().Engine.ClaimID()}, some...)...)
	if err != nil {
		return 0, err
	}
	switch r.Status() {
	case statusRemoved:
		return p.removed(ctx, &r, 1)
	case statusStale:
		return 0, staleBy(p.name, &r)
	}
	return 0, line.Unexpected(p.name, &r)
}

// removed reads, from i on, how many resources a script has removed, whether the sweep must continue, and which
// resources are damaged. It removes the damaged resources too.
func (p *core) removed(ctx context.Context, r *scriptkit.Reply, i int) (removed int, err error) {
	removed = int(r.Int(i))
	more, damaged := line.More(r, i+1), line.Texts(r, i+2)
	if r.Err() != nil {
		return removed, r.Err()
	}
	mended, err := p.mend(ctx, damaged, false)
	if err == nil {
		err = p.pools.face().SweepOn(ctx, p.name, more)
	}
	return removed + mended, err
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
		next = r.Str(1)
		removed, err := p.removed(ctx, &r, 2)
		return next, int64(removed), err
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

// expire runs pool_expire.
func (p *core) expire(ctx context.Context, resource string, d time.Duration) error {
	r, err := p.run(ctx, composed.PoolExpire, resource, line.Decimal(restMillis(d)))
	if err != nil {
		return err
	}
	switch r.Status() {
	case statusExpires:
		return p.pools.face().sweptOn(ctx, p.name, &r, 1)
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

// set runs pool_set, and then pool_sharers for all resources. what says the words for people.
func (f face) set(ctx context.Context, name, resource, words, what string, sharers bool) error {
	seen, err := f.Revision(ctx, "Set", name)
	if err != nil {
		return err
	}
	r, err := f.Run(ctx, composed.PoolSet, scriptkit.Bounded, name, resource, words, what, line.Decimal(seen), f.Engine.ClaimID())
	if err != nil {
		return err
	}
	switch r.Status() {
	case statusSet:
	case statusStale:
		return staleBy(name, &r)
	case statusAbsent:
		return berth.ErrAbsent
	default:
		return line.Unexpected(name, &r)
	}
	more, text, revision := line.More(&r, 1), r.Str(2), r.Str(3)
	if r.Err() != nil {
		return r.Err()
	}
	parse := parseSettings
	if resource != "" {
		parse = parseOwn
	}
	now, err := parse(text)
	if err != nil {
		return err
	}
	f.Tell.Send(observe.Event{Kind: observe.SettingsChanged, Context: ctx, Name: name, Resource: resource, Detail: now.String()})
	if err := f.SweepOn(ctx, name, more); err != nil || !sharers {
		return err
	}
	for cursor := "0"; ; {
		r, err := f.Run(ctx, composed.PoolSharers, scriptkit.Bounded, name, cursor, revision)
		if err != nil {
			return err
		}
		if r.Status() != statusPage {
			return line.Unexpected(name, &r)
		}
		cursor = r.Str(1)
		if err := f.sweptOn(ctx, name, &r, 2); err != nil || cursor == "0" {
			return err
		}
	}
}

// inspectOnce runs pool_inspect.
func (f face) inspectOnce(ctx context.Context, name string, atOnce int, part, cursor string) (step inspectStep, err error) {
	r, err := f.Run(ctx, composed.PoolInspect, scriptkit.Bounded, name, part, cursor, strconv.Itoa(page), strconv.Itoa(atOnce))
	if err != nil {
		return step, err
	}
	if r.Status() != statusPart {
		return step, line.Unexpected(name, &r)
	}
	step.part, step.cursor, step.mark = r.Str(1), r.Str(2), r.Str(3)
	step.stored = sums{resources: r.Int(4), free: r.Int(5), leased: r.Int(6), leaving: r.Int(7), holds: r.Int(8), places: r.Int(9), parked: r.Int(10)}
	step.seen = sums{
		resources: r.Int(11), free: r.Int(12), leased: r.Int(13), resting: r.Int(14), leaving: r.Int(15), bindings: r.Int(16),
		listed: r.Int(17), holds: r.Int(18), places: r.Int(19), parked: r.Int(20),
	}
	for i := 21; i < r.Len(); i += 2 {
		step.problems = append(step.problems, [2]string{r.Str(i), r.Str(i + 1)})
	}
	return step, r.Err()
}
