package integration

import (
	"net"
	"regexp"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/test/harness"
)

// durations are what of a sentence depends on the machine.
var durations = regexp.MustCompile(`\b\d+(\.\d+)?(ms|s)\b|\b\d+m\d\ds\b|\b\d+h\d\dm\b`)

// explains fails unless that is said of the semaphore "gpu" by a server, with T for each duration.
func (w *world) explains(server *harness.Server, says string, codes ...inspect.Code) {
	w.Helper()
	edits := []func(*rueidis.ClientOption){}
	if server == w.server {
		edits = append(edits, w.readingUser())
	}
	look, err := inspect.New(server.Client(w, edits...), inspect.Config{Namespace: w.ns, CallTimeout: calls})
	require.NoError(w, err)
	var e inspect.Explanation
	w.Await("its trips are made within a second", func() bool {
		e, err = look.Explain(w.Within(patience), keyspace.Sem, "gpu", "")
		require.NoError(w, err)
		return !e.Moving
	})
	require.Equal(w, says, durations.ReplaceAllString(e.String(), "T"))
	var told []inspect.Code
	for _, r := range e.Reasons {
		told = append(told, r.Code)
	}
	require.Equal(w, codes, told)
	require.Equal(w, server != w.server, e.Replica)
}

// alphaHolds has one process hold the only place, and another one wait for it. No heartbeat comes.
func (w *world) alphaHolds() {
	w.Helper()
	w.take(w.sem(w.node(node.Config{Label: "alpha", Lease: time.Hour}), "gpu", 1), nil)
	w.queue(w.sem(w.node(node.Config{Label: "beta", Lease: time.Hour}), "gpu", 1), nil, 1)
}

const (
	held     = `1 waits for semaphore "gpu", beta first (T): the one is held; alpha has held it for T and renews it (heard of T ago). `
	andNext  = ` Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in T.`
	whatNext = `Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in T.`
)

func TestExplainOfAFullServer(t *testing.T) {
	w := private(t)
	w.alphaHolds()
	w.explains(w.server, held+whatNext, inspect.Full)
	w.fill()
	w.explains(w.server, held+"The server is full: it refuses new claims, and who holds or waits goes on."+andNext,
		inspect.Full, inspect.ServerFull)
	_, err := w.sem(w.node(node.Config{}), "gpu", 1).TryAcquire(w.Within(patience), nil)
	require.ErrorContains(t, err, "the server is full", "it is so")
	w.drained()
	w.explains(w.server, held+whatNext, inspect.Full)
}

func TestExplainOfAServerWithoutEnoughReplicas(t *testing.T) {
	w := private(t)
	w.alphaHolds()
	w.do("CONFIG", "SET", "min-replicas-to-write", "1")
	w.explains(w.server, held+"The server refuses writes: nothing is granted or renewed until that ends, and leases run out."+andNext,
		inspect.Full, inspect.ServerRefuses)
	refused := w.admin.Do(w.Within(patience), w.admin.B().Set().Key(w.ns+":x").Value("1").Build()).Error()
	require.ErrorContains(t, refused, "NOREPLICAS", "it is so")
	w.do("CONFIG", "SET", "min-replicas-to-write", "0")
	w.explains(w.server, held+whatNext, inspect.Full)
}

func TestExplainOfAReplica(t *testing.T) {
	w := private(t)
	w.alphaHolds()
	host, port, err := net.SplitHostPort(w.server.Addr)
	require.NoError(t, err)
	replica := harness.Start(t, "--replicaof", host, port)
	there := &world{Patient: w.Patient, server: replica, admin: replica.Client(t), ns: w.ns, space: w.space, kind: w.kind}
	w.Await("the replica has it", func() bool { return there.info("replication", "master_link_status") == "up" })
	w.explains(replica, `1 waits for semaphore "gpu", beta first (T): the one is held; `+
		`alpha has held it for T and renews it (heard of T ago). This is what the replica knows. Nothing ends by itself: alpha renews.`,
		inspect.Full, inspect.OfReplica)
}
