package line

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// allNames goes through the names of the kind that the server knows, idle ones too, those of
// each node of a cluster by themselves.
func (s *Calls) allNames(ctx context.Context) iter.Seq[iter.Seq2[string, error]] {
	return s.Decide.Servers(ctx, s.cfg.Redis, s.kind.Kind, false)
}

// fatNames is allNames of those in fat form.
func (s *Calls) fatNames(ctx context.Context) iter.Seq[iter.Seq2[string, error]] {
	return s.Decide.Servers(ctx, s.cfg.Redis, s.kind.Kind, true)
}

// mostUnanswered is how many calls in a row may go unanswered, each for as long as Config.Retry
// allows, before the rest of what was listed with them is left out. A single one may be of a slot
// that moves.
const mostUnanswered = 3

// SweepNames drops what has expired from the names given or, without any, from all that the
// server knows, and returns how much that was, also beside an error. After an error it goes on
// where it can.
func (s *Calls) SweepNames(ctx context.Context, names ...string) (int, error) {
	for _, name := range names {
		if err := keyspace.CheckName(name); err != nil {
			return 0, err
		}
	}
	return each(ctx, s.listed(s.For(ctx, "Sweep", ""), names...), func(name string) (int, error) { return s.SweepAll(ctx, name) })
}

// listed goes through the names given, each by itself, or, without any, through all that the
// server knows.
func (s *Calls) listed(ctx context.Context, names ...string) iter.Seq[iter.Seq2[string, error]] {
	if len(names) == 0 {
		return s.allNames(ctx)
	}
	return func(yield func(iter.Seq2[string, error]) bool) {
		for _, name := range names {
			if !yield(func(yield func(string, error) bool) { yield(name, nil) }) {
				return
			}
		}
	}
}

// each does something with each name, until ctx ends, and returns the sum and the errors. Of a server whose names go
// unanswered one after the other the rest are left out.
func each(ctx context.Context, servers iter.Seq[iter.Seq2[string, error]], do func(name string) (int, error)) (sum int, _ error) {
	var errs []error
	for names := range servers {
		unanswered := 0
		for name, err := range names {
			if err == nil {
				var n int
				n, err = do(name)
				sum += n
			}
			if err != nil {
				errs = append(errs, err)
			}
			if err != nil && ctx.Err() != nil {
				return sum, errors.Join(errs...)
			}
			if unanswered++; !errors.Is(err, berth.ErrUnavailable) {
				unanswered = 0
			}
			if unanswered == mostUnanswered {
				break
			}
		}
	}
	return sum, errors.Join(errs...)
}

// step is what an operator does with the claims of a target.
type step struct {
	// one does it with one claim, of whatever node or only of the one given. It reports whether it
	// has, also beside an error.
	one func(ctx context.Context, name, id, node string) (done bool, err error)
	// waits says that it does it with claims that wait, too.
	waits bool
	// whole does it with all that is held of a name at once; nil where it goes claim by claim.
	whole func(ctx context.Context, name string) (int, error)
}

// ReleaseTarget ends claims by force, and returns how many, also beside an error. It returns
// berth.ErrInvalidConfig for a target that cannot be; berth.ErrNotHeld where a name was given and
// nothing of it was ended; berth.ErrExpired where the time of the claim given had passed; or the
// server's errors.
func (p *Process) ReleaseTarget(ctx context.Context, t berth.Target) (int, error) {
	return p.each(t, func(f *Face) (int, error) {
		do := step{one: f.forceRelease, waits: true}
		if f.kind.Scripts.ForceHold != nil {
			do.whole = f.releaseHold
		}
		return f.each(f.For(ctx, "Release", t.Name), t, do)
	})
}

// WantTarget asks for holds back, and returns for how many, also beside an error. Waits are left
// alone. Its errors are those of ReleaseTarget.
func (p *Process) WantTarget(ctx context.Context, t berth.Target) (int, error) {
	return p.each(t, func(f *Face) (int, error) { return f.each(f.For(ctx, "Want", t.Name), t, step{one: f.want}) })
}

// each takes a step with each kind of a target.
func (p *Process) each(t berth.Target, do func(f *Face) (int, error)) (int, error) {
	if err := checkTarget(t); err != nil {
		return 0, err
	}
	return p.Each(t.Kind, do)
}

// Each does something with one kind, or with all where it is "", and returns the sum and the errors. The kinds go side by side: a
// server that does not answer costs its time once.
func (p *Process) Each(kind keyspace.Kind, do func(f *Face) (int, error)) (sum int, err error) {
	if kind != "" {
		return do(p.Face(kind))
	}
	counts, errs := make([]int, len(Kinds)), make([]error, len(Kinds))
	var all sync.WaitGroup
	for i, kind := range Kinds {
		all.Go(func() {
			errs[i] = guard.Run("an operator's call", p.Tell, func() (err error) {
				counts[i], err = do(p.Face(kind))
				return err
			})
		})
	}
	all.Wait()
	for _, n := range counts {
		sum += n
	}
	return sum, errors.Join(errs...)
}

