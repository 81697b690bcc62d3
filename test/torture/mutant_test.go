package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit/lag"
	"github.com/berth-go/berth/test/harness"
	"github.com/berth-go/berth/test/torture/checker"
	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

// mutant is the library with one promise broken on purpose. The checker is worth
// what it finds in these.
type mutant struct {
	name  string
	broke []change
	scene *scene   // that brings it to light
	rules []string // one of them must be violated
	skew  []int    // by how many ms the clock of each worker is off, where the mutant goes by it
}

// breaks is a mutant whose workers' clocks are right.
func breaks(name string, in *scene, rules []string, broke ...change) mutant {
	return mutant{name: name, broke: broke, scene: in, rules: rules}
}

// change replaces a text in a file of the library. The text must be in it once, so
// that no mutant is left behind by a change of what it breaks. One program holds the Go
// code of all mutants, so what comes into Go code has both ways: the word broken in it is
// true where its mutant is played. Scripts are replaced as they are loaded, by those of
// the mutant that is played.
type change struct{ file, old, now string }

// scene is a short round on a single server in which a broken promise shows soon.
type scene struct {
	name   string
	edit   func(*job.Job) // makes the job of a worker out of the usual one
	events int            // how many there are at the least before each fault, or before the end
	fault  *fault         // nil for none
	faults int            // how many times

	start func(*run) *world // nil for a single server

	// proxies are between the workers and the server: the fault is one of the network.
	// What is to be found depends on a few moments: such scenes are played when nothing is
	// busy.
	proxies bool
}

// tries is how many rounds are played at the most until a mutant shows. Nearly all do in
// the first. What shows in a round is a matter of chance: who stands behind whom in a
// line, what is under way at the moment of a fault. And the checker looks away where the
// machine was too busy for it to be sure. So this is a search, with another seed each, and
// a rule that a mutant never shows takes as long as all of them.
const tries = 30

// What a DrainLimit (ms) is in these scenes. Some mutants show by it alone; the library
// as it is has longer, here and in all rounds.
const drainOfMutants, drainOfNone = 4000, 60_000

// In calm and busy scenes nothing is wrong but the library.
var (
	calm    = &scene{name: "calm", events: 1500, edit: func(j *job.Job) { j.Calm, j.Goroutines = true, 12 }}
	busy    = &scene{name: "busy", events: 3000, edit: func(j *job.Job) { j.HoldMax, j.Goroutines = 30, 12 }}
	crowded = &scene{name: "crowded", events: 1500, edit: crowd}

	// All contend for one lock, so that many places are drawn among others.
	drawn = &scene{name: "places drawn", events: 3000, edit: func(j *job.Job) {
		busy.edit(j)
		j.Sems, j.Locks, j.Pools = nil, j.Locks[1:2], nil
	}}
)

// crowd has few names that many contend for: whoever waits, waits for longer than it
// takes for a heartbeat. Its wait lease is the usual one, which the checker goes by where
// it looks away from who was silent.
func crowd(j *job.Job) {
	j.Calm, j.HoldMax, j.Goroutines = true, 50, 16
	j.Sems, j.Locks, j.Pools = j.Sems[:1], j.Locks[:1], j.Pools[:1]
}

