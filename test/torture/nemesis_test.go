package torture

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/harness"
	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

const ms = time.Millisecond

// fault is one thing that goes wrong.
type fault struct {
	name        string
	ofServer    bool          // another fault, of a worker, may come and go during it
	alone       bool          // it comes during no other, and no other during it
	least, most time.Duration // how long it lasts
	// begin does it, and says in the record what the checker must know. The end heals.
	begin func(r *round, record *history.Fault) (end func())
}

func nothing() {}

// anyWorker draws one.
func (r *round) anyWorker() (int, *worker) {
	n := r.rng.IntN(len(r.workers))
	return n, r.workers[n]
}

// ofWorkers can be had everywhere.
var ofWorkers = []*fault{
	{
		name: "worker killed (SIGKILL)", least: 100 * ms, most: 1500 * ms,
		begin: func(r *round, record *history.Fault) func() {
			_, w := r.anyWorker()
			record.Process, record.Kills = w.job.Process, true
			w.end()
			return nothing // the nemesis starts it again
		},
	},
	{name: "worker stopped (SIGSTOP) for less than a lease", least: 100 * ms, most: 700 * ms, begin: stopped},
	{name: "worker stopped (SIGSTOP) for more than a lease", least: 1200 * ms, most: 2500 * ms, begin: stopped},
}

func stopped(r *round, record *history.Fault) func() {
	_, w := r.anyWorker()
	record.Process = w.job.Process
	w.signal(syscall.SIGSTOP)
	return func() { w.signal(syscall.SIGCONT) }
}

// ofNetworks need a proxy between a worker and the server.
var ofNetworks = []*fault{
	network("connections cut", 50*ms, 1500*ms, func(p *harness.Proxied, r *round) { p.Cut() }),
	network("connections reset", 10*ms, 50*ms, func(p *harness.Proxied, r *round) { p.Reset() }),
	network("replies dropped", 100*ms, 1500*ms, func(p *harness.Proxied, r *round) { p.DropReplies() }),
	network("replies delayed", 500*ms, 2500*ms, func(p *harness.Proxied, r *round) {
		p.AddLatency(time.Duration(5+r.rng.IntN(400)) * ms)
	}),
	network("requests delayed", 500*ms, 2500*ms, func(p *harness.Proxied, r *round) {
		p.AddRequestLatency(time.Duration(5+r.rng.IntN(400)) * ms)
	}),
	network("half-open partition", 500*ms, 2500*ms, func(p *harness.Proxied, r *round) { p.BlackHole() }),
}

// network is a fault of the network of one worker, or, one time in four, of all.
func network(name string, least, most time.Duration, lay func(*harness.Proxied, *round)) *fault {
	return &fault{name: name, least: least, most: most, begin: func(r *round, record *history.Fault) func() {
		n, w := r.anyWorker()
		met := r.world.proxies[n : n+1]
		if r.rng.IntN(4) == 0 {
			met = r.world.proxies
		} else {
			record.Process = w.job.Process
		}
		for _, p := range met {
			lay(p, r)
		}
		return func() {
			for _, p := range met {
				p.Heal(r)
			}
		}
	}}
}

// onServer is a fault of a server.
func onServer(name string, least, most time.Duration, begin func(*round, *history.Fault) func()) *fault {
	return &fault{name: name, ofServer: true, least: least, most: most, begin: begin}
}

// unseen is what servers are told that nobody may notice.
func unseen(name string, words ...string) *fault {
	return onServer(name, 10*ms, 100*ms, func(r *round, record *history.Fault) func() {
		record.Unseen = true
		r.tell(words...)
		return nothing
	})
}

