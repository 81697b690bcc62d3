package checker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/torture/history"
)

// rulesOf are the rules that were broken.
func rulesOf(r *Report) (rules []string) {
	for _, v := range r.Violations {
		if !slices.Contains(rules, v.Rule) {
			rules = append(rules, v.Rule)
		}
	}
	return rules
}

func countOf(r *Report, rule string) RuleCount {
	return r.Rules[slices.IndexFunc(r.Rules, func(c RuleCount) bool { return c.Rule == rule })]
}

// worlds are the simulations that there are.
var worlds = []func(seed uint64, wrong bug) *sim{newSim, newLanesSim, newPausedSim, newWantedSim}

func TestACorrectLibraryIsNeverAccused(t *testing.T) {
	for seed := range uint64(4) {
		for _, faults := range [][]string{
			nil,
			{"kill"},
			{"stop"},
			{"cut"},
			{"flush"},
			{"restore"},
			{"clock forward"},
			{"clock back"},
			{"kill", "stop", "cut"},
			{"flush", "clock forward", "clock back"},
			allFaults,
		} {
			for _, world := range worlds {
				for _, v := range Check(world(seed, none).play(6000, faults)).Violations {
					t.Errorf("seed %d, faults %v: %s", seed, faults, v)
				}
			}
		}
	}
}

func TestEveryRuleIsCheckedInARound(t *testing.T) {
	checked := map[string]int{}
	for _, world := range worlds {
		report := Check(world(2, none).play(20_000, nil))
		require.Len(t, report.Rules, 23)
		for _, count := range report.Rules {
			checked[count.Rule] += count.Checked
			require.Zero(t, count.GaveUp, count.Rule)
		}
	}
	for rule, times := range checked {
		if !slices.Contains(ofFaults, rule) {
			require.Positive(t, times, rule)
		}
	}
}

// ofFaults are rules that look at what no simulation has: see TestRulesOfFaults and TestRulesOfDrains.
var ofFaults = []string{Kept, Outlasts, Returned, Drained}

// A library with a fault is accused of what it does, and of nothing that does not
// follow from it.
func TestALibraryWithAFaultIsAccused(t *testing.T) {
	both, alone := [][]string{nil, allFaults}, [][]string{nil}
	for _, tc := range []struct {
		world   func(uint64, bug) *sim
		bug     bug
		want    string
		follows []string   // what may follow from it
		faults  [][]string // without which it does not show
		steps   int        // more where a hold must last for longer than a lease
	}{
		{newSim, noHandOff, HandOff, nil, both, 5000},
		{newSim, lastFirst, Order, nil, both, 5000},
		{newSim, overGrant, Capacity, []string{Linearizable, HandOff}, both, 5000},
		{newSim, longBelief, Capacity, []string{Linearizable}, [][]string{{"cut"}, allFaults}, 40_000},
		{newSim, sameFence, Fence, []string{Linearizable, Capacity, HandOff, WakeUp}, both, 5000},
		{newSim, fallingFence, Fence, []string{Linearizable, Capacity, HandOff, Order}, both, 5000},
		{newSim, revived, Honesty, []string{Linearizable, Capacity}, [][]string{{"stop", "cut"}, allFaults}, 40_000},
		{newSim, lateEnd, Honesty, nil, both, 5000},
		{newSim, lostWait, Stuck, nil, both, 5000},
		{newSim, forceWorks, Refused, nil, both, 5000},
		{newSim, anyRelease, Capacity, []string{Linearizable, Refused, HandOff, Unharmed}, both, 5000},
		{newSim, leftBehind, Left, nil, both, 5000},
		{newSim, noPriority, Order, nil, both, 5000},
		{newSim, upsideDown, Order, nil, both, 5000},
		{newSim, noPush, WakeUp, nil, both, 5000},
		{newSim, needless, Unharmed, nil, both, 5000},
		{newSim, needlessEnd, Unharmed, nil, both, 5000},
		{newSim, otherGrant, Agreement, []string{Capacity, HandOff}, [][]string{{"restore"}, allFaults}, 40_000},

		{newWantedSim, wantUnheard, Wanted, nil, alone, 20_000},
		{newWantedSim, wantDropped, Wanted, nil, alone, 20_000},
		{newWantedSim, wantSticks, Wanted, nil, alone, 20_000},
		{newPausedSim, pauseIgnored, Paused, []string{HandOff}, alone, 20_000},
		{newPausedSim, neverResumed, Resumed, []string{HandOff}, alone, 20_000},

		{newLanesSim, passedOver, Order, nil, both, 10_000},
		{newLanesSim, noPriority, Order, nil, both, 10_000},
		{newLanesSim, generalFirst, Order, nil, both, 10_000},
		{newLanesSim, otherResource, Asked, []string{Order}, both, 10_000},
		{newLanesSim, wrongLane, HandOff, []string{Order}, both, 10_000},
		{newLanesSim, wrongLane, Order, []string{HandOff}, both, 10_000},
		{newLanesSim, endlessBind, Order, []string{HandOff, Idle}, both, 10_000},
		// Of what shows by a wait of more than a second, where little else happens, the
		// rounds are calm, and longer.
		{newLanesSim, forgottenLane, Idle, []string{Order}, alone, 40_000},
		{newLanesSim, sleepingAdd, Idle, nil, alone, 40_000},
		{newLanesSim, forgottenWaits, Absent, []string{Order}, [][]string{nil, {"stop"}}, 40_000},
		{newLanesSim, wronglyAbsent, Absent, nil, both, 40_000},
	} {
		t.Run(string(tc.bug)+", "+tc.want, func(t *testing.T) {
			const least, most = 2, 32 // rounds
			calm := tc.want == Idle || tc.want == Absent
			for _, faults := range tc.faults {
				seen := 0
				for seed := uint64(0); seed < least || seen == 0 && seed < most; seed++ {
					s := tc.world(seed, tc.bug)
					s.calm = calm
					broken := rulesOf(Check(s.play(tc.steps, faults)))
					if slices.Contains(broken, tc.want) {
						seen++
					}
					for _, rule := range broken {
						require.Contains(t, append(tc.follows, tc.want), rule)
					}
					if tc.steps == 40_000 && !calm && seen > 0 {
						break
					}
				}
				require.Positive(t, seen, "in %d rounds with the faults %v", most, faults)
			}
		})
	}
}

