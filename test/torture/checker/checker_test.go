package checker

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
		{newSim, revived, Honesty, []string{Linearizable, Capacity}, [][]string{{"stop", "cut"}, allFaults}, 40_000},
		{newSim, forceWorks, Refused, nil, both, 5000},
		{newSim, noPush, WakeUp, nil, both, 5000},
		{newSim, needless, Unharmed, nil, both, 5000},
		{newSim, otherGrant, Agreement, []string{Capacity, HandOff}, [][]string{{"restore"}, allFaults}, 40_000},

		{newWantedSim, wantUnheard, Wanted, nil, alone, 20_000},
		{newPausedSim, pauseIgnored, Paused, []string{HandOff}, alone, 20_000},
		{newPausedSim, neverResumed, Resumed, []string{HandOff}, alone, 20_000},

		{newLanesSim, passedOver, Order, nil, both, 10_000},
		{newLanesSim, otherResource, Asked, []string{Order}, both, 10_000},
		// It shows by a wait of more than a second, where little else happens: the rounds are calm, and longer.
		{newLanesSim, sleepingAdd, Idle, nil, alone, 40_000},
	} {
		t.Run(string(tc.bug)+", "+tc.want, func(t *testing.T) {
			const least, most = 2, 32 // rounds
			calm := tc.want == Idle
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
	var text strings.Builder
	for i := range holds {
		fmt.Fprintf(&text, "\n%[1]d..%[1]d.9 w1.1 ok acquire#%[2]d name=sem/s", i, i+1)
		fmt.Fprintf(&text, " capacity=%d lease=100000 fence=%d.5", capacity, i)
		if i >= holds-capacity-1 { // one too many
			text.WriteString(" alive=1000")
		}
	}
	report := Check(story(t, text.String()))
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
