package torture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/test/harness"
	"github.com/berth-go/berth/test/torture/checker"
	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

// oneStopped is a server of several that stands still, for longer than a lease, and not for so long that another one takes over.
// What is on the others is held for long meanwhile, by nodes that have names of all kinds on all of them, and must be kept. It
// is none of those on which nodes are looked for and operators are heard, where there is another one: these are for all names.
var oneStopped = &fault{
	name: "one server of several stopped (SIGSTOP) for more than a lease", ofServer: true, alone: true,
	least: 1500 * time.Millisecond, most: 2500 * time.Millisecond,
	begin: func(r *round, record *history.Fault) func() {
		r.command(job.Long)
		r.wait(500*time.Millisecond, time.Second) // some hold for long now
		s, met := r.oneOfSeveral()
		record.Names, record.Detail = met, s.Addr
		lag := r.meter(slices.DeleteFunc(r.world.d.Masters(r), func(other *harness.Server) bool { return other == s }))
		record.From, record.Real = history.Now()
		s.Stop(r)
		return func() {
			s.Cont(r)
			r.command(job.Short)
			if worst := lag(); worst < hindered && len(met) > 0 {
				record.Keeps = r.workers[0].job.Lease
			} else {
				r.Logf("%v of %s stood still, and others took up to %v to answer: what was held may be lost", met, s.Addr, worst)
			}
		}
	},
}

// uneventful is nothing, or the fault of a worker that comes during it, for as long as a drain takes and a little more: what else
// comes in a round leaves most drains no time to end, and the rule about them little to look at.
var uneventful = onServer("none, for as long as a drain takes", 9*time.Second, 10*time.Second, unnoticed)

func unnoticed(_ *round, record *history.Fault) func() {
	record.Unseen = true
	return nothing
}

// hindered is how late a server may be that hinders no heartbeat of a lease of a second.
const hindered = 200 * time.Millisecond

// oneOfSeveral is a master, and the names that are on it; none where it is one of those that all names need.
func (r *round) oneOfSeveral() (s *harness.Server, met []string) {
	r.Helper()
	on := map[*harness.Server][]string{}
	for _, name := range r.allNames() {
		master := r.world.d.Master(r, r.ns+":"+name)
		on[master] = append(on[master], name)
	}
	for _, common := range []string{"notice:{all}", "swarm:{nodes}"} {
		delete(on, r.world.d.Master(r, r.ns+":"+common))
	}
	masters := r.world.d.Masters(r)
	r.rng.Shuffle(len(masters), func(i, j int) { masters[i], masters[j] = masters[j], masters[i] })
	for _, s = range masters {
		if met = on[s]; len(met) > 0 {
			break
		}
	}
	return s, met
}

// name draws one of those that are contended for, as it is in keys.
func (r *round) name() string {
	all := r.allNames()
	return all[r.rng.IntN(len(all))]
}

// allNames are those that are contended for, as they are in keys.
func (r *round) allNames() (all []string) {
	for _, s := range sems {
		all = append(all, "sem:{"+s.Name+"}")
	}
	for _, l := range locks {
		all = append(all, "lock:{"+l.Name+"}")
	}
	for _, p := range pools {
		all = append(all, "pool:{"+p.Name+"}")
	}
	return all
}

// leaseOfEndpoint is long enough for a hold to outlast a move: connections are broken about a second after it.
const leaseOfEndpoint = 5 * time.Second

// endpointWorld is a master and a replica behind one address.
func endpointWorld(r *run) *world {
	r.Helper()
	e := harness.NewEndpoint(r)
	move := []*fault{moving}
	w := newWorld(r, e.Deployment(), move, ofWorkers[:2], ofServers, move, ofRefusals)
	w.endpoint, w.lease = e, leaseOfEndpoint
	return w
}

