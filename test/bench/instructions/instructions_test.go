package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/scripts/composed"
	"github.com/berth-go/berth/test/bench/server"
)

func TestADumpIsCountedWithoutTheHousekeeping(t *testing.T) {
	const head = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\ncmd: redis-server --port 1\npart: 2\n\n\n" +
		"desc: Timerange: Basic block 4 - 99\ndesc: Trigger: Client Request\n\npositions: line\nevents: Ir\nsummary: 1\n\n"
	const script = "ob=(3) /usr/bin/redis-server\nfl=(7) ???\nfn=(9) evalShaCommand\n0 17\ncfn=(11) lua_call\ncalls=2 0\n0 4000\n\n"
	const totals = "totals: 123456\n"
	for name, c := range map[string]struct {
		dump string
		want float64
	}{
		"no housekeeping":           {head + script + totals, 123456},
		"named where it is called":  {head + "fn=(5) aeMain\n0 3\ncfn=(8) serverCron\ncalls=2 0 \n0 400\n0 7\n" + script + totals, 123056},
		"named where it begins":     {head + "fn=(8) serverCron\n0 50\ncfn=(2) other\ncalls=1 0 \n0 99\n\nfn=(5) aeMain\ncfn=(8)\ncalls=2 0 \n0 400\n" + script + totals, 123056},
		"called from two functions": {head + "fn=(5) a\ncfn=(8) serverCron\ncalls=1 0 \n0 400\n\nfn=(6) b\ncfn=(8)\ncalls=1 0 \n0 56\n" + totals, 123000},
		"in another object file":    {head + "fn=(5) a\ncob=(4) /lib/x.so\ncfi=(2) ???\ncfn=(8) serverCron\ncalls=1 0 \n0 456\n" + totals, 123000},
	} {
		total, err := parseDump(strings.NewReader(c.dump))
		require.NoError(t, err, name)
		require.InDelta(t, c.want, total, 0, name)
	}
	for _, dump := range []string{"", head + script, head + "totals: many\n", head + "cfn=(8) serverCron\ncalls=1 0\n0\n" + totals} {
		_, err := parseDump(strings.NewReader(dump))
		require.Error(t, err, dump)
	}
}

func sampleResult() result {
	r := result{Server: "Redis 7", Valgrind: "3", Revision: "abc", Date: "today", Rounds: 3, Steps: []found{
		{Step: "same", Does: "the one", Expected: 2, Budget: 102}, {Step: "more", Expected: 1, Budget: 1}, {Step: "peer_new", Expected: 1},
	}}
	for _, thousands := range []float64{103, 101, 102} {
		r.Steps[0].add(thousands, 2)
		r.Steps[1].add(thousands+2, 1)
		r.Steps[2].add(thousands, 1)
	}
	return r
}

func sampleBaseline() baseline {
	return baseline{Server: "Redis 7", Thousands: map[string]float64{"same": 100, "more": 100}}
}

func TestAStepIsComparedWithItsBaseline(t *testing.T) {
	r := sampleResult()
	require.Equal(t, []string{"more: 1.04 of its baseline"}, r.compare(sampleBaseline()))
	require.InDelta(t, 102, r.Steps[0].Thousands, 0)
	require.InDelta(t, 103.0/101-1, r.Steps[0].spread(), 1e-9)
	require.InDelta(t, 1.02, r.Steps[0].Ratio, 1e-9)
	require.InDelta(t, 1.04, r.Steps[1].Ratio, 1e-9)
	require.Zero(t, r.Steps[2].Ratio)

	var table bytes.Buffer
	require.NoError(t, r.text(&table))
	require.Regexp(t, `(?m)^same +102\.0 +100\.0 +1\.020 +102 met +2\.0 % +2 +the one$`, table.String())
	require.Regexp(t, `(?m)^more +104\.0 +100\.0 +1\.040 ! +1 missed `, table.String())
	require.Regexp(t, `(?m)^peer_new +102\.0 +- +- +- `, table.String())
	require.Contains(t, r.page(), `
| same | the one | 102 | ≤ 102 | met |
| more |  | 104 | ≤ 1 | missed |
| peer_new |  | 102 | | |
| all | the greatest ratio to a baseline, of more | 1.040 | ≤ 1.02 | missed |
`)
}

