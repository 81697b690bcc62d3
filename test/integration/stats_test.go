package integration

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// A replica refuses every write, so what it answers was read.
func TestStatsOnAReplica(t *testing.T) {
	b := private(t)
	host, port, err := net.SplitHostPort(b.server.Addr)
	require.NoError(b, err)
	replica := harness.Start(t, "--replicaof", host, port)
	c := b.client(semaphore.Config{Lease: time.Minute})
	b.take(b.sem(c, "gpu", 2), nil)
	dead := b.client(semaphore.Config{Lease: safe})
	_, err = b.sem(dead, "gpu", 2).Acquire(b.within(patience), &semaphore.AcquireOptions{NoRenew: true, Lease: safe})
	require.NoError(b, err)

	reader, err := semaphore.New(replica.Client(t), semaphore.Config{Namespace: b.ns})
	require.NoError(b, err)
	defer func() { require.NoError(b, reader.Close(b.within(patience))) }()
	want := semaphore.Stats{Name: "gpu", Capacity: 2, Held: 1, Holders: 1, Expired: 1}
	var seen semaphore.Stats
	b.await("the replica to have both permits, one of them expired", func() bool {
		seen, err = b.sem(reader, "gpu", 9).Stats(b.within(patience))
		require.NoError(b, err)
		return seen == want
	})
	held := 0
	for holder, err := range b.sem(reader, "gpu", 9).Holders(b.within(patience)) {
		require.NoError(b, err)
		require.Equal(b, c.Node(), holder.Node)
		held++
	}
	require.Equal(b, 1, held)
	direct := replica.Client(t)
	refused := direct.Do(b.within(patience), direct.B().Set().Key(b.ns+":x").Value("1").Build()).Error()

	require.ErrorContains(b, refused, "READONLY")
}
