package inspect_test

import (
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// foresee asks what comes next, of a name or of a claim of it, and then waits for it.
func (k *walk) foresee(*rapid.T) {
	var kinds []keyspace.Kind // that somebody waits for
	for _, kind := range k.kinds {
		if slices.ContainsFunc(k.view(kind), func(s stand) bool { return !s.holds }) {
			kinds = append(kinds, kind)
		}
	}
	if kinds == nil {
		return
	}
	kind, claim := rapid.SampledFrom(kinds).Draw(k.t, "kind"), ""
	was := k.view(kind)
	if len(was) > 0 && k.once("one claim", 2) {
		claim = was[k.number("claim", 0, len(was)-1)].id
	}
	e, quiet, text, err := k.look.Quiet(ctx, kind, k.names[kind], claim)
	require.NoError(k.t, err)
	defer func() {
		if k.t.Failed() {
			_, _, now, _ := k.look.Quiet(ctx, kind, k.names[kind], claim)
			k.t.Logf("%s\nas it was read: %s\nas it is: %s", e, text, now)
		}
	}()
	for _, next := range []*inspect.Event{e.Next, e.IfSilent} {
		require.False(k.t, next != nil && (next.At.Before(e.At) || next.At.Equal(e.At) != (next.What == inspect.SweepDue)), "it has passed: %s", e)
	}
	for _, c := range k.folk {
		require.False(k.t, quiet(c.ID()) && c.died.IsZero(), "it lives: %s", e)
	}
	if e.Then == "" || slices.ContainsFunc(was, func(s stand) bool { return s.secret() && !quiet(s.node) }) {
		return
	}
	f := &foreseen{walk: k, kind: kind, claim: claim, e: &e, was: was, next: e.Next}
	if e.IfSilent != nil && k.once("silent", 2) {
		f.next = e.IfSilent
		for _, c := range k.folk {
			if slices.Contains(e.IfSilent.If, c.ID()) && c.died.IsZero() {
				k.kill(c)
			}
		}
	}
	heavy := slices.ContainsFunc(e.Reasons, func(r inspect.Reason) bool { return r.Code == inspect.TooHeavy })
	if heavy && slices.ContainsFunc(was, func(s stand) bool { return s.id == claim && s.claim.by.died.IsZero() }) {
		f.claim = "" // it leaves when its process is heard of
	}
	f.check()
}

// secret says that nobody can know yet that the process of a claim has died, and that this matters.
func (s *stand) secret() bool {
	h := &s.hold
	given := s.holds && (h.Detached || (h.NoRenew || h.Lease == berth.Forever) && h.Granted.Before(s.claim.by.died))
	return !s.claim.by.died.IsZero() && !given
}

// foreseen is what was said, and what was so when it was said.
type foreseen struct {
	*walk
	kind  keyspace.Kind
	claim string
	e     *inspect.Explanation
	next  *inspect.Event
	was   []stand
	late  bool // what comes soon behind it may have come, too
}

func (f *foreseen) check() {
	switch next := f.next; {
	case next == nil:
		f.nothing()
	case next.What == inspect.SweepDue:
		f.comes(true)
	default:
		for _, c := range f.folk {
			require.False(f.t, c.died.IsZero() && slices.Contains(next.If, c.ID()), "it lives: %s", f.e)
		}
		if at := time.Until(next.At) - ms; at > 0 {
			f.Advance(at)
			f.unchanged()
			f.stillSo()
		}
		f.Advance(time.Until(next.At))
		if next.What == inspect.RestEnds && next.Claim != "" {
			if f.lost() {
				return
			}
			f.Advance(50 * ms) // it may have begun so late
			f.late = true
		}
		f.comes(!f.looked() || f.once("sweep", 2))
	}
}

// lost says that the rest that comes, which may end later, may serve others then: the resource leaves soon, or who gets
// it is dead.
func (f *foreseen) lost() bool {
	soon := f.leaves[f.next.Resource].Sub(f.next.At)
	return soon > 0 && soon <= 50*ms ||
		slices.ContainsFunc(f.was, func(s stand) bool { return !s.claim.by.died.IsZero() && slices.Contains(f.next.Grants, s.id) })
}

// looked says that a process that waits looks soon, and that it does not matter how soon: a dead claim that is
// served may have left the line until then. Of a new moment the first one hears at once; if that is dead, the others
// hear of it with their next heartbeat.
func (f *foreseen) looked() bool {
	return slices.ContainsFunc(f.view(f.kind), func(s stand) bool { return !s.holds && s.claim.by.died.IsZero() }) &&
		!slices.ContainsFunc(f.was, func(s stand) bool {
			return !s.claim.by.died.IsZero() && (s.first || slices.Contains(f.next.Grants, s.id))
		})
}

// nothing lets time pass in which nothing may happen.
func (f *foreseen) nothing() {
	if strings.HasPrefix(f.e.Then, "Nothing is granted") {
		f.claim = ""
	}
	wait := f.duration("wait", time.Second, 5*time.Second, 15*time.Second)
	if h := f.e.Horizon; !h.IsZero() {
		wait = min(wait, time.Until(h)-ms)
	}
	if wait > 0 {
		f.Advance(wait)
		f.unchanged()
	}
}

// unchanged fails if somebody has been granted something, or if the claim stands otherwise than before.
func (f *foreseen) unchanged() {
	is := f.view(f.kind)
	for _, s := range f.was {
		now, own := find(is, s.id), s.id == f.claim
		switch {
		case now != nil && (now.holds != s.holds || own && now.resource != s.resource):
			require.Fail(f.t, "it came too soon", "%s: %+v, %+v", f.e, s, now)
		case now != nil || s.holds && !own:
		case s.holds || own || s.claim.by.died.IsZero() && (!s.claim.call.Over() || s.claim.call.Err == nil):
			require.Fail(f.t, "it ended too soon", "%s: %+v", f.e, s)
		}
	}
}

// find is where a claim stands, nil if it does not.
func find(is []stand, id string) *stand {
	if i := slices.IndexFunc(is, func(s stand) bool { return s.id == id }); i >= 0 {
		return &is[i]
	}
	return nil
}

// stillSo fails if something else is said a moment before.
func (f *foreseen) stillSo() {
	e, quiet, _, err := f.look.Quiet(ctx, f.kind, f.names[f.kind], f.claim)
	require.NoError(f.t, err)
	if slices.ContainsFunc(f.was, func(s stand) bool { return s.secret() && !quiet(s.node) }) {
		return
	}
	if e.Next == nil && strings.HasPrefix(e.Then, "Nothing is granted") {
		return // the last process that waited has left
	}
	require.NotNil(f.t, e.Next, "%s\n%s", f.e, e)
	if late := e.Next.At.Sub(f.next.At); f.next.What == inspect.RestEnds && f.next.Claim != "" && late > 0 && late <= 50*ms {
		return // the rest has begun so late
	}
	require.Equal(f.t, f.next.At, e.Next.At, "%s\n%s", f.e, e)
	if !f.next.Open && !e.Next.Open {
		require.Equal(f.t, f.next.Grants, e.Next.Grants, "%s\n%s", f.e, e)
	}
}

// comes fails unless what was said has come: at once if somebody looks now, or within 50 ms.
func (f *foreseen) comes(sweep bool) {
	next := f.next
	if sweep {
		f.done(testkit.Second(f.keeper.Operator().Sweep(ctx, f.kind, f.names[f.kind])))
	} else {
		f.Advance(51 * ms)
	}
	granted, is := []string{}, f.view(f.kind)
	for _, s := range f.was {
		now := find(is, s.id)
		if !s.holds && (now != nil && now.holds) {
			granted = append(granted, s.id)
		}
		if next.Claim != s.id {
			continue
		}
		switch next.What {
		case inspect.LeaseEnds, inspect.MaxHoldEnds:
			require.True(f.t, s.holds && now == nil, "%s: %+v", f.e, now)
		case inspect.ClaimLeaves:
			require.True(f.t, !s.holds && now == nil, "%s: %+v", f.e, now)
		case inspect.BindWaitEnds:
			require.True(f.t, !s.holds && (now == nil || now.holds || now.resource == ""), "%s: %+v", f.e, now)
		case inspect.LeavesPool, inspect.RestEnds:
			require.True(f.t, now == nil || !now.holds && now.resource == "", "%s: %+v", f.e, now)
		}
	}
	if sweep && !f.late && !next.Open && len(next.Grants) < 10 {
		require.ElementsMatch(f.t, next.Grants, granted, "%s", f.e)
	} else {
		require.Subset(f.t, granted, next.Grants, "%s", f.e)
	}
}
