package engine

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/clock"
)

const sec = time.Second

// entry adds a granted claim to a group, whose call at the moment at was told the deadline.
func (g *group) entry(id string, at, deadline time.Duration) *member {
	m := &member{id: id, group: g}
	m.asks()
	m.heard(g.version, at, deadline, past)
	return m
}

// outerOf5s is a group of one entry, of which 5 s are left at 0.
func outerOf5s() (*group, *member) {
	g := newGroup(groupKey{})
	return g, g.entry("outer", 0, 5*sec)
}

// of5sAnd20s is outerOf5s with an inner entry that has added 20 s.
func of5sAnd20s() (*group, *member, *member) {
	g, o := outerOf5s()
	return g, o, g.entry("inner", 0, 25*sec)
}

// told is an own answer of a claim to a call that was sent in the same moment.
func (m *member) told(at, deadline time.Duration) { m.heard(m.seen(), at, deadline, past) }

func TestAReleaseLeavesTheDeadlineLessWhatIsUnused(t *testing.T) {
	for name, tc := range map[string]struct {
		by, since, now, left time.Duration
	}{
		"at once":               {20 * sec, 0, 0, 5 * sec},
		"after a while":         {20 * sec, 0, 8 * sec, 13 * sec},
		"in use from later on":  {20 * sec, 6 * sec, 8 * sec, 7 * sec},
		"an acquire on its way": {20 * sec, 60 * sec, 8 * sec, 5 * sec},
	} {
		t.Run(name, func(t *testing.T) {
			g, o, i := of5sAnd20s()
			g.noteNothing(o, i)
			require.Equal(t, never, o.ceiling())
			require.True(t, i.leaves(tc.now, tc.by, tc.since, []string{"outer"}))
			require.Equal(t, []string{"outer"}, i.heralded())
			require.Equal(t, tc.left, o.ceiling())
		})
	}
}

// noteNothing has claims note that nothing is left without them.
func (g *group) noteNothing(of ...*member) {
	for _, m := range of {
		m.asks()
		m.before = past
	}
}

func TestAReleaseThatTakesNothingBackLowersNobody(t *testing.T) {
	_, o, i := of5sAnd20s()
	require.False(t, i.leaves(20*sec, 20*sec, 0, []string{"outer"}), "used up")
	require.False(t, i.leaves(0, 0, 0, []string{"outer"}), "it has not extended")
	require.False(t, i.leaves(0, 20*sec, 0, nil), "nobody to lower")
	require.Empty(t, i.heralded())
	require.Equal(t, never, o.ceiling())
	require.Empty(t, i.answered(sec))
}

func TestOnlyWhoIsHeraldedHasTheCeiling(t *testing.T) {
	g, o, i := of5sAnd20s()
	require.True(t, i.leaves(0, 20*sec, 0, []string{"outer"}))
	require.Equal(t, 5*sec, o.ceiling())
	require.Equal(t, never, g.entry("late", 0, 25*sec).ceiling())
	anew := &member{id: "outer", group: g}
	require.Equal(t, 5*sec, anew.ceiling(), "taken up again, with the same id")
}

func TestTwoReleasesTakeBackTheSum(t *testing.T) {
	g, o := outerOf5s()
	first, second := g.entry("first", 0, 8*sec), g.entry("second", 0, 12*sec)
	require.True(t, first.leaves(sec, 3*sec, 0, []string{"outer", "second"}))
	require.True(t, second.leaves(sec, 4*sec, 0, []string{"outer"}))
	require.Equal(t, 12*sec-2*sec-3*sec, o.ceiling())
	require.Equal(t, []string{"outer", "second"}, first.answered(sec))
	require.Equal(t, 7*sec, o.ceiling(), "the other one is on its way")
	o.told(sec, 10*sec)
	require.Equal(t, 7*sec, o.ceiling(), "10 s less the 3 s of the other one")
	require.Equal(t, []string{"outer"}, second.answered(sec))
	require.Equal(t, never, o.ceiling())
}

func TestAnExtensionThatNeverRanIsNotTaken(t *testing.T) {
	g, o := outerOf5s()
	i := &member{id: "inner", group: g}
	i.asks()
	o.told(2*sec, 5*sec) // nothing was added
	require.True(t, i.leaves(2*sec, 20*sec, time.Minute, []string{"outer"}))
	require.Equal(t, 5*sec, o.ceiling())
}

