package checker

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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

func TestACorrectLibraryIsNeverAccused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		faults := rapid.SampledFrom([][]string{
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
		}).Draw(t, "faults")
		report := Check(newSim(seed, none).play(6000, faults))
		for _, v := range report.Violations {
			t.Fatal(v)
		}
	})
}

func TestEveryRuleIsCheckedInARound(t *testing.T) {
	report := Check(newSim(1, none).play(20_000, nil))
	require.Len(t, report.Rules, 13)
	for _, count := range report.Rules {
		require.Positive(t, count.Checked, count.Rule)
		require.Zero(t, count.GaveUp, count.Rule)
	}
}

// A library with a fault is accused of what it does, and of nothing that does not
// follow from it.
func TestALibraryWithAFaultIsAccused(t *testing.T) {
	for _, tc := range []struct {
		bug     bug
		want    string
		follows []string // what may follow from it
		faults  []string // without which it does not show
	}{
		{noHandOff, HandOff, nil, nil},
		{lastFirst, Order, nil, nil},
		{overGrant, Capacity, []string{Linearizable, HandOff}, nil},
		{longBelief, Capacity, []string{Linearizable}, []string{"cut"}},
		{sameFence, Fence, []string{Linearizable, Capacity, HandOff, WakeUp}, nil},
		{fallingFence, Fence, []string{Linearizable, Capacity, HandOff, Order}, nil},
		{revived, Honesty, []string{Linearizable, Capacity}, []string{"stop", "cut"}},
		{lateEnd, Honesty, nil, nil},
		{lostWait, Stuck, nil, nil},
		{forceWorks, Refused, nil, nil},
		{anyRelease, Capacity, []string{Linearizable, Refused, HandOff, Unharmed}, nil},
		{leftBehind, Left, nil, nil},
		{noPriority, Order, nil, nil},
		{upsideDown, Order, nil, nil},
		{noPush, WakeUp, nil, nil},
		{needless, Unharmed, nil, nil},
		{needlessEnd, Unharmed, nil, nil},
		{otherGrant, Agreement, []string{Capacity, HandOff}, []string{"restore"}},
	} {
		t.Run(string(tc.bug), func(t *testing.T) {
			const least, most = 8, 32 // rounds
			for _, faults := range [][]string{tc.faults, allFaults} {
				seen, steps := 0, 10_000
				if len(faults) > 2 {
					steps = 20_000 // there is calm between them
				}
				if tc.bug == otherGrant || tc.bug == longBelief {
					steps = 40_000 // a hold must last for longer than a lease
				}
				for seed := uint64(0); seed < least || seen == 0 && seed < most; seed++ {
					broken := rulesOf(Check(newSim(seed, tc.bug).play(steps, faults)))
					if slices.Contains(broken, tc.want) {
						seen++
					}
					for _, rule := range broken {
						require.Contains(t, append(tc.follows, tc.want), rule)
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
		change  func(t *rapid.T, run *history.Run)
		want    string
		follows []string
	}{
		{"two grants of a line are swapped", swapGrants, Order, []string{Capacity, Linearizable, Fence, HandOff, WakeUp, Agreement}},
		{"a hand-off comes late", delayGrant, HandOff, []string{Order, Agreement}},
		{"a hold lives past the next grant", outlive, Capacity, []string{Linearizable, Honesty}},
		{"a fence is given twice", repeatFence, Fence, []string{Linearizable, Capacity, HandOff, Order, WakeUp, Agreement}},
		{"an outcome is missing", func(t *rapid.T, run *history.Run) {
			i := draw(t, run, func(e *history.Event) bool { return e.Kind == history.Fail && e.Do == history.Try })
			run.Events = slices.Delete(run.Events, i, i+1)
		}, Stuck, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				run := newSim(rapid.Uint64().Draw(t, "seed"), none).play(8000, nil)
				tc.change(t, run)
				broken := rulesOf(Check(run))
				if !slices.Contains(broken, tc.want) {
					t.Fatalf("broken: %v", broken)
				}
				for _, rule := range broken {
					if rule != tc.want && !slices.Contains(tc.follows, rule) {
						t.Fatalf("broken: %v", broken)
					}
				}
			})
		})
	}
}

// draw returns the index of an event that will do.
func draw(t *rapid.T, run *history.Run, will func(*history.Event) bool) int {
	var found []int
	for i := range run.Events {
		if will(&run.Events[i]) {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(found).Draw(t, "event")
}

// pairs are grants that follow each other in a name of capacity 1.
func pairs(t *rapid.T, run *history.Run, will func(c *check, n *name, a, b *claim) bool) (a, b *claim) {
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
		t.Skip("there is none")
	}
	pair := rapid.SampledFrom(found).Draw(t, "pair")
	return pair[0], pair[1]
}

func swapGrants(t *rapid.T, run *history.Run) {
	a, b := pairs(t, run, func(c *check, _ *name, a, b *claim) bool {
		return a.queued != nil && c.steady(a) && !a.restored && a.invoke.Do == history.Acquire && !a.invoke.Unordered && !b.invoke.Unordered &&
			a.invoke.Priority == b.invoke.Priority && b.invoke.At > a.queued.At
	})
	a.ok.Fence, b.ok.Fence = b.ok.Fence, a.ok.Fence
}

// delayGrant has the server grant a little before the claimant hears of it, instead of
// in the release.
func delayGrant(t *rapid.T, run *history.Run) {
	_, b := pairs(t, run, func(c *check, n *name, a, b *claim) bool {
		gave := a.released()
		if gave == nil || b.queued == nil || b.queued.At > gave.invoke.At || b.restored || b.invoke.Do == history.Reenter {
			return false
		}
		if b.fence() < gave.invoke.Real || b.fence() > gave.outcome.Real || b.ok.Real < gave.outcome.Real+3*blur {
			return false
		}
		return c.steady(b) && !c.unclear(n, gave.invoke, gave.outcome) && a.ended == nil
	})
	b.ok.Fence = b.ok.Real - blur/2
}

func outlive(t *rapid.T, run *history.Run) {
	a, b := pairs(t, run, func(_ *check, _ *name, a, b *claim) bool { return len(a.alive) > 0 && a.invoke.Do != history.Reenter })
	last := a.believed()
	last.Real = b.fence() + 10
	last.At = (last.Real - simEpoch) * 1000
	sortEvents(run)
}

func repeatFence(t *rapid.T, run *history.Run) {
	a, b := pairs(t, run, func(_ *check, _ *name, a, b *claim) bool {
		return a.invoke.Do != history.Reenter && b.invoke.Do != history.Reenter
	})
	b.ok.Fence = a.ok.Fence
}

func TestATwentyThousandEventsAreCheckedAtOnce(t *testing.T) {
	for _, faults := range [][]string{nil, {"stop", "cut", "kill"}, allFaults} {
		for _, wrong := range []bug{none, overGrant} {
			run := newSim(3, wrong).play(140_000, faults)
			require.Greater(t, len(run.Events), 20_000)
			began := time.Now()
			report := Check(run)
			took := time.Since(began)
			t.Log(len(run.Events), "events,", len(run.Faults), "faults,", wrong, len(report.Violations), "violations:", took, countOf(report, Linearizable))
			require.Less(t, took, 5*time.Second)
		}
	}
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
	sortEvents(run)
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
