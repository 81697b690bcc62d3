package harness

import (
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/internal/testkit/link"
)

// Deployment is a running Redis, in whatever topology, of one test alone; it ends
// with the test. Its methods are called by one goroutine at a time. What a
// topology cannot do fails the test that asks for it.
type Deployment struct {
	// Name is one of redis, valkey, container, cluster, sentinel, endpoint, embedded.
	Name string

	spec    Spec
	servers []*Server // data nodes

	sentinel *watched  // nil unless Sentinel watches over it
	endpoint *Endpoint // nil unless one leads to its master
}

// Spec says how a process reaches a deployment. It is the same for as long as the
// deployment runs, and can be given to child processes as JSON.
type Spec struct {
	Addresses []string // host:port: the server, nodes of the cluster, or Sentinels
	MasterSet string   `json:",omitempty"` // what Sentinel calls the deployment
	Cluster   bool     `json:",omitempty"`
}

// dialLimit is how long a connection to a server of a machine that is busy may take.
const dialLimit = 30 * time.Second

// Option returns what a client needs to reach the deployment.
func (s Spec) Option() rueidis.ClientOption {
	option := rueidis.ClientOption{
		InitAddress:       append([]string(nil), s.Addresses...),
		DisableCache:      true, // Berth reads nothing that could be cached
		ForceSingleClient: s.MasterSet == "" && !s.Cluster,
		Sentinel:          rueidis.SentinelOption{MasterSet: s.MasterSet},
		Dialer:            net.Dialer{Timeout: dialLimit},
	}
	link.Slim(&option)
	return option
}

// Single is one redis-server process with a clock that can be set. Further
// settings are given as on its command line.
func Single(t testing.TB, args ...string) *Deployment {
	t.Helper()
	return alone("redis", one(t, program{binary: "redis-server", args: args, clock: true}))
}

// Valkey is one valkey-server process with a clock that can be set. Further
// settings are given as on its command line.
func Valkey(t testing.TB, args ...string) *Deployment {
	t.Helper()
	return alone("valkey", one(t, program{binary: "valkey-server", args: args, clock: true}))
}

// alone is a deployment of one server.
func alone(name string, s *Server) *Deployment {
	return &Deployment{Name: name, spec: Spec{Addresses: []string{s.Addr}}, servers: []*Server{s}}
}

// one runs one process, which ends with the test.
func one(t testing.TB, how program) *Server {
	t.Helper()
	return private(t, []maker{{how.binary, func([]string) (engine, error) { return run(how) }}})
}

// Spec says how a process reaches the deployment.
func (d *Deployment) Spec() Spec { return d.spec }

// Client returns a client of the deployment, closed when the test ends. Each edit
// may change the options first.
func (d *Deployment) Client(t testing.TB, edits ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	option := d.spec.Option()
	for _, edit := range edits {
		edit(&option)
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatalf("a client of the %s at %v: %v", d.Name, d.spec.Addresses, err)
	}
	t.Cleanup(client.Close)
	return client
}

// Servers returns the servers that hold data: all masters and replicas, those that
// are killed too. The Embedded one can be neither stopped nor killed.
func (d *Deployment) Servers() []*Server { return d.servers }

// Masters returns the servers that take writes as of now.
func (d *Deployment) Masters(t testing.TB) []*Server {
	t.Helper()
	switch {
	case d.spec.Cluster:
		return d.clusterMasters(t)
	case d.sentinel != nil:
		return []*Server{d.master(t)}
	case d.endpoint != nil:
		return []*Server{d.endpoint.master}
	}
	return d.servers
}

// SetClock sets the server's wall clock, at once, to that of the machine plus the
// offset, and keeps it there through a restart. It is for Single and Valkey.
func (d *Deployment) SetClock(t testing.TB, offset time.Duration) {
	t.Helper()
	p, ok := d.servers[0].engine.(*process)
	if !ok || !p.program.clock {
		t.Fatalf("the clock of the %s deployment cannot be set", d.Name)
	}
	if p.clock == nil {
		t.Fatalf("the clock of the %s deployment cannot be set: %v", d.Name, p.clockErr)
	}
	p.clock.set(offset)
}

// Rejoin runs again what was killed in a Cluster or under Sentinel, and returns
// when every server that is no master is a replica in sync with its master.
func (d *Deployment) Rejoin(t testing.TB) {
	t.Helper()
	switch {
	case d.spec.Cluster:
		d.clusterRejoin(t)
	case d.sentinel != nil:
		d.sentinelRejoin(t)
	default:
		t.Fatalf("the %s deployment has no replicas", d.Name)
	}
}
