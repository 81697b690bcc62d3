package torture

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/torture/checker"
	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

// What a round is made of.
const (
	workersOfRound    = 3
	goroutinesOfRound = 12
	faultsOfRound     = 4
	leaseOfRound      = time.Second
	pausesOfRound     = 400 // one in so many turns
	wantsOfRound      = 60  // likewise
	swarmsOfRound     = 2   // one node in so many
	drainsOfRound     = 4   // likewise
)

// What a short one is made of: there is one on each topology where neither a duration nor
// a seed is given, as in a run of all tests.
const (
	seedOfShort       = 3
	goroutinesOfShort = 4
	faultsOfShort     = 2
)

func isShort() bool { return *duration == 0 && *seed == 0 }

// round is one round: a topology, a namespace, workers, faults, and what came of it.
type round struct {
	*run
	world   *world
	seed    int64
	rng     *rand.Rand
	ns      string
	dir     string // of the histories
	workers []*worker

	faults []history.Fault
	fills  []history.Fill
	found  []checker.Violation
}

// round plays a round and tells of what it has found.
func (r *run) round(w *world, seed int64) {
	r.Helper()
	o := r.play(w, seed)
	if len(o.found) == 0 {
		if *keep == "" {
			require.NoError(r, os.RemoveAll(o.dir))
		}
		return
	}
	const shown = 3
	for _, v := range o.found[:min(shown, len(o.found))] {
		fmt.Printf("\nVIOLATION on %s, seed %d\n%s\n", w.name, seed, v)
	}
	again := fmt.Sprintf("make torture ON=%s SEED=%d ROUNDS=1", w.name, seed)
	if isShort() {
		again = "go -C test test -race -count=1 -run '^TestTorture$' ./torture -torture.on " + w.name
	}
	r.Errorf("%d violations on %s, seed %d\nhistories: %s\nagain: %s", len(o.found), w.name, seed, o.dir, again)
}

// play plays a round.
func (r *run) play(w *world, seed int64) *round {
	r.Helper()
	dir, err := os.MkdirTemp("", "berth-torture-")
	require.NoError(r, err)
	o := &round{
		run: r, world: w, seed: seed, rng: rand.New(rand.NewPCG(uint64(seed), 0)), dir: dir,
		ns: fmt.Sprintf("torture-%d-%d", seed, time.Now().UnixNano()), // not that of an earlier run of the seed
	}
	if *keep != "" {
		o.dir = filepath.Join(*keep, fmt.Sprintf("%s-%d", w.name, seed))
		require.NoError(r, os.MkdirAll(o.dir, 0o755))
	}
	whole := false
	defer func() {
		if !whole { // a server or a worker did not do what it was told
			r.Logf("the round on %s with seed %d was broken off; histories: %s", w.name, seed, dir)
		}
	}()
	o.work()
	o.nemesis()
	o.fill()
	healed, _ := history.Now()
	found := o.drain()
	o.judge(healed, found)
	whole = true
	return o
}

// work fills the pools and starts the workers.
func (r *round) work() {
	r.Helper()
	r.fill()
	r.employ(func(_ int, w *worker) {
		w.job.Pauses, w.job.Wants, w.job.Swarms, w.job.Drains = pausesOfRound, wantsOfRound, swarmsOfRound, drainsOfRound
	})
	r.wait(500*time.Millisecond, time.Second)
}

// employ starts the workers, each as it is to be.
func (r *round) employ(edit func(n int, w *worker)) {
	r.Helper()
	for n := range workersOfRound {
		w := &worker{name: fmt.Sprintf("w%d", n+1), job: r.job()}
		if n < len(r.world.proxies) {
			w.job.Redis.Addresses = []string{r.world.proxies[n].Addr}
		}
		edit(n, w)
		r.workers = append(r.workers, w)
		r.start(w)
		r.Cleanup(w.end)
	}
}

// The names that all workers contend for. Where the capacity is one the checker can
// see every hand-off.
var (
	sems  = []job.Semaphore{{Name: "single", Capacity: 1}, {Name: "triple", Capacity: 3}}
	locks = []job.Lock{{Name: "queued", Kind: job.Queued}, {Name: "mixed", Kind: job.Mixed}, {Name: "nested", Kind: job.Reentrant}}
	pools = []job.Pool{
		{Name: "one", Resources: []string{"a"}},
		{Name: "four", Resources: []string{"a", "b", "c", "d"}},
		{Name: "shared", Resources: []string{"a", "b"}, Sharers: 2, Moves: true},
		{Name: "tired", Resources: []string{"a", "b"}, Cooldown: 10, Moves: true},
	}
)

