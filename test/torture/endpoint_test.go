package torture

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/harness"
	"github.com/berth-go/berth/test/torture/checker"
	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

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
