package torture

import (
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/harness"
)

// ground is a topology that rounds take place on; it runs as long as the run does.
type ground struct {
	name    string
	d       *harness.Deployment
	client  rueidis.Client     // the driver's
	proxies []*harness.Proxied // one for each worker; none where there is more than one server
	faults  []*fault

	clients map[*harness.Server]rueidis.Client // each of one server alone
}

func newGround(r *run, d *harness.Deployment, faults ...[]*fault) *ground {
	r.Helper()
	g := &ground{name: d.Name, d: d, client: d.Client(r), clients: map[*harness.Server]rueidis.Client{}}
	for _, f := range faults {
		g.faults = append(g.faults, f...)
	}
	return g
}

func singleGround(r *run) *ground { return behindProxies(r, harness.Single(r)) }

// valkeyGround goes through the faults from the middle on, so that it and the single
// Redis have gone through all of them in half the rounds.
func valkeyGround(r *run) *ground {
	g := behindProxies(r, harness.Valkey(r))
	half := len(g.faults) / 2
	g.faults = slices.Concat(g.faults[half:], g.faults[:half])
	return g
}

func clusterGround(r *run) *ground {
	return newGround(r, harness.Cluster(r), ofWorkers, ofServers, ofHands, ofClusters)
}

func sentinelGround(r *run) *ground {
	return newGround(r, harness.Sentinel(r), ofWorkers, ofServers, ofHands, ofSentinels)
}

func behindProxies(r *run, d *harness.Deployment) *ground {
	r.Helper()
	g := newGround(r, d, ofWorkers, ofNetworks, ofServers, ofHands, ofSingles)
	for range workersOfRound {
		g.proxies = append(g.proxies, harness.Proxy(r, d.Servers()[0]))
	}
	return g
}

// direct is a client of one server alone, whatever others it belongs to.
func (g *ground) direct(r *round, s *harness.Server) rueidis.Client {
	r.Helper()
	if g.clients[s] == nil {
		g.clients[s] = s.Client(r.T, func(o *rueidis.ClientOption) { o.ForceSingleClient = true })
	}
	return g.clients[s]
}

// tell has all masters carry out a command.
func (r *round) tell(args ...string) {
	r.Helper()
	for _, s := range r.ground.d.Masters(r) {
		r.order(s, args...)
	}
}

// tellFor has all masters carry out a command, and the same ones, at its end, another.
func (r *round) tellFor(first []string, last ...string) (end func()) {
	r.Helper()
	masters := r.ground.d.Masters(r)
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
	client := r.ground.direct(r, s)
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