// The other scenes have one fault each, like those of the nemesis, but of one size.
var (
	killed = &scene{name: "workers killed", edit: crowd, events: 300, faults: 2, fault: ofWorkers[0]}

	// What the worker held has been given to others when it goes on.
	stopping = &scene{name: "workers stopped", edit: crowd, events: 300, faults: 2, fault: &fault{
		name: "worker stopped (SIGSTOP) for more than a lease", least: 1450 * time.Millisecond, most: 1500 * time.Millisecond,
		begin: stopped,
	}}

	// The worker holds much, and cannot renew it; others wait for all of it.
	cut = &scene{
		name: "workers cut off", proxies: true, edit: long, events: 600, faults: 2,
		fault: ofOne("half-open partition", 2700*ms, 2800*ms, (*harness.Proxied).BlackHole),
	}

	// Calls that were sent over several connections meanwhile run in any order, and
	// the listing of a node that is closed soon afterwards shows what should not be.
	overtaken = &scene{name: "calls overtaken", edit: brief, events: 50, faults: 12, fault: &fault{
		name: "server stopped (SIGSTOP)", least: 80 * time.Millisecond, most: 120 * time.Millisecond,
		begin: func(r *round, _ *history.Fault) func() {
			s := r.world.d.Servers()[0]
			s.Stop(r)
			return func() { s.Cont(r) }
		},
	}}

	// The same for calls that were given up: a call may take 3 s.
	unanswered = &scene{name: "calls unanswered", edit: brief, events: 500, faults: 1, fault: &fault{
		name: "CLIENT PAUSE",
		begin: func(r *round, _ *history.Fault) func() {
			r.tell("CLIENT", "PAUSE", "3400", "ALL")
			return func() { r.tell("PING") } // answered when it is over
		},
	}}

	// Answers take more than a sixth of a lease, and less than a third.
	delayed = &scene{name: "answers late", proxies: true, edit: longPairs, events: 600, faults: 1, fault: &fault{
		name: "replies delayed", least: 6 * time.Second, most: 6 * time.Second,
		begin: func(r *round, record *history.Fault) func() {
			record.Unseen = true
			for _, p := range r.world.proxies {
				p.AddLatency(600 * time.Millisecond)
			}
			return func() {
				for _, p := range r.world.proxies {
					p.Heal(r)
				}
			}
		},
	}}

	// Somebody publishes what no script has sent.
	forged = &scene{name: "forged pushes", edit: crowd, events: 300, faults: 2, fault: ofHands[0]}

	// Somebody writes over what is stored of a resource.
	rubbish = &scene{name: "an item overwritten", edit: busy.edit, events: 300, faults: 2, fault: overwritten}

	// Somebody deletes the line of a name.
	deleted = &scene{name: "lines deleted", edit: calm.edit, events: 500, faults: 3, fault: unlined}

	// Many names, which mostly one claim asks for at a time.
	sparse = &scene{name: "many names, workers killed", edit: alone, events: 1200, faults: 2, fault: ofWorkers[0]}

	// The server's clock is ahead, and set back bit by bit: no lease ends by that.
	slower = &scene{name: "clock set back", edit: alone, events: 500, faults: 4, fault: &fault{
		name: "server's clock set back", least: 10 * time.Millisecond, most: 20 * time.Millisecond,
		begin: func(r *round, record *history.Fault) func() {
			record.Amnesia = len(r.faults) == 0 // it begins with a clock that goes forward
			record.Unseen = !record.Amnesia
			r.world.d.SetClock(r, time.Duration(4-len(r.faults))*500*time.Millisecond)
			return nothing
		},
	}}

	// The server hands on again, something else, to who believes in what it gave before.
	rewound = &scene{name: "last hand-offs lost", edit: shared, events: 500, faults: 3, fault: rewind}
)

// ofOne is a fault of the network of one worker.
func ofOne(name string, least, most time.Duration, lay func(*harness.Proxied)) *fault {
	return &fault{name: name, least: least, most: most, begin: func(r *round, record *history.Fault) func() {
		n, w := r.anyWorker()
		record.Process = w.job.Process
		lay(r.world.proxies[n])
		return func() { r.world.proxies[n].Heal(r) }
	}}
}

// shared has names of which several may hold at a time, and many wait for each.
func shared(j *job.Job) {
	j.Calm, j.HoldMax, j.Goroutines = true, 10, 24
	j.Sems, j.Locks, j.Pools = nil, nil, j.Pools[1:2]
	for n := range 4 {
		j.Sems = append(j.Sems, job.Semaphore{Name: fmt.Sprintf("shared %d", n), Capacity: 3})
	}
}