// moving has the endpoint lead new connections to the replica, which has taken over and has all that the master had, while
// the old ones stay. Holds are long meanwhile, for longer than a lease afterwards, and must be kept. It is over
// when all workers are served again.
var moving = &fault{
	name: "the endpoint moves, connections stay", ofServer: true, least: leaseOfEndpoint + time.Second/2, most: leaseOfEndpoint + time.Second,
	begin: func(r *round, record *history.Fault) func() {
		r.command(job.Long)
		r.wait(500*time.Millisecond, time.Second) // some hold for long now
		lag := r.meter(r.world.d.Servers())
		record.From, record.Real = history.Now()
		r.world.endpoint.Move(r)
		record.Detail = r.world.endpoint.Master().Addr
		moved := history.Monotonic()
		r.world.client = r.world.d.Client(r) // the driver's own is led to the replica
		return func() {
			r.command(job.Short)
			if worst := lag(); worst < stoodStill {
				record.Keeps = leaseOfEndpoint.Milliseconds()
			} else {
				r.Logf("servers took up to %v to answer while the endpoint moved: what was held may be lost", worst)
			}
			r.served(moved)
		}
	},
}

// ruleServed: when an endpoint has moved, all workers are served again.
const ruleServed = "served"

// served returns when all workers that are there have been granted something that they asked for since then.
func (r *round) served(since int64) {
	r.Helper()
	granted := func(e history.Event) bool { return e.Kind == history.OK && e.Do == history.Acquire }
	for end := time.Now().Add(r.limit()); ; <-time.After(100 * time.Millisecond) {
		var waits []string
		for _, w := range r.workers {
			events, err := history.Read(filepath.Join(r.dir, w.job.Process+".jsonl"))
			require.NoError(r, err)
			asked := map[int64]bool{}
			if !slices.ContainsFunc(events, func(e history.Event) bool {
				if e.Kind == history.Invoke && e.At > since {
					asked[e.Op] = true
				}
				return asked[e.Op] && granted(e)
			}) && w.alive() {
				waits = append(waits, w.job.Process)
			}
		}
		switch {
		case len(waits) == 0:
			r.tally.check(ruleServed)
			return
		case time.Now().After(end):
			r.tally.check(ruleServed)
			r.found = append(r.found, checker.Violation{Rule: ruleServed, Text: fmt.Sprintf(
				"%v after the endpoint had moved, and later, nothing that was asked for then was granted to %v", r.limit(), waits)})
			return
		}
	}
}

// stoodStill is how late an answer may be in which a hold may be lost by that alone.
const stoodStill = 500 * time.Millisecond

// meter asks some servers all the time, and returns what says how late an answer was at the most.
func (r *round) meter(some []*harness.Server) (worst func() time.Duration) {
	r.Helper()
	var mu sync.Mutex
	var most time.Duration
	over := make(chan struct{})
	var asks sync.WaitGroup
	for _, s := range some {
		client, last := r.world.direct(r, s), time.Now()
		asks.Go(func() {
			for goesOn := true; goesOn; {
				select {
				case <-over:
					goesOn = false
				case <-time.After(10 * time.Millisecond):
				}
				ctx, cancel := context.WithTimeout(context.Background(), auditLimit)
				err := client.Do(ctx, client.B().Ping().Build()).Error()
				cancel()
				now := time.Now()
				mu.Lock()
				most = max(most, now.Sub(last))
				mu.Unlock()
				if err == nil {
					last = now
				}
			}
		})
	}
	return func() time.Duration {
		close(over)
		asks.Wait()
		return most
	}
}

// passwordOfRound is what all workers show, and any server without a password takes.
const passwordOfRound = "worker"

// ofRefusals have a master refuse for a while what it did before: its snapshots fail, or it has another password.
var ofRefusals = []*fault{
	passing("snapshots fail (MISCONF)", func(r *round) func() {
		var end []func()
		for _, s := range r.world.d.Masters(r) {
			end = append(end, r.failSnapshots(s))
		}
		return func() {
			for _, one := range end {
				one()
			}
		}
	}),
	passing("password changed, and back (WRONGPASS)", func(r *round) func() {
		end := r.tellFor([]string{"ACL", "SETUSER", "default", "resetpass", ">another"}, "ACL", "SETUSER", "default", "nopass")
		r.tell("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") // who is in stays in
		return end
	}),
}

// demoted is a master that stands alone and becomes a replica of nobody.
var demoted = passing("master made a replica, and back (READONLY)", func(r *round) func() {
	return r.tellFor([]string{"REPLICAOF", "127.0.0.1", "1"}, "REPLICAOF", "NO", "ONE")
})