// each takes a step with the claims of a target that are of the face's kind.
func (s *Face) each(ctx context.Context, t berth.Target, do step) (int, error) {
	if t.Claim != "" && t.Owner == "" {
		done, err := do.one(ctx, t.Name, t.Claim, t.Node)
		if !done {
			return 0, err
		}
		return 1, err
	}
	some := func(name string) (int, error) { return s.eachMatch(ctx, name, t, do) }
	if do.whole != nil && t.Claim == "" && t.Owner == "" && t.Node == "" {
		some = func(name string) (int, error) { return do.whole(ctx, name) }
	}
	if t.Name == "" {
		return each(ctx, s.allNames(ctx), some)
	}
	count, err := some(t.Name)
	if err == nil && count == 0 {
		err = berth.ErrNotHeld
	}
	return count, err
}

// checkTarget returns a *berth.ConfigError for a target that cannot be.
func checkTarget(t berth.Target) error {
	others := t != berth.Target{Kind: t.Kind, All: t.All}
	switch {
	case t.All && others:
		return berth.Invalid("Target", "All stands alone, or with a kind")
	case !t.All && !others:
		return berth.Invalid("Target", "a name, an owner, a node or All is needed")
	case t.Claim != "" && t.Name == "":
		return berth.Invalid("Target", "a claim needs its name")
	case t.Kind != "":
		if err := CheckKind("Target.Kind", t.Kind); err != nil {
			return err
		}
	case t.Name != "":
		return berth.Invalid("Target.Kind", "a name needs it")
	}
	if t.Name != "" {
		return keyspace.CheckName(t.Name)
	}
	return nil
}

// CheckKind returns a *berth.ConfigError for what is not one of Kinds.
func CheckKind(field string, kind keyspace.Kind) error {
	if !slices.Contains(Kinds, kind) {
		return berth.Invalid(field, "%q is none of sem, lock and pool", string(kind))
	}
	return nil
}

// Hold reads by how many entries a name is held, 0 if it is free, and the fence of the hold.
func (s *Face) Hold(ctx context.Context, name string) (entries int, fence int64, err error) {
	_, found, err := s.Decide.Entries(ctx, name)
	for _, e := range found {
		if e.Err == nil { // all have the same fence
			return len(found), e.Entry.Fence, nil
		}
		err = e.Err // damaged, as all others are
	}
	return 0, 0, err
}

// releaseHold ends all entries of the hold that it finds, and of no other: a repeated call must not end that of the next in
// line. It returns how many entries it ended, 0 where the hold has ended by itself.
func (s *Face) releaseHold(ctx context.Context, name string) (int, error) {
	held, fence, err := s.Hold(ctx, name)
	if err != nil || held == 0 {
		return 0, err
	}
	r, err := s.Run(ctx, s.kind.Scripts.ForceHold, scriptkit.Bounded, name, Decimal(fence), Decimal(engine.Tombstone.Milliseconds()))
	if err != nil {
		return 0, err
	}
	switch r.Status() {
	case statusReleased:
	case statusNotHeld, statusOther:
		if r.Unanswered {
			return held, nil // an earlier attempt of this very call, or its holder
		}
		return 0, nil
	default:
		return 0, Unexpected(name, &r)
	}
	more, entries := More(&r, 1), int(r.Int(3))
	if r.Err() != nil {
		return 0, r.Err()
	}
	s.Tell.Send(observe.Event{Kind: observe.ForceReleased, Context: ctx, Name: name, Count: entries, Detail: r.Status()})
	return entries, s.SweepOn(ctx, name, more)
}

// eachMatch takes a step with the claims of a name that match a target: with those that wait first, so that
// none of them is granted what the holds leave. What is held is listed before the first step:
// who gets it meanwhile is not meant. The listings go on after a claim that is damaged.
func (s *Face) eachMatch(ctx context.Context, name string, t berth.Target, do step) (count int, err error) {
	var errs []error
	var meant []string
	listed := make(map[string]bool) // a claim may be granted between the listings
	found := func(id, node, owner string, err error) {
		if err != nil {
			errs = append(errs, err)
		} else if !listed[id] && matches(t, id, node, owner) {
			listed[id] = true
			meant = append(meant, id)
		}
	}
	if do.waits && (t.Claim != "" || t.Owner != "" || t.Node != "") {
		for w, err := range s.Waiters(ctx, name) {
			found(w.ID, w.Node, w.Owner, err)
			if pointless(ctx, err) {
				return 0, err
			}
		}
	}
	for h, err := range s.Holders(ctx, name) {
		found(h.ID, h.Node, h.Owner, err)
		if pointless(ctx, err) {
			return 0, err
		}
	}
	for _, id := range meant {
		done, err := do.one(ctx, name, id, t.Node)
		if done {
			count++
		}
		if err != nil && !errors.Is(err, berth.ErrNotHeld) { // else it has ended by itself
			errs = append(errs, err)
		}
		if pointless(ctx, err) {
			break
		}
	}
	return count, errors.Join(errs...)
}

// pointless says whether an error of a name is that of all further calls for the name: each would
// take as long as Config.Retry allows.
func pointless(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, berth.ErrUnavailable))
}

// matches says whether a target means a claim.
func matches(t berth.Target, id, node, owner string) bool {
	if owner == "" {
		owner = id
	}
	return (t.Claim == "" || t.Claim == id) && (t.Node == "" || t.Node == node) && (t.Owner == "" || t.Owner == owner)
}