// alone has many names, so that few wait.
func alone(j *job.Job) {
	j.Calm, j.HoldMax, j.Goroutines, j.Life = true, 800, 6, 20_000
	j.Sems, j.Locks, j.Pools = nil, nil, nil
	for n := range 40 {
		j.Locks = append(j.Locks, job.Lock{Name: fmt.Sprintf("alone %d", n), Kind: job.Queued})
		j.Sems = append(j.Sems, job.Semaphore{Name: fmt.Sprintf("alone %d", n), Capacity: 1})
	}
}

// long has many names, held for long, with some that wait for each. What a third of such a
// lease is for, or a sixth, is more than a machine is late.
func long(j *job.Job) {
	j.Calm, j.Lease, j.HoldMax, j.Goroutines, j.Life = true, 2400, 5000, 40, 20_000
	j.Sems, j.Locks, j.Pools = nil, nil, nil
	for n := range 48 {
		j.Locks = append(j.Locks, job.Lock{Name: fmt.Sprintf("long %d", n), Kind: job.Queued})
	}
}

// longPairs is long with names that are never thin: no call needs two answers.
func longPairs(j *job.Job) {
	long(j)
	for _, l := range j.Locks {
		j.Sems = append(j.Sems, job.Semaphore{Name: l.Name, Capacity: 2})
	}
	j.Locks = nil
}

// brief has nodes that do not live for long, and many that use them.
func brief(j *job.Job) { j.Life, j.HoldMax, j.Goroutines = 600, 10, 30 }

// mutants are the broken variants.
var mutants = slices.Concat(commonMutants, laneMutants, pauseMutants, wantMutants, passingMutants, drainMutants)