// passing is a fault that passes by itself, as far as anybody knows.
func passing(name string, refuse func(*round) (end func())) *fault {
	return onServer(name, 300*ms, 1500*ms, func(r *round, record *history.Fault) func() {
		record.Passes = true
		return refuse(r)
	})
}

// failSnapshots has something in the way of a server's snapshots, until the end.
func (r *round) failSnapshots(s *harness.Server) (end func()) {
	r.Helper()
	client := r.world.direct(r, s)
	dir, err := client.Do(r.within(auditLimit), client.B().ConfigGet().Parameter("dir").Build()).AsStrMap()
	require.NoError(r, err)
	inTheWay := filepath.Join(dir["dir"], "dump.rdb")
	require.NoError(r, os.Mkdir(inTheWay, 0o755))
	r.order(s, "CONFIG", "SET", "save", "3600 1000000")
	require.Eventually(r, func() bool {
		_ = client.Do(r.within(auditLimit), client.B().Bgsave().Build()).Error() // another one may be on its way
		text, err := client.Do(r.within(auditLimit), client.B().Info().Section("persistence").Build()).ToString()
		return err == nil && slices.Contains(strings.Fields(text), "rdb_last_bgsave_status:err")
	}, auditLimit, 5*time.Millisecond, "no snapshot fails at "+s.Addr)
	return func() {
		require.NoError(r, os.Remove(inTheWay))
		r.order(s, "SAVE") // it waits for its turn
		r.order(s, "CONFIG", "SET", "save", "")
		require.NoError(r, os.Remove(inTheWay))
	}
}

// endless are held without an end, and that only during the faults of this file.
var endless = []string{"endless 1", "endless 2", "endless 3"}

// losesReleases is a fault after which the server has holds again that were given back, and that nothing
// ends but their node. What remembers returns what makes the server forget, and that what heals.
func losesReleases(name string, remember func(*round, *history.Fault) (lose func() (heal func()))) *fault {
	return &fault{name: name, alone: true, begin: func(r *round, record *history.Fault) func() {
		record.Amnesia = true
		r.command(job.Endless)
		r.givesBack(history.Monotonic())
		lose := remember(r, record)
		r.givesBack(history.Monotonic())
		heal := lose()
		r.command(job.Short)
		record.LostNow()
		return func() {
			heal()
			record.Shown = r.standing()
		}
	}}
}

// givesBack returns when somebody has given back what he had without an end, since then, or when that takes too long: other
// faults have their aftermath.
func (r *round) givesBack(since int64) {
	r.Helper()
	gave := func(e history.Event) bool {
		return e.At > since && e.Kind == history.OK && e.Do == history.Release && slices.Contains(endless, e.Name)
	}
	for end := time.Now().Add(r.limit()); time.Now().Before(end); {
		r.wait(500*time.Millisecond, time.Second)
		for _, w := range r.workers {
			events, err := history.Read(filepath.Join(r.dir, w.job.Process+".jsonl"))
			require.NoError(r, err)
			if slices.ContainsFunc(events, gave) {
				return
			}
		}
	}
}

var restarting = losesReleases("restart that loses releases of holds without end", snapshot)

// standing returns the claims that hold without an end, as soon as there are none, or when the limit of a drain has
// passed.
func (r *round) standing() (claims []string) {
	r.Helper()
	reader := testkit.Patient{T: r.T}.Reader(r.world.client, r.ns)
	for end := time.Now().Add(r.limit()); ; <-time.After(50 * time.Millisecond) {
		claims = nil
		for _, name := range endless {
			for _, kind := range []keyspace.Kind{keyspace.Lock, keyspace.Sem} {
				for _, h := range reader.Holders(kind, name) {
					claims = append(claims, h.ID)
				}
			}
		}
		if len(claims) == 0 || time.Now().After(end) {
			return claims
		}
	}
}

// limit is how long what must come in the end may take.
func (r *round) limit() time.Duration {
	return time.Duration(r.workers[0].job.DrainLimit) * time.Millisecond
}