func TestAStepThatIsNotAsItShouldBeIsMeasuredOnceMore(t *testing.T) {
	r := sampleResult()
	r.Steps[0].add(90, 2.01)
	rounds := [][]found{{{Thousands: 90, Scripts: 2.01}, {Thousands: 103, Scripts: 1}}, {{Thousands: 101.5, Scripts: 2}, {Thousands: 101, Scripts: 1}}}
	require.NoError(t, r.again(sampleBaseline(), func(these []int) error {
		require.Equal(t, []int{0, 1}, these)
		for _, i := range these {
			r.Steps[i].add(rounds[0][i].Thousands, rounds[0][i].Scripts)
		}
		rounds = rounds[1:]
		return nil
	}))
	require.Empty(t, rounds)
	require.Empty(t, r.compare(sampleBaseline()))
	require.Equal(t, []float64{101.5}, r.Steps[0].Rounds, "the others were disturbed")
	require.InDelta(t, 101, r.Steps[1].Thousands, 0)
	var table bytes.Buffer
	require.NoError(t, r.text(&table))
	require.Regexp(t, `(?m)^more +101\.0 .* 4\.0 %, least `, table.String())

	r, measured := sampleResult(), 0
	require.NoError(t, r.again(sampleBaseline(), func([]int) error {
		r.Steps[1].add(104, 1)
		measured++
		return nil
	}))
	require.Equal(t, repeats, measured)
	require.Equal(t, []string{"more: 1.03 of its baseline"}, r.compare(sampleBaseline()))
}

func TestTheMedianOfAnEvenNumberOfRoundsIsBetweenTwo(t *testing.T) {
	f := found{}
	for _, thousands := range []float64{4, 1, 3, 2} {
		f.add(thousands, 0)
	}
	require.InDelta(t, 2.5, f.Thousands, 0)
}

func TestOtherScriptsThanExpectedAreSaid(t *testing.T) {
	r := sampleResult()
	r.Steps[0].add(102, 2.01) // in one round of four
	r.Steps[0].add(102, 2)
	b := sampleBaseline()
	b.Thousands["more"] = 104
	require.Equal(t, []string{"same: a cycle was 2.01 scripts in place of 2"}, r.compare(b))
	var table bytes.Buffer
	require.NoError(t, r.text(&table))
	require.Regexp(t, `(?m)^same .* 2\.01 ! not 2 `, table.String())
}

func TestABaselineOfAnotherServerIsSaid(t *testing.T) {
	r, b := sampleResult(), sampleBaseline()
	b.Server, b.Thousands["more"] = "Valkey 8", 104
	require.Equal(t, []string{"the baseline is of Valkey 8, this is Redis 7"}, r.compare(b))
}

func TestTheBaselineIsUpdatedByWhatWasMeasured(t *testing.T) {
	file := filepath.Join(t.TempDir(), "baseline.json")
	b, err := readBaseline(file)
	require.NoError(t, err)
	require.Empty(t, b.Thousands)

	b = sampleBaseline()
	b.Thousands["other"], b.Thousands["no more"] = 7, 8
	b.update(sampleResult(), []step{{name: "same"}, {name: "more"}, {name: "peer_new"}, {name: "other"}})
	require.NoError(t, writeJSON(file, b))
	got, err := readBaseline(file)
	require.NoError(t, err)
	require.Equal(t, baseline{
		Server: "Redis 7", Revision: "abc", Date: "today", Rounds: 3,
		Thousands: map[string]float64{"same": 102, "more": 104, "peer_new": 102, "other": 7},
	}, got)
}

func TestTheCommittedBaselineHasEveryStep(t *testing.T) {
	b, err := readBaseline(filepath.Join("..", "baseline.json"))
	require.NoError(t, err)
	require.NotEmpty(t, b.Server)
	require.Len(t, b.Thousands, len(allSteps()))
	for _, s := range allSteps() {
		require.Positive(t, b.Thousands[s.name], s.name)
	}
}

func TestThePageHasEveryBudget(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "generated", "benchmarks.md"))
	require.NoError(t, err)
	for _, s := range allSteps() {
		if s.budget > 0 {
			require.Regexp(t, fmt.Sprintf(`\n\| %s \| %s \| [0-9.]+ \| ≤ %v \| (met|missed) \|\n`, s.name, s.does, s.budget), string(page))
		}
	}
}