var commonMutants = []mutant{
	breaks("nothing that frees grants to the first in line", calm, []string{checker.Stuck}, noFastHandOff,
		change{"scripts/line/handoff.lua", "while st.waiting > 0 and budget.left > 0 do", "while false do"}),
	breaks("a release does not grant to the first in line", calm, []string{checker.HandOff}, noFastHandOff,
		change{"scripts/line/release.lua", "handoff(at, st, budget, head_left)", "handoff(at, st, { left = 0 }, head_left)"}),
	{
		name: "deadlines go by the process's clock, which is behind", scene: calm, skew: []int{0, -700, -1400},
		rules: []string{checker.Capacity}, broke: processClock,
	},
	{
		name: "deadlines go by the process's clock, which is ahead", scene: calm, skew: []int{0, 1100, 2200},
		rules: []string{checker.Capacity, checker.Linearizable}, broke: processClock,
	},
	breaks("a late release takes away what somebody else holds", stopping, []string{checker.Capacity, checker.Refused},
		change{"scripts/line/release.lua", "  local r = known and record_read(known)\n", "  local r = known and record_read(known)\n" + anyHolder}),
	breaks("a forced release takes away what somebody else holds", busy, []string{checker.Refused}, change{
		"scripts/line/force.lua", "  local r, word = known and record_read(known), \"released\"\n",
		"  local r, word = known and record_read(known), \"released\"\n" + anyHolder,
	}),
	breaks("the local deadline is later than the server's", cut, []string{checker.Capacity},
		change{"internal/heartbeat/heartbeat.go", margin, "\tif broken {\n\t\treturn -lease / 20\n\t}\n" + margin}),
	breaks("a cancel does not wait for the acquire's reply", overtaken, []string{checker.Left}, change{
		"internal/engine/release.go", "func (e *Engine) remove(c *Claim) error {\n\tc.calls.Lock()\n\tdefer c.calls.Unlock()\n",
		"func (e *Engine) remove(c *Claim) error {\n\tif !broken {\n\t\tc.calls.Lock()\n\t\tdefer c.calls.Unlock()\n\t}\n",
	}),
	breaks("a cancel leaves no tombstone", unanswered, []string{checker.Left},
		change{"internal/engine/release.go", "\tif c.see().news.lost {\n", "\tif c.see().news.lost && !broken {\n"}),
	breaks("a heartbeat moves the place", crowded, []string{checker.Order},
		change{"scripts/line/renew.lua", beaten, movedPlace + beaten}),
	breaks("a hand-off gives the last fence again", calm, []string{checker.Fence},
		change{"scripts/line/handoff.lua", "st.fence = math.max(st.fence + 1, at.us)", "st.fence = math.max(st.fence, 1)"},
		change{"scripts/fast/handoff.lua", fastGranted, "  head = string.sub(text, 1, 18)\n" + fastGranted},
		change{"scripts/fast/pool_handoff.lua", poolGranted, "  p.head = string.sub(text, 1, 18)\n" + poolGranted}),
	breaks("a push sets the deadline anew", cut, []string{checker.Capacity}, change{
		"internal/engine/rules_wait.go", "\tfx := m.take(m.news.pushed,",
		"\tif broken {\n\t\tm.place.heard, m.place.left = ev.now, m.claim.Record.Wait\n\t}\n\tfx := m.take(m.news.pushed,",
	}),
	breaks("an arrival passes who waits for more", busy, []string{checker.Order}, change{
		"scripts/kind/semaphore.lua", "  local claim, r = head(at, st, budget, arrival)\n", `  if arrival then
    return arrival.claim, arrival.r, arrival.r.weight <= st.cap - st.used
  end
  local claim, r = head(at, st, budget, arrival)
`,
	}),
	breaks("who comes last is served first", calm, []string{checker.Order},
		change{"scripts/line/acquire.lua", "ask.place = r.ticket\n", "ask.place = string.format(place_ticket, 9999999999999 - r.ticket)\n"},
		change{"scripts/fast/wait.lua", "  if not wait or not top", "  if true or not wait or not top"}),
	breaks("capacity counts claims and not their weight", busy, []string{checker.Capacity},
		change{"scripts/state/record.lua", "    weight = weight + 0, wait", "    weight = 1, wait"},
		change{"scripts/state/record.lua", "terms = terms, weight = weight + 0,", "terms = terms, weight = 1,"},
		change{"scripts/fast/acquire.lua", "string.match(owned, record_asking)\n", "string.match(owned, record_asking)\n    weight = 1\n"},
		change{"scripts/fast/release.lua", "left - values_base - string.match(owned, record_weight)", "left - values_base - 1"},
		change{"scripts/fast/handoff.lua", "left + weight", "left + 1"}),
	breaks("a resource is given to two", calm, []string{checker.Capacity},
		change{"scripts/pool/item.lua", "#i.claims < i.max", "#i.claims <= i.max"},
		change{"scripts/pool/settle.lua", "#i.claims < i.max", "#i.claims <= i.max"},
		change{"scripts/fast/pool_acquire.lua", `kind == "o" and more == 0`, `kind == "o" and more < 0`},
		change{"scripts/fast/pool_release.lua", "elseif kind ~= \"s\" and had == most then", "elseif kind ~= \"s\" and had - most > 0 then"}), // else it is in the list twice
	breaks("the end of an inner entry frees the lock", busy, []string{checker.Capacity}, change{
		"scripts/kind/lock.lua", "    count, m = remove_entry(at, st, claim, r, wish.lowered)\n",
		"    count, m = remove_entry(at, st, claim, r, wish.lowered)\n    st.used = 0\n",
	}),
	breaks("a closed node leaves a goroutine", calm, []string{checker.Leak},
		change{"internal/heartbeat/engine.go", "\te.cancel()\n\te.mu.Unlock()\n\te.tasks.Wait()\n", "\tif broken {\n\t\te.mu.Unlock()\n\t\treturn\n\t}\n\te.cancel()\n\te.mu.Unlock()\n\te.tasks.Wait()\n"}),
	breaks("a closed node leaves its subscription", calm, []string{checker.Leak},
		change{"internal/wake/wake.go", "\th.cancel()\n\th.tasks.Wait()\n", "\tif broken {\n\t\treturn\n\t}\n\th.cancel()\n\th.tasks.Wait()\n"}),
	breaks("a hold ends though its renewals are answered", busy, []string{checker.Unharmed},
		change{"internal/heartbeat/heartbeat.go", margin, "\tif broken {\n\t\treturn lease - 12*time.Millisecond\n\t}\n" + margin}),
	breaks("nobody is told of a grant", busy, []string{checker.WakeUp},
		change{"scripts/wake/publish.lua", `redis.pcall("PUBLISH"`, `tostring("PUBLISH"`}),
	breaks("priorities are ignored", busy, []string{checker.Order},
		change{"internal/line/reply.go", ofPriority, "if broken {\n\t\tpriority = 0\n\t}\n\t" + ofPriority}),
	breaks("the lowest priority comes first", busy, []string{checker.Order},
		change{"internal/line/reply.go", ofPriority, "if broken {\n\t\tpriority = -priority\n\t}\n\t" + ofPriority}),
	breaks("nobody sweeps what has expired", killed, []string{checker.Stuck},
		change{"scripts/line/expire.lua", "= expire_holds(at, st, budget)", "= nil"}),
	breaks("a hold is renewed by an answer that names another grant", rewound, []string{checker.Agreement, checker.Capacity},
		change{"internal/engine/rules_hold.go", "case ev.gift == m.grant.gift:", "case broken || ev.gift == m.grant.gift:"}),
	breaks("an answer that comes late is thrown away", delayed, []string{checker.Unharmed},
		change{"internal/heartbeat/flush.go", "\tctx, cancel := context.WithTimeout(e.ctx, f.until)\n", "\tif broken {\n\t\tf.until = f.batches[0].limit\n\t}\n\tctx, cancel := context.WithTimeout(e.ctx, f.until)\n"}),
	breaks("a push is believed that proves itself by nothing", forged, []string{checker.Capacity, checker.Fence},
		change{"internal/engine/rules_wait.go", `if m.news.secret != "" && ev.text == m.news.secret {`, `if broken || m.news.secret != "" && ev.text == m.news.secret {`}),
	breaks("a damaged resource stops its pool", rubbish, []string{checker.Unharmed},
		change{"scripts/pool/pick.lua", "  if dropped then\n", "  if dropped then\n    error(key)\n"}),
	breaks("what a deleted line has lost counts for good", deleted, []string{checker.Stuck},
		change{"scripts/line/leave.lua", "    recount(at, st)\n", "    local _ = recount\n"},
		change{"scripts/state/open.lua", "if st.form and not top then", "if false then"},
		change{"scripts/line/expire.lua", "st.used, st.forever = 0, 0", "st.forever = 0"}),
	breaks("a thin hold is given to two", sparse, []string{checker.Capacity},
		change{"scripts/thin_acquire.lua", "if text and (#text ~= 16 or", "if text and false and (#text ~= 16 or"}),
	breaks("a thin hold outlives its lease", sparse, []string{checker.Stuck}, change{
		"scripts/state/thin.lua", "    if held > ms then\n",
		"    if held <= ms then\n      held, st.thin.held = ms + 60000, ms + 60000\n    end\n    if held > ms then\n",
	}),
	breaks("a name that becomes fat loses its hold", sparse, []string{checker.Capacity, checker.Unharmed},
		change{"scripts/state/fatten.lua", "  local hold, anew = st.thin, ", "  st.used, st.due = 0, 0\n  local hold, anew = nil, "}),
	breaks("a name that becomes thin forgets that its fence is in the future", slower, []string{checker.Fence},
		change{
			"scripts/state/slim.lua", "st.busy > calm and st.busy <= at.ms or st.ticket > calm or st.rev > at.ms - values_recent or st.fence >= at.us then",
			"st.rev > at.ms - values_recent then",
		},
		change{"scripts/state/slim.lua", "string.format(values_fence, st.fence)", "string.format(values_fence, math.min(st.fence, at.us))"},
		change{"scripts/fast/release.lua", "now - sub(text, values_busy, values_busy_end) >= 10000", "true"}),
	breaks("a patrol drops the living", crowded, []string{checker.Unharmed},
		change{"scripts/line/dead.lua", "if not alive or alive - ms <= 0 then", "if true then"}),
	breaks("a Random claim is drawn a place among those of a higher priority", drawn, []string{checker.Order}, change{
		"scripts/owner/place.lua", "  local others = ask.access", "  if ask.access == \"random\" then\n    ask.lane = \"000\"\n    return\n  end\n  local others = ask.access",
	}),
}

