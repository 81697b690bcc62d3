package integration

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

func last(_ int, err error) error { return err }

// A replica refuses every write, so what it answers was read.
func TestAReplicaIsReadAndSaysSo(t *testing.T) {
	w := private(t)
	host, port, err := net.SplitHostPort(w.server.Addr)
	require.NoError(w, err)
	replica := harness.Start(t, "--replicaof", host, port)
	c := w.node(node.Config{Lease: time.Hour}) // its heartbeat, which drops what has expired, is far away
	w.take(w.sem(c, "gpu", 2), nil)
	dead := w.spawn(safe)
	dead.acquire("gpu", 2)
	dead.kill() // a heartbeat of its own, late on a busy machine, would drop what has expired

	reader := w.Reader(replica.Client(t), w.ns)
	w.Cleanup(func() {
		if w.Failed() {
			link, _ := replica.Client(t).Do(context.Background(), w.admin.B().Info().Section("replication").Build()).ToString()
			w.Logf("the replica has %+v\nthe server has %+v\n%s", reader.Look(keyspace.Sem, "gpu"), w.reader().Look(keyspace.Sem, "gpu"), link)
		}
	})
	w.Await("the replica to have both permits, one of them expired", func() bool {
		n := reader.Look(keyspace.Sem, "gpu")
		require.True(w, n.Replica)
		return n.Capacity == 2 && n.Held == 1 && n.Holders == 1 && n.Expired == 1
	})
	holders := reader.Holders(keyspace.Sem, "gpu")
	require.Len(w, holders, 1)
	require.Equal(w, c.ID(), holders[0].Node)
	// What leads to a write is not read there.
	there, err := node.New(replica.Client(t), node.Config{Namespace: w.ns, CallTimeout: calls, Retry: berth.Retry{Attempts: 1}})
	require.NoError(w, err)
	defer func() { require.NoError(w, there.Close(w.Within(patience))) }()
	for what, err := range map[string]error{
		"release": last(there.Operator().Release(w.Within(patience), berth.Target{Kind: keyspace.Sem, Name: "gpu", Node: c.ID()})),
		"all":     last(there.Operator().Release(w.Within(patience), berth.Target{Node: c.ID()})),
		"resize":  semaphore.NewOperator(there).Resize(w.Within(patience), "gpu", 3, nil),
	} {
		require.ErrorIs(w, err, berth.ErrUnavailable, what)
		require.ErrorContains(w, err, "a replica answered", what)
	}
	direct := replica.Client(t)
	refused := direct.Do(w.Within(patience), direct.B().Set().Key(w.ns+":x").Value("1").Build()).Error()

	require.ErrorContains(w, refused, "READONLY")
}
