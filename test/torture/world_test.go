package torture

import (
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/harness"
)

// world is a topology that rounds take place on; it runs as long as the run does.
type world struct {
	name    string
	d       *harness.Deployment
	client  rueidis.Client     // the driver's
	proxies []*harness.Proxied // one for each worker; none where there is more than one server
	faults  []*fault

	endpoint *harness.Endpoint // nil unless one leads to the master
	lease    time.Duration     // of the rounds; 0 is leaseOfRound

	clients map[*harness.Server]rueidis.Client // each of one server alone
}

func newWorld(r *run, d *harness.Deployment, faults ...[]*fault) *world {
	r.Helper()
	w := &world{name: d.Name, d: d, client: d.Client(r), clients: map[*harness.Server]rueidis.Client{}}
	for _, f := range faults {
		w.faults = append(w.faults, f...)
	}
	return w
}

func singleWorld(r *run) *world { return behindProxies(r, harness.Single(r)) }

// valkeyWorld goes through the faults from the middle on, so that it and the single
// Redis have gone through all of them in half the rounds.
func valkeyWorld(r *run) *world {
	w := behindProxies(r, harness.Valkey(r))
	half := len(w.faults) / 2
	w.faults = slices.Concat(w.faults[half:], w.faults[:half])
	return w
}

func clusterWorld(r *run) *world {
	return newWorld(r, harness.Cluster(r), ofWorkers, ofServers, ofHands, ofClusters)
}

func sentinelWorld(r *run) *world {
	return newWorld(r, harness.Sentinel(r), ofWorkers, ofServers, ofHands, ofSentinels,
		[]*fault{losesReleases("failover that loses releases of holds without end", cutOff)})
}

func behindProxies(r *run, d *harness.Deployment) *world {
	r.Helper()
	w := newWorld(r, d, ofWorkers, ofNetworks, ofServers, ofHands, ofSingles, ofRefusals,
		[]*fault{demoted, restarting})
	for range workersOfRound {
		w.proxies = append(w.proxies, harness.Proxy(r, d.Servers()[0]))
	}
	return w
}

// direct is a client of one server alone, whatever others it belongs to.
func (w *world) direct(r *round, s *harness.Server) rueidis.Client {
	r.Helper()
	if w.clients[s] == nil {
		w.clients[s] = s.Client(r.T, func(o *rueidis.ClientOption) {
			o.ForceSingleClient = true
			o.PipelineMultiplex = -1 // one connection: what lets that in or kills the others is told over it
		})
	}
	return w.clients[s]
}

// tell has all masters carry out a command.
func (r *round) tell(args ...string) {
	r.Helper()
	for _, s := range r.world.d.Masters(r) {
		r.order(s, args...)
	}
}

// tellFor has all masters carry out a command, and the same ones, at its end, another.
func (r *round) tellFor(first []string, last ...string) (end func()) {
	r.Helper()
	masters := r.world.d.Masters(r)
	for _, s := range masters {
		r.order(s, first...)
	}
	return func() {
		for _, s := range masters {
			r.order(s, last...)
		}
	}
}

// order has one server carry out a command. It goes on for a moment, because the
// connection that it goes over may be one that a fault has broken.
func (r *round) order(s *harness.Server, args ...string) {
	r.Helper()
	client := r.world.direct(r, s)
	ctx, cancel := context.WithTimeout(context.Background(), auditLimit)
	defer cancel()
	var err error
	for ctx.Err() == nil {
		if err = client.Do(ctx, client.B().Arbitrary(args...).Build()).Error(); err == nil || rueidis.IsRedisNil(err) {
			return
		}
		<-time.After(20 * time.Millisecond) // not r.wait, whose draws must not depend on how often this is
	}
	require.NoError(r, err, "%v", args)
}