// noFastHandOff leaves all hand-offs to line/handoff.
var noFastHandOff = change{"scripts/fast/handoff.lua", "  if not top or", "  if true or not top or"}

// ofPriority is where a claim waits by its priority.
const ofPriority = "return fmt.Appendf(b, \"%03d\", 2*(127-priority))"

// margin is how the heartbeat reckons the local deadline.
const margin = "\treturn 2*time.Millisecond + lease/100\n"

// processClock has every script go by the clock of the process that calls it: its
// seconds and microseconds are the last two arguments of each call. See ownTime.
var processClock = []change{{
	"pkg/scriptkit/runner.go", "\tclient, keys := c.runner.client, int64(len(c.keys))\n",
	`	client, keys := c.runner.client, int64(len(c.keys))
	if broken {
		args = append(args[:len(args):len(args)], ownClock()...)
	}
`,
}}

// What several mutants put into scripts.
const (
	// anyHolder takes whoever holds in the place of a claim that is not known.
	anyHolder = `  if not r and st.used > 0 and st.form == "fat" then
    local from = "10000000000000" -- where holds are
    claim = string.sub(redis.call("ZRANGEBYSCORE", at.line, from, "19999999999999", "LIMIT", "0", "1")[1] or "", 3)
    known = redis.call("HGET", at.state, "c:" .. claim)
    r = known and record_read(known)
    node = r and r.node or node
  end
`
	// movedPlace sends a waiting claim to the end of the line.
	movedPlace = `        local lane = redis.call("ZSCORE", at.line, r.place .. "-" .. claim)
        redis.call("ZREM", at.line, r.place .. "-" .. claim)
        st.ticket = math.max(st.ticket + 1, at.ms)
        r.place = string.format("%013d", st.ticket)
        redis.call("ZADD", at.line, lane, r.place .. "-" .. claim)
`
	// beaten is what a heartbeat does for a claim that waits.
	beaten = "        word, left, r.alive = \"waiting\", r.wait, at.ms + r.wait\n"
	// fastGranted begins to grant to the first in line, in the plain case.
	fastGranted = "  call(\"ZREM\", line, mine, top)\n"
	poolGranted = "  call(\"ZREM\", line, \"h:\" .. claim, member)\n"
)