func TestWhatWasLeftBeforeIsTooMuchOnceAnotherHasGone(t *testing.T) {
	for name, answered := range map[string]bool{"on its way": false, "answered": true} {
		t.Run(name, func(t *testing.T) {
			g, o := outerOf5s()
			first := g.entry("first", 0, 15*sec)
			second := g.entry("second", 0, 35*sec) // asked for when 15 s were left
			require.True(t, first.leaves(0, 10*sec, 0, []string{"outer", "second"}))
			if answered {
				first.answered(0)
				o.told(0, 25*sec)
			}
			require.True(t, second.leaves(0, 20*sec, 0, []string{"outer"}))
			require.Equal(t, 5*sec, o.ceiling())
		})
	}
}

func TestNoReleaseTakesBackARenewal(t *testing.T) {
	g, o := outerOf5s()
	i := g.entry("inner", 0, 35*sec)
	o.heard(o.seen(), 2*sec, 35*sec, 7*sec)
	g.noteNothing(i)
	require.True(t, i.leaves(2*sec, time.Minute, 2*sec, []string{"outer"}))
	require.Equal(t, 7*sec, o.ceiling())
	o.heard(o.seen(), 4*sec, 35*sec, 9*sec)
	require.Equal(t, 9*sec, o.ceiling(), "also while it is on its way")
}

func TestARepeatedAttemptLowersOnce(t *testing.T) {
	g, o, i := of5sAnd20s()
	g.noteNothing(i)
	require.True(t, i.leaves(0, 20*sec, 0, []string{"outer"}))
	require.False(t, i.leaves(sec, 20*sec, 0, []string{"outer", "late"}))
	require.Equal(t, []string{"outer"}, i.heralded(), "as before: the first attempt may run yet")
	require.Equal(t, 5*sec, o.ceiling())
}

// What a call from the same version tells may be from before a release that is on its way.
func TestAnAnswerDuringAReleaseIsTakenLessWhatIsUnused(t *testing.T) {
	_, o, i := of5sAnd20s()
	require.True(t, i.leaves(0, 20*sec, 0, []string{"outer"}))
	o.told(8*sec, 30*sec)
	require.Equal(t, 18*sec, o.ceiling())
	o.told(20*sec, 31*sec)
	require.Equal(t, 31*sec, o.ceiling(), "all is used up")
}

func TestAnAnswerFromAnEarlierTurnIsNotHeard(t *testing.T) {
	g, o, i := of5sAnd20s()
	sent := o.seen()
	require.True(t, o.heard(sent, 0, 25*sec, past))
	require.True(t, i.leaves(0, 20*sec, 0, []string{"outer"}))
	require.False(t, o.heard(sent, 0, 99*sec, past), "sent before the release")
	sent = o.seen()
	i.answered(0)
	require.False(t, o.heard(sent, 0, 99*sec, past), "sent before its answer, in the same moment")
	require.Equal(t, 5*sec, g.least)
	require.True(t, o.heard(o.seen(), 0, 6*sec, past))
	require.Equal(t, 6*sec, g.least)
}

func TestALiftedDeadlineIsWhatIsLeft(t *testing.T) {
	_, o, i := of5sAnd20s()
	require.True(t, i.leaves(0, 20*sec, 0, []string{"outer"}))
	i.answered(0)
	require.Equal(t, 5*sec, o.lifts(25*sec))
	require.Equal(t, 5*sec, o.lifts(0), "no deadline is one that is far off")
	require.Equal(t, 3*sec-1, o.lifts(3*sec), "moved, so that no beat moves it")
	require.Equal(t, 3*sec, (*member)(nil).lifts(3*sec))
}

func TestWhatIsTakenUpAgainIsBelievedInWithinWhatIsLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		sent, answered, most time.Duration
	}{
		"sent before the release":          {sent: sec, most: 7 * sec},
		"sent while it is on its way":      {sent: 4 * sec, most: 10 * sec},
		"sent before it is answered":       {sent: 4 * sec, answered: 5 * sec, most: 7 * sec},
		"sent in the moment of the answer": {sent: 5 * sec, answered: 5 * sec, most: 7 * sec},
		"sent later":                       {sent: 6 * sec, answered: 5 * sec, most: 26 * sec},
	} {
		t.Run(name, func(t *testing.T) {
			g, o, i := of5sAnd20s()
			require.True(t, i.leaves(2*sec, 20*sec, 0, []string{"outer"}))
			i.ends()
			o.ends()
			if tc.answered != 0 {
				i.answered(tc.answered)
			}
			again := &member{id: "outer", group: g}
			require.Equal(t, tc.most, again.adopted(tc.sent, 26*sec))
			require.Equal(t, 1, g.holding)
			require.Equal(t, tc.most, g.least, "nor is more left when others leave")
		})
	}
	require.Equal(t, 26*sec, (*member)(nil).adopted(0, 26*sec))
}

