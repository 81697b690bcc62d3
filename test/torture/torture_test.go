package torture

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/harness"
	"github.com/berth-go/berth/test/torture/checker"
	"github.com/berth-go/berth/test/torture/history"
)

var (
	duration = flag.Duration("torture.duration", 0, "how long to run; 0: one short round on each topology")
	seed     = flag.Int64("torture.seed", 0, "the seed of the first round; 0 draws one, if there is a duration")
	rounds   = flag.Int("torture.rounds", 0, "how many rounds at the most; 0: as many as fit")
	keep     = flag.String("torture.keep", "", "the folder in which the histories stay; default: only those with a violation do")
	replay   = flag.String("torture.replay", "", "check the histories in this folder again, and do nothing else")
	on       = flag.String("torture.on", "", "the topologies, with commas between; default all")
	only     = flag.String("torture.faults", "", "only faults whose names contain this; default all")
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// TestTorture is a run. The draws of a round come from its seed alone, so that it can
// be run again: the same faults in the same order, and workers that draw from the same
// seeds. What becomes of that is a matter of moments, which are not the same.
func TestTorture(t *testing.T) {
	if *replay != "" {
		check(t, *replay)
		return
	}
	t.Parallel()
	first := *seed
	require.GreaterOrEqual(t, first, int64(0), "-torture.seed")
	if isShort() {
		first = seedOfShort
	} else if first == 0 {
		first = time.Now().UnixMilli() % 1_000_000 * 1000
	}
	program, err := harness.Build(".", "./worker", t.TempDir())
	require.NoError(t, err)
	r := &run{T: t, began: time.Now(), program: program, tally: newTally()}
	r.say("seed %d", first)
	defer func() {
		fmt.Println()
		r.tally.print(os.Stdout, time.Since(r.began))
	}()
	worlds := r.prepare()
	for _, w := range worlds {
		r.tally.expect(w.faults)
	}
	interrupted, second := signal.NotifyContext(context.Background(), os.Interrupt)
	defer second()
	over := context.AfterFunc(interrupted, func() {
		r.say("interrupted; the run ends with this round, at once if you interrupt again")
		second()
	})
	defer over()
	end := time.Now().Add(*duration)
	for n := 0; n < len(worlds) || *duration > 0 && time.Now().Before(end); n++ {
		if *rounds > 0 && n == *rounds || interrupted.Err() != nil {
			break
		}
		w := worlds[n%len(worlds)]
		r.round(w, first+int64(n/len(worlds)))
		if t.Failed() && r.tally.found() >= 5 {
			r.say("enough violations to look at; the run ends here")
			break
		}
	}
	require.Positive(t, r.tally.operations, "no worker has done anything")
}

// check reads what a run has kept, by rounds.
func check(t *testing.T, kept string) {
	t.Helper()
	begin, tally := time.Now(), newTally()
	dirs, err := filepath.Glob(filepath.Join(kept, "*", history.RunFile))
	require.NoError(t, err)
	require.NotEmpty(t, dirs, "no histories in %s", kept)
	for _, dir := range dirs {
		dir = filepath.Dir(dir)
		h := &history.Run{}
		require.NoError(t, h.Load(dir))
		report := checker.Check(h)
		for _, v := range report.Violations {
			t.Errorf("%s\n%s", dir, v)
		}
		tally.add(h.Topology, h, report)
	}
	tally.print(os.Stdout, time.Since(begin))
}

// run is all rounds of one invocation.
type run struct {
	*testing.T
	began   time.Time
	program string // the path of the worker's program
	tally   *tally
}

func (r *run) say(format string, args ...any) {
	fmt.Printf("%7.1f s  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// prepare starts the topologies of the run.
func (r *run) prepare() []*world {
	all := []struct {
		name  string
		start func(*run) *world
	}{
		{"redis", singleWorld},
		{"cluster", clusterWorld},
		{"valkey", valkeyWorld},
		{"sentinel", sentinelWorld},
		{"endpoint", endpointWorld},
	}
	var worlds []*world
	wanted := strings.Split(*on, ",")
	for _, a := range all {
		if *on == "" || slices.Contains(wanted, a.name) {
			w := a.start(r)
			w.faults = slices.DeleteFunc(w.faults, func(f *fault) bool { return !strings.Contains(f.name, *only) })
			require.NotEmpty(r, w.faults, "-torture.faults: %s has no such fault: %s", a.name, *only)
			worlds = append(worlds, w)
			r.say("%s is up", a.name)
		}
	}
	require.NotEmpty(r, worlds, "-torture.on: no such topology: %s", *on)
	return worlds
}