// play is a mutant in its scene, nil for the library as it is.
type play struct {
	name string
	*mutant
	*scene
	folder string // with the scripts that are broken
}

// TestMutants has the checker find what is broken in each variant. In the same scenes it
// finds nothing in the library as it is.
func TestMutants(t *testing.T) {
	t.Parallel()
	program := buildBroken(t)
	var plays, delicate []play
	add := func(p play) {
		if p.proxies {
			delicate = append(delicate, p)
		} else {
			plays = append(plays, p)
		}
	}
	played := map[*scene]bool{}
	for _, m := range mutants {
		add(play{name: m.name, mutant: &m, scene: m.scene})
		if !played[m.scene] {
			played[m.scene] = true
			add(play{name: "none, " + m.scene.name, scene: m.scene})
		}
	}
	sideBySide(t, plays, program)
	sideBySide(t, delicate, program)
}

// sideBySide plays some at a time: each has a server of its own, and mostly waits.
func sideBySide(t *testing.T, plays []play, program string) {
	t.Helper()
	const atATime = 3
	slices.SortStableFunc(plays, func(a, b play) int { return b.faults - a.faults }) // which take longer
	next := make(chan play)
	var players sync.WaitGroup
	for range atATime {
		players.Go(func() {
			for p := range next {
				t.Run(p.name, func(t *testing.T) {
					lag.Relies(t, leaseOfRound) // where processes are late, their rounds have fewer events, and a mutant may not show
					(&run{T: t, program: program, tally: newTally()}).search(p)
				})
			}
		})
	}
	for _, p := range plays {
		next <- p
	}
	close(next)
	players.Wait()
}