func TestFlags(t *testing.T) {
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, options{rounds: 1, baseline: "baseline.json"}, o)
	for _, args := range [][]string{{"-rounds", "0"}, {"more"}, {"-strict=maybe"}} {
		_, err = parse(args, io.Discard)
		require.Error(t, err, args)
	}
	_, err = parse([]string{"-h"}, io.Discard)
	require.ErrorIs(t, err, flag.ErrHelp)
}

func TestStepsAreChosenByTheirBeginnings(t *testing.T) {
	for only, want := range map[string][]string{
		"": {"a_1", "a_10", "b"}, "a": {"a_1", "a_10"}, "b, a_10": {"a_10", "b"},
	} {
		chosen, err := choose([]step{{name: "a_1"}, {name: "a_10"}, {name: "b"}}, only)
		require.NoError(t, err, only)
		var names []string
		for _, s := range chosen {
			names = append(names, s.name)
		}
		require.Equal(t, want, names, only)
	}
	_, err := choose([]step{{name: "a"}}, "d")
	require.Error(t, err)
}

// nothing counts nothing.
type nothing struct{}

func (nothing) zero(context.Context) error             { return nil }
func (nothing) total(context.Context) (float64, error) { return 0, nil }

// TestEveryStepIsTheScriptsThatItSays runs all steps on servers that are not under
// callgrind. A run would also count whatever else a node sends meanwhile.
func TestEveryStepIsTheScriptsThatItSays(t *testing.T) {
	// Those with cycles of their own wait for time to pass: a run of the program says where the
	// count of such a step is off.
	steps := slices.DeleteFunc(allSteps(), func(s step) bool { return s.cycles != 0 })
	require.Greater(t, len(steps), 45, "and TestTheCommittedBaselineHasEveryStep says which have gone")
	scripts, ran, errs := make([]float64, len(steps)), make([]any, len(steps)), make([]error, len(steps))
	var running sync.WaitGroup
	turns := make(chan struct{}, 4)
	for i, s := range steps {
		s.cycles, s.warm = 3, 1 // the first loads the scripts
		running.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			scripts[i], ran[i], errs[i] = scriptsOf(t.Context(), s)
		})
	}
	running.Wait()
	known := map[string]bool{}
	for i, s := range steps {
		require.False(t, known[s.name], s.name)
		known[s.name] = true
		require.NotEmpty(t, s.does, s.name)
		require.NoError(t, errs[i], s.name)
		require.InDelta(t, s.scripts, scripts[i], 0, "%s: %v", s.name, ran[i])
	}
}

// A step is settled when its scripts have run, and not when the server has asked for their sources.
func TestAScriptThatTheServerDoesNotKnowIsCountedOnceItHasRun(t *testing.T) {
	addr, stop, err := server.Start(t.Context())
	require.NoError(t, err)
	m, err := newMachine(addr, nothing{}, stop)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.close()) }()
	p := probe{machine: m, ctx: t.Context()}
	n, err := p.connect()
	require.NoError(t, err)
	defer n.Close()
	s := composed.Library().Scripts()[0]
	known := func() rueidis.Completed { return n.B().Evalsha().Sha1(s.SHA).Numkeys(0).Build() }

	for range 2 {
		require.ErrorContains(t, n.Do(t.Context(), known()).Error(), "NOSCRIPT")
		require.ErrorContains(t, n.DoMulti(t.Context(), known(), known())[1].Error(), "NOSCRIPT")
	}
	require.Zero(t, n.sent.Load())
	require.Zero(t, n.answered.Load())
	n.Do(t.Context(), n.B().Eval().Script(s.Source()).Numkeys(0).Build()) // it refuses to run without keys
	n.DoMulti(t.Context(), known(), n.B().Ping().Build())
	require.EqualValues(t, 2, n.sent.Load())
	require.EqualValues(t, 2, n.answered.Load())
	require.Equal(t, []map[string]int{{s.Name: 2}}, p.ran())
}

// scriptsOf runs a step on a server of its own. ran are the scripts that its nodes have called.
func scriptsOf(ctx context.Context, s step) (scripts float64, ran any, err error) {
	addr, stop, err := server.Start(ctx)
	if err != nil {
		return 0, nil, err
	}
	m, err := newMachine(addr, nothing{}, stop)
	if err != nil {
		return 0, nil, err
	}
	p := probe{machine: m, ctx: ctx, step: s}
	_, scripts, err = p.measure()
	return scripts, p.ran(), errors.Join(err, m.close())
}

func TestMain(m *testing.M) {
	// rueidis looks at a server's topology once more some time after it was closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}