// What is changed in a history of a correct library by hand is found, too.
func TestAChangedHistoryIsFound(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func(d *drawer, run *history.Run) (changed bool)
		want    string
		follows []string
	}{
		{"two grants of a line are swapped", swapGrants, Order, []string{Capacity, Linearizable, Fence, HandOff, WakeUp, Agreement}},
		{"a hand-off comes late", delayGrant, HandOff, []string{Order, Agreement}},
		{"a hold lives past the next grant", outlive, Capacity, []string{Linearizable, Honesty}},
		{"a fence is given twice", repeatFence, Fence, []string{Linearizable, Capacity, HandOff, Order, WakeUp, Agreement}},
		{"an outcome is missing", loseOutcome, Stuck, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			changed := 0
			for seed := uint64(0); changed < 6; seed++ {
				require.Less(t, seed, uint64(100), "there is nothing to change")
				run := newSim(seed, none).play(4000, nil)
				if !tc.change(&drawer{rand.New(rand.NewPCG(seed, 1))}, run) {
					continue
				}
				changed++
				broken := rulesOf(Check(run))
				require.Contains(t, broken, tc.want, "seed %d", seed)
				for _, rule := range broken {
					require.Contains(t, append(tc.follows, tc.want), rule, "seed %d", seed)
				}
			}
		})
	}
}

// drawer draws what is changed in a history.
type drawer struct{ *rand.Rand }

// pair draws two grants that follow each other in a name of capacity 1 and will do, and changes them, if there are any.
func (d *drawer) pair(run *history.Run, will func(c *check, n *name, a, b *claim) bool, change func(a, b *claim)) (changed bool) {
	var found [][2]*claim
	c := &check{round: read(run)}
	for _, n := range c.names {
		if n.name != "single" && n.name != "queued" && n.name != "one" {
			continue
		}
		for i := 1; i < len(n.granted); i++ {
			if will(c, n, n.granted[i-1], n.granted[i]) {
				found = append(found, [2]*claim{n.granted[i-1], n.granted[i]})
			}
		}
	}
	if len(found) == 0 {
		return false
	}
	pair := found[d.IntN(len(found))]
	change(pair[0], pair[1])
	return true
}

