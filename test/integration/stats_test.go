package integration

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

func last(_ int, err error) error { return err }

// A replica refuses every write, so what it answers was read.
func TestStatsOnAReplica(t *testing.T) {
	w := private(t)
	host, port, err := net.SplitHostPort(w.server.Addr)
	require.NoError(w, err)
	replica := harness.Start(t, "--replicaof", host, port)
	c := w.client(semaphore.Config{Lease: time.Minute})
	w.take(w.sem(c, "gpu", 2), nil)
	dead := w.client(semaphore.Config{Lease: safe})
	_, err = w.sem(dead, "gpu", 2).Acquire(w.Within(patience), &semaphore.AcquireOptions{NoRenew: true, Lease: safe})
	require.NoError(w, err)

	reader, err := semaphore.New(replica.Client(t), semaphore.Config{Namespace: w.ns, Retry: berth.Retry{Attempts: 1}})
	require.NoError(w, err)
	defer func() { require.NoError(w, reader.Close(w.Within(patience))) }()
	want := semaphore.Stats{Name: "gpu", Capacity: 2, Held: 1, Holders: 1, Expired: 1}
	var seen semaphore.Stats
	w.Await("the replica to have both permits, one of them expired", func() bool {
		seen, err = reader.Operator().Stats(w.Within(patience), "gpu")
		require.NoError(w, err)
		return seen == want
	})
	held := 0
	for holder, err := range reader.Operator().Holders(w.Within(patience), "gpu") {
		require.NoError(w, err)
		require.Equal(w, c.Node(), holder.Node)
		held++
	}
	require.Equal(w, 1, held)
	// What leads to a write is not read there.
	for what, err := range map[string]error{
		"release": last(reader.Operator().Release(w.Within(patience), berth.Target{Name: "gpu", Node: c.Node()})),
		"all":     last(reader.Operator().Release(w.Within(patience), berth.Target{Node: c.Node()})),
		"resize":  reader.Operator().Resize(w.Within(patience), "gpu", 3, nil),
	} {
		require.ErrorIs(w, err, berth.ErrUnavailable, what)
		require.ErrorContains(w, err, "a replica answered", what)
	}
	direct := replica.Client(t)
	refused := direct.Do(w.Within(patience), direct.B().Set().Key(w.ns+":x").Value("1").Build()).Error()

	require.ErrorContains(w, refused, "READONLY")
}