// search plays until the checker finds the mutant.
func (r *run) search(p play) {
	r.Helper()
	if p.mutant == nil {
		found := r.act(p, 1)
		for _, v := range found[:min(3, len(found))] {
			r.Errorf("in the library as it is the checker finds:\n%s", v)
		}
		return
	}
	p.folder = p.mutant.scripts(r.T)
	for seed := range int64(tries) {
		found := r.act(p, seed+1)
		if i := slices.IndexFunc(found, func(v checker.Violation) bool { return slices.Contains(p.rules, v.Rule) }); i >= 0 {
			text, _, _ := strings.Cut(found[i].Text, "\n")
			r.Logf("found: %s: %s", found[i].Rule, text)
			return
		}
	}
	r.Fatalf("the checker does not find it: there is no violation of %v in %d rounds", p.rules, tries)
}

// happen returns when about so much more has been written down, however long that takes,
// or when nothing more is: a broken library may stand still. So may the machine; a moment in which this process was
// late itself says nothing of the library.
func (r *round) happen(events int) {
	const ofEvent = 230 // bytes
	const moment, still = 25 * time.Millisecond, 100
	written := func() (sum int64) {
		files, err := filepath.Glob(filepath.Join(r.dir, "*.jsonl"))
		require.NoError(r, err)
		for _, f := range files {
			info, err := os.Stat(f)
			require.NoError(r, err)
			sum += info.Size()
		}
		return sum
	}
	last, quiet := written(), 0
	for enough := last + int64(events*ofEvent); last < enough && quiet < still; {
		began := time.Now()
		<-time.After(moment)
		if now := written(); now > last {
			last, quiet = now, 0
		} else if time.Since(began) < 2*moment {
			quiet++
		}
	}
}

// act plays a round and returns what the checker has found. Nobody else looks at what is
// left on the server: a broken library leaves what it likes.
func (r *run) act(p play, seed int64) []checker.Violation {
	r.Helper()
	start := singleWorld
	if !p.proxies {
		start = func(r *run) *world { return newWorld(r, harness.Single(r)) }
	}
	if p.start != nil {
		start = p.start
	}
	w := start(r)
	o := &round{
		run: r, world: w, seed: seed, rng: rand.New(rand.NewPCG(uint64(seed), 0)), dir: r.TempDir(),
		ns: fmt.Sprintf("mutant-%d-%d", seed, time.Now().UnixNano()),
	}
	o.fill()
	o.employ(func(n int, hand *worker) {
		p.edit(&hand.job)
		hand.job.DrainLimit = drainOfNone
		if p.mutant != nil {
			hand.job.DrainLimit = drainOfMutants
			hand.env = p.env(p.folder, n)
		}
	})
	o.happen(p.events)
	for n := range p.faults {
		if n > 0 {
			o.happen(p.events)
		}
		o.strike(p.fault)
		o.revive()
	}
	o.fill()
	h := &history.Run{Seed: seed, Topology: w.name, Faults: o.faults, Fills: o.fills}
	h.Healed, _ = history.Now()
	found := o.drain()
	require.NoError(r, h.Save(o.dir))
	require.NoError(r, h.Load(o.dir))
	found = slices.Concat(found, o.found, checker.Check(h).Violations)
	rules := map[string]int{}
	for _, v := range found {
		rules[v.Rule]++
	}
	r.Logf("%s: %d events, violations %v", p.scene.name, len(h.Events), rules)
	return found
}