func loseOutcome(d *drawer, run *history.Run) bool {
	var found []int
	for i, e := range run.Events {
		if e.Kind == history.Fail && e.Do == history.Try {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		return false
	}
	i := found[d.IntN(len(found))]
	run.Events = slices.Delete(run.Events, i, i+1)
	return true
}

func swapGrants(d *drawer, run *history.Run) bool {
	return d.pair(run, func(c *check, _ *name, a, b *claim) bool {
		return a.queued != nil && c.steady(a) && !a.restored && a.invoke.Do == history.Acquire && !a.invoke.Unordered && !b.invoke.Unordered &&
			a.invoke.Priority == b.invoke.Priority && b.invoke.At > a.queued.At
	}, func(a, b *claim) { a.ok.Fence, b.ok.Fence = b.ok.Fence, a.ok.Fence })
}

// delayGrant has the server grant a little before the claimant hears of it, instead of
// in the release.
func delayGrant(d *drawer, run *history.Run) bool {
	return d.pair(run, func(c *check, n *name, a, b *claim) bool {
		gave := a.released()
		if gave == nil || b.queued == nil || b.queued.At > gave.invoke.At || b.restored || b.invoke.Do == history.Reenter {
			return false
		}
		if b.fence() < gave.invoke.Real || b.fence() > gave.outcome.Real || b.ok.Real < gave.outcome.Real+3*blur {
			return false
		}
		return c.steady(b) && !c.unclear(n, a.ok.Resource, gave.invoke, gave.outcome) && a.ended == nil
	}, func(_, b *claim) { b.ok.Fence = b.ok.Real - blur/2 })
}

func outlive(d *drawer, run *history.Run) bool {
	return d.pair(run, func(_ *check, _ *name, a, _ *claim) bool {
		return len(a.alive) > 0 && a.invoke.Do != history.Reenter
	}, func(a, b *claim) {
		last := a.believed()
		last.Real = b.fence() + 10
		last.At = (last.Real - simEpoch) * 1000
		sortEvents(run)
	})
}

func repeatFence(d *drawer, run *history.Run) bool {
	return d.pair(run, func(_ *check, _ *name, a, b *claim) bool {
		return a.invoke.Do != history.Reenter && b.invoke.Do != history.Reenter
	}, func(a, b *claim) { b.ok.Fence = a.ok.Fence })
}

// A rule that looks at each pair of events would take ten times as long for these as
// it takes to make them. Both are measured in processor time of the same moments.
func TestATwentyThousandEventsAreCheckedAtOnce(t *testing.T) {
	for wrong, faults := range map[bug][]string{none: nil, overGrant: allFaults} {
		began := processor(t)
		run := newSim(3, wrong).play(140_000, faults)
		made := processor(t)
		require.Greater(t, len(run.Events), 20_000)
		report := Check(run)
		checked := processor(t) - made
		t.Log(len(run.Events), "events,", len(run.Faults), "faults,", wrong, len(report.Violations), "violations:", checked,
			"made in", made-began, countOf(report, Linearizable))
		require.Less(t, checked, 5*(made-began))
	}
}

// processor is how much of it this process has had.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// More is held than there is, and whose ends made room for some of it may be chosen in more
// ways than are tried: that is neither kept nor broken.
func TestASearchThatTakesTooLongIsGivenUp(t *testing.T) {
	const capacity, holds = 20, 60
	run := &history.Run{}
	for i := range int64(holds) {
		about := history.Event{Process: "w1.1", Primitive: "sem", Name: "s", Weight: 1, Capacity: capacity, Lease: 100_000, Do: history.Acquire}
		add := func(kind history.Kind, us int64, change func(*history.Event)) {
			e := about
			e.Kind, e.At, e.Real = kind, us*1000, simEpoch+us
			change(&e)
			run.Events = append(run.Events, e)
		}
		add(history.Invoke, 1000*i, func(e *history.Event) { e.Op = i + 1 })
		add(history.OK, 1000*i+900, func(e *history.Event) {
			e.Op, e.Claim, e.Fence = i+1, fmt.Sprint("c", i), simEpoch+1000*i+500
		})
		if i >= holds-capacity-1 { // one too many
			add(history.Alive, 1_000_000, func(e *history.Event) { e.Hold, e.Claim = i+1, fmt.Sprint("c", i) })
		}
	}
	sortEvents(run)
	report := Check(run)
	require.NotContains(t, rulesOf(report), Linearizable)
	require.Equal(t, 1, countOf(report, Linearizable).GaveUp)
	require.Contains(t, rulesOf(report), Capacity)
}

// The machine's own clock jumps: nothing that was written of it proves anything.
func TestAJumpOfTheMachinesClockIsNoViolation(t *testing.T) {
	run := newSim(5, none).play(20_000, nil)
	half := run.Events[len(run.Events)/2].At
	for i := range run.Events {
		if e := &run.Events[i]; e.At > half {
			e.Real += 3_000_000
		}
	}
	require.Empty(t, Check(run).Violations)
}

func TestAViolationIsShown(t *testing.T) {
	run := story(t, `
		0 w1.1 invoke acquire#1
		2 w1.1 ok acquire#1 fence=1 claim=node.cq8a7f0v1h2s3k4m5n6p
		8 w1.1 alive of#1 claim=node.cq8a7f0v1h2s3k4m5n6p
		1 w2.1 invoke acquire#1
		9.5 w2.1 ok acquire#1 fence=7
		fault stop 3 6 w1.1
		fault cut 300 600 w2.1`)
	report := Check(run)
	require.Len(t, report.Violations, 1)
	require.Equal(t, `capacity: lock x: 2 held where the capacity is 1: w2.1-1 was granted (fence 1700000000007000) while node.cq8a7f0v1h2s3k4m5n6p was believed in
  +0.000  w2.1     invoke  acquire #1  lock/x                  real 1700000000001000, lease 1000
  +1.000  w1.1     ok      acquire #1  lock/x  ..1h2s3k4m5n6p  fence 1700000000001000, real 1700000000002000, lease 1000
  +2.000  nemesis  begins  stop w1.1
  +5.000  nemesis  ends    stop w1.1
  +7.000  w1.1     alive   of #1       lock/x  ..1h2s3k4m5n6p  real 1700000000008000
  +8.500  w2.1     ok      acquire #1  lock/x  w2.1-1          fence 1700000000007000, real 1700000000009500, lease 1000`,
		report.Violations[0].String())
}