func TestALaterHolderMakesNoTurnOlder(t *testing.T) {
	g, o, i := of5sAnd20s()
	require.True(t, i.leaves(2*sec, 20*sec, 0, []string{"outer"}))
	i.answered(5 * sec)
	i.ends()
	o.ends()
	g.entry("late", 3*sec, 7*sec) // whose call was sent before that
	require.Equal(t, 7*sec, (&member{id: "outer", group: g}).adopted(4*sec, 26*sec))
}

// An entry has limits of its own, which say nothing of the others.
func TestAnAnswerThatGivesLessLowersNothing(t *testing.T) {
	g, o := outerOf5s()
	o.limited = true
	o.told(sec, 2*sec)
	require.Equal(t, 5*sec, g.least)
}

// A failover may have lost what an entry had added, or a renewal: the answers since say so.
func TestALossIsKnownToTheCeiling(t *testing.T) {
	g, o := outerOf5s()
	i, lost := g.entry("inner", 0, 25*sec), g.entry("lost", 0, 45*sec)
	o.told(0, 45*sec)
	o.told(sec, 25*sec)
	lost.ends()
	require.True(t, i.leaves(sec, 20*sec, sec, []string{"outer"}))
	require.Equal(t, 5*sec, o.ceiling())
	o.told(0, 45*sec)
	require.Equal(t, 5*sec, o.ceiling(), "an older call says nothing")
}

// While none of its entries is here, those of other nodes may give back.
func TestWhatWasKnownOfAnEarlierHoldDoesNotCount(t *testing.T) {
	g, o := outerOf5s()
	o.heard(o.seen(), 0, 99*sec, 99*sec)
	late := &member{id: "late", group: g}
	late.asks()
	o.ends()
	o.ends()
	late.heard(late.noted, sec, 9*sec, past)
	next := g.entry("next", sec, 9*sec)
	require.True(t, late.leaves(sec, 4*sec, sec, []string{"next"}))
	require.Equal(t, 5*sec, next.ceiling())
	require.Equal(t, 2, g.holding)
}

func TestAGroupIsIdleOnceNothingCanBeTakenBack(t *testing.T) {
	g, o := outerOf5s()
	i := g.entry("inner", 0, 15*sec)
	require.True(t, g.idle(0))
	require.True(t, i.leaves(0, 10*sec, 0, []string{"outer"}))
	require.False(t, g.idle(10*sec-1))
	require.True(t, g.idle(10*sec))
	require.Equal(t, 5*sec, o.ceiling(), "it may have run, and be answered late")
}

func TestWhatIsFarOffStaysInRange(t *testing.T) {
	const years = 290 * 365 * 24 * time.Hour
	g := newGroup(groupKey{})
	o := g.entry("outer", 0, moment(0))
	for i := range 3 {
		require.True(t, g.entry(strconv.Itoa(i), 0, years).leaves(0, years, 0, []string{"outer"}))
	}
	require.GreaterOrEqual(t, o.ceiling(), past)
	require.Equal(t, past, nearer(sec, sec), "0 is none")
}

// A group goes with its last claim, or later with what was on its way.
func TestNoGroupIsLeftBehind(t *testing.T) {
	e := New(Config{Node: "n", Wait: time.Hour, Clock: clock.New()})
	defer func() { require.NoError(t, e.Close(context.Background())) }()
	claim := func(id string, extends time.Duration) *Claim {
		c := &Claim{ID: id, Name: "door", Extends: extends, Record: Record{Owner: "me", Lease: time.Hour, Wait: time.Hour}}
		c.begins(context.Background(), e.clock.Now(), false)
		require.NoError(t, e.enter(c))
		e.work.Done()
		e.joinGroup(c)
		return c
	}
	plain := claim("plain", 0)
	require.Nil(t, plain.part.Load(), "nobody extends")
	extends := claim("extends", time.Hour)
	require.Len(t, extends.part.Load().group.claims, 2)
	e.forget(plain)
	e.forget(plain)
	require.Len(t, e.groups, 1)
	require.NoError(t, e.Begin())
	e.forget(extends)
	require.Len(t, e.groups, 1, "something is being taken up")
	e.End()
	require.Empty(t, e.groups)
}