func (r *round) job() job.Job {
	spec, goroutines, lease := r.world.d.Spec(), goroutinesOfRound, cmp.Or(r.world.lease, leaseOfRound)
	if isShort() {
		goroutines = goroutinesOfShort
	}
	return job.Job{
		Redis:     job.Redis{Addresses: spec.Addresses, MasterSet: spec.MasterSet, Cluster: spec.Cluster, Password: passwordOfRound},
		Namespace: r.ns, Sems: sems, Locks: locks, Pools: pools, Endless: endless,
		Goroutines: goroutines, Lease: lease.Milliseconds(), HoldMax: 15, DrainLimit: drainOfNone,
	}
}

// wait lets the workers work for a time between the two.
func (r *round) wait(least, most time.Duration) {
	timer := time.NewTimer(least + time.Duration(r.rng.Int64N(int64(most-least)+1)))
	defer timer.Stop()
	<-timer.C
}

// nemesis does the faults that are the turn of this seed, each alone or one of a
// worker during one of the server, with calm between.
func (r *round) nemesis() {
	r.Helper()
	faults := r.draw()
	for i := 0; i < len(faults); i++ {
		f := faults[i]
		if i+1 < len(faults) && f.ofServer && !faults[i+1].ofServer && !faults[i+1].alone && r.rng.IntN(2) == 0 {
			i++
			r.strike(f, faults[i])
		} else {
			r.strike(f)
		}
		r.revive()
		r.wait(300*time.Millisecond, 900*time.Millisecond)
	}
}

// draw returns the faults of this seed. Seeds that follow each other go through
// all that the topology can have, so that no run leaves one out.
func (r *round) draw() []*fault {
	all := r.world.faults
	many := faultsOfRound
	if isShort() {
		many = faultsOfShort
	}
	drawn := make([]*fault, 0, many)
	for n := range many {
		drawn = append(drawn, all[(int(r.seed)*faultsOfRound+n)%len(all)])
	}
	r.rng.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn
}

// strike begins the first fault, has the others come and go meanwhile, and ends it. What pools have lost they get
// back at the end: until then the server may refuse it.
func (r *round) strike(f *fault, during ...*fault) {
	r.Helper()
	records := r.play(f, during...)
	if slices.ContainsFunc(records, func(f history.Fault) bool { return f.Amnesia || f.Kills }) {
		r.fill()
	}
	for i := range records {
		records[i].To, records[i].RealEnd = history.Now()
	}
	r.faults = append(r.faults, records...)
}

func (r *round) play(f *fault, during ...*fault) (records []history.Fault) {
	r.Helper()
	record := history.Fault{Name: f.name}
	record.From, record.Real = history.Now()
	end := f.begin(r, &record)
	r.wait(f.least, f.most)
	for _, d := range during {
		records = append(records, r.play(d)...)
	}
	end()
	return append(records, record)
}

// judge reads the histories, checks them, looks at what is left on the server, and
// counts it all with what was found before.
func (r *round) judge(healed int64, found []checker.Violation) {
	r.Helper()
	h := &history.Run{Seed: r.seed, Topology: r.world.name, Faults: r.faults, Fills: r.fills, Healed: healed}
	slices.SortFunc(h.Faults, func(a, b history.Fault) int { return cmp.Compare(a.From, b.From) })
	require.NoError(r, h.Save(r.dir))
	require.NoError(r, h.Load(r.dir))
	report := checker.Check(h)
	report.Violations = slices.Concat(report.Violations, r.found, found, r.audit())
	r.tally.add(r.world.name, h, report)
	r.found = report.Violations
	var names []string
	for _, f := range r.faults {
		names = append(names, f.Name)
	}
	r.say("%-8s seed %d: %5d operations, %d violations; %s", r.world.name, r.seed,
		count(h, history.Invoke, 0, math.MaxInt64), len(r.found), strings.Join(names, ", "))
}

// count counts the events of a kind between the two moments.
func count(h *history.Run, kind history.Kind, from, to int64) int {
	n := 0
	for _, e := range h.Events {
		if e.Kind == kind && e.At >= from && e.At <= to {
			n++
		}
	}
	return n
}

// within is a context for what the driver itself asks of a server.
func (r *round) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	r.Cleanup(cancel)
	return ctx
}