// ofServers can be had wherever there is a real server; in a Cluster all masters have
// them, unless it is said otherwise.
var ofServers = []*fault{
	unseen("CLIENT KILL", "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"),
	unseen("connections with a subscription cut", "CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes"),
	unseen("SCRIPT FLUSH", "SCRIPT", "FLUSH", "SYNC"),
	onServer("FLUSHALL", 10*ms, 500*ms, func(r *round, record *history.Fault) func() {
		record.Amnesia = true
		r.tell("FLUSHALL")
		record.LostNow()
		return nothing
	}),
	onServer("server full", 200*ms, 2*time.Second, func(r *round, _ *history.Fault) func() {
		return r.tellFor([]string{"CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "noeviction"}, "CONFIG", "SET", "maxmemory", "0")
	}),
	onServer("pushes refused by the ACL", 500*ms, 2*time.Second, func(r *round, record *history.Fault) func() {
		record.Unseen = true
		return r.tellFor([]string{"ACL", "SETUSER", "default", "resetchannels"}, "ACL", "SETUSER", "default", "allchannels")
	}),
	uneventful,
}

// ofHands are what somebody does to the server who should not: by hand, or by eviction.
var ofHands = []*fault{
	onServer("forged pushes", 0, 0, func(r *round, record *history.Fault) func() {
		record.Unseen = true
		for range 20 {
			r.forge()
			r.wait(10*ms, 40*ms)
		}
		return nothing
	}),
	overwritten,
	unlined,
}

// overwritten is the item of a resource that nobody has.
var overwritten = onServer("item of a free resource overwritten", 300*ms, time.Second, func(
	r *round, record *history.Fault,
) func() {
	record.Unseen = true // the other resources can be had
	for record.Detail = ""; record.Detail == ""; r.wait(ms, 5*ms) {
		record.Detail = r.overwrite("four")
	}
	return r.fill // which makes it whole
})

// unlined is a line that is gone. That of a pool also has the ends of its rests and
// bindings, which nothing brings back.
var unlined = onServer("line of a semaphore or a lock deleted", 10*ms, 500*ms, func(
	r *round, record *history.Fault,
) func() {
	record.Amnesia, record.Detail = true, r.name()
	for strings.HasPrefix(record.Detail, "pool:") {
		record.Detail = r.name()
	}
	client := r.world.client
	require.NoError(r, client.Do(r.within(auditLimit), client.B().Del().Key(r.ns+":"+record.Detail+":line").Build()).Error())
	record.LostNow()
	return nothing
})

// forge publishes, to all who wait for some name or hold it, what no script has sent:
// that they were granted what they do not hold, and that what they hold has ended. It
// knows them by the listings, and nothing more.
func (r *round) forge() {
	r.Helper()
	all := r.claims()
	client := r.world.client
	for _, c := range all[r.rng.IntN(len(all))] {
		fence := strconv.FormatInt(time.Now().UnixMicro(), 10)
		if r.rng.IntN(4) == 0 {
			fence = strconv.Itoa(math.MaxInt64) // whoever checks fences would refuse all others
		}
		message := [][]string{
			{"granted", c.name, c.id, fence, "1000", "a", "0123456789A"},
			{"granted", c.name, c.id, fence, "1000", "a", ""},
			{"granted", c.name, c.id, fence, "1000", "a"},
			{"released", c.name, c.id},
			{"too_heavy", c.name, c.id, "0"},
			{"taken", c.name, c.id},
			{"next", c.name, "0"},
			{"absent", c.name, c.id},
		}[r.rng.IntN(8)]
		text := ""
		for _, field := range message {
			text += fmt.Sprintf("%d:%s", len(field), field)
		}
		require.NoError(r, client.Do(r.within(auditLimit), client.B().Publish().Channel(r.ns+":wake:"+c.node).Message(text).Build()).Error())
	}
}

// overwrite puts rubbish in the place of what is stored of the resource that is free for
// the longest, and returns which one that is, "" for none.
func (r *round) overwrite(pool string) string {
	r.Helper()
	const script = `local head = redis.call("ZRANGE", KEYS[1], "0", "0")[1] or ""
if head ~= "" then
  redis.call("HSET", KEYS[2], "i" .. head, "rubbish")
end
return head`
	client, key := r.world.client, r.ns+":pool:{"+pool+"}:"
	head, err := client.Do(r.within(auditLimit),
		client.B().Eval().Script(script).Numkeys(2).Key(key+"free", key+"items").Build()).ToString()
	require.NoError(r, err)
	return head
}

// ofSingles are for a server that stands alone: a Sentinel would take one that does
// not answer for dead.
var ofSingles = []*fault{
	paused("CLIENT PAUSE", 100*ms, 1500*ms),
	paused("CLIENT PAUSE for longer than a call may take", 3200*ms, 3600*ms),
	onServer("server stopped (SIGSTOP)", 100*ms, 700*ms, func(r *round, record *history.Fault) func() {
		masters := r.world.d.Masters(r)
		s := masters[r.rng.IntN(len(masters))]
		record.Detail = s.Addr
		s.Stop(r)
		return func() { s.Cont(r) }
	}),
	onServer("restart without persistence", 0, 500*ms, func(r *round, record *history.Fault) func() {
		record.Amnesia = true
		s := r.world.d.Servers()[0]
		s.Kill(r)
		return func() { s.Restart(r) }
	}),
	rewind,
	onServer("restart from an older snapshot", 0, 500*ms, func(r *round, record *history.Fault) func() {
		record.Amnesia = true
		s := r.world.d.Servers()[0]
		s.Snapshot(r)
		r.wait(time.Second, 3*time.Second)
		s.Restore(r)
		record.LostNow()
		return nothing
	}),
	onServer("server's clock set forward, and back", 200*ms, 2*time.Second, func(r *round, record *history.Fault) func() {
		record.Amnesia = true // what it takes for the end of a lease is none
		r.world.d.SetClock(r, time.Duration(500+r.rng.IntN(4500))*ms)
		return func() { r.world.d.SetClock(r, 0) }
	}),
	onServer("server's clock set back, and forward", 200*ms, 2*time.Second, func(r *round, record *history.Fault) func() {
		record.Amnesia, record.Behind = true, true
		r.world.d.SetClock(r, -time.Duration(500+r.rng.IntN(4500))*ms)
		return func() { r.world.d.SetClock(r, 0) }
	}),
}

// paused has the server answer nobody.
func paused(name string, least, most time.Duration) *fault {
	return &fault{name: name, ofServer: true, least: 0, most: 0, begin: func(r *round, _ *history.Fault) func() {
		d := least + time.Duration(r.rng.Int64N(int64(most-least)))
		r.tell("CLIENT", "PAUSE", strconv.FormatInt(d.Milliseconds(), 10), "ALL")
		return func() { r.tell("PING") } // answered when it is over
	}}
}

// forgets is a fault after which the server knows of each claim what it knew a moment
// ago: that some wait which were granted since, and that others hold which have given
// back. Holds are long meanwhile, and what the server still knows is given back at once:
// so it hands on to the same claims again, something else than what they believe in, and
// some of them hold for long enough that a lease of that ends there, and others are
// granted it. What remembers returns what makes the server forget, and that what heals.
func forgets(name string, remember func(*round, *history.Fault) (lose func() (heal func()))) *fault {
	return onServer(name, 2200*ms, 3*time.Second, func(r *round, record *history.Fault) func() {
		record.Amnesia = true
		r.command(job.Long)
		r.wait(200*ms, 500*ms)
		lose := remember(r, record)
		remembered := time.Now()
		r.wait(50*ms, 500*ms) // what waits there is not dropped so soon
		heal := lose()
		r.command(fmt.Sprint(job.Part, " ", time.Since(remembered).Milliseconds()))
		record.LostNow()
		return func() {
			r.command(job.Short)
			heal()
		}
	})
}

// rewind loses what came after a snapshot.
var rewind = forgets("restart from a snapshot that lacks the last hand-offs", snapshot)

func snapshot(r *round, _ *history.Fault) (lose func() (heal func())) {
	s := r.world.d.Servers()[0]
	s.Snapshot(r)
	return func() func() {
		s.Restore(r)
		return nothing
	}
}

// takenOver loses what came after the replicas were cut off.
var takenOver = forgets("failover that loses the last hand-offs", cutOff)

func cutOff(r *round, record *history.Fault) (lose func() (heal func())) {
	name := ""
	if r.world.d.Spec().Cluster {
		name = r.name()
		record.Detail = name
	}
	cut := r.world.d.Cut(r, name)
	return func() func() {
		cut.TakeOver(r)
		return func() { r.world.d.Rejoin(r) }
	}
}

// ofSentinels: the data of a moment may be lost with a master.
var ofSentinels = []*fault{
	onServer("failover by Sentinel (SIGKILL of the master)", 0, 500*ms, func(r *round, record *history.Fault) func() {
		record.Amnesia = true
		r.world.d.Failover(r)
		record.LostNow()
		return func() { r.world.d.Rejoin(r) }
	}),
	onServer("failover by Sentinel (ordered)", 0, 500*ms, func(r *round, record *history.Fault) func() {
		record.Amnesia = true
		r.world.d.Switchover(r)
		return func() { r.world.d.Rejoin(r) }
	}),
	takenOver,
}

// ofClusters: the slots that are met are drawn from the names that are used.
var ofClusters = []*fault{
	onServer("slot migration", 300*ms, 3*time.Second, func(r *round, record *history.Fault) func() {
		record.Detail, record.Unseen = r.name(), true
		move := r.world.d.Move(r, record.Detail)
		r.wait(0, time.Second)
		move.Keys(r)
		return func() { move.Finish(r) }
	}),
	onServer("slot migration, keys of a name apart", 300*ms, 2*time.Second, func(r *round, record *history.Fault) func() {
		record.Detail = r.name()
		move := r.world.d.Move(r, record.Detail)
		move.Part(r, r.ns+":"+record.Detail+":state")
		return func() { move.Finish(r) }
	}),
	onServer("failover by Cluster (SIGKILL of a master)", 0, 500*ms, func(r *round, record *history.Fault) func() {
		record.Amnesia = true
		record.Detail = r.name()
		r.world.d.KillMaster(r, record.Detail)
		record.LostNow()
		return func() { r.world.d.Rejoin(r) }
	}),
	takenOver,
	oneStopped,
}
