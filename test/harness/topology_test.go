package harness

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// A child process has the specification alone.
func requireTakesWrites(t *testing.T, d *Deployment, key string) {
	t.Helper()
	client, err := rueidis.NewClient(d.Spec().Option())
	require.NoError(t, err)
	defer client.Close()
	require.NoError(t, set(t, client, key, "v"))
	value, err := get(t, client, key)
	require.NoError(t, err)
	require.Equal(t, "v", value)
}

func TestADeploymentOfOneServer(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, ...string) *Deployment{"redis": Single, "valkey": Valkey} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t, "--maxmemory", "3mb")
			require.Equal(t, name, d.Name)
			require.Equal(t, d.Servers(), d.Masters(t))
			s, client := d.Servers()[0], d.Client(t)
			info, err := report(t.Context(), s, "INFO")
			require.NoError(t, err)
			require.Equal(t, name == "valkey", info["server_name"] == "valkey" && info["valkey_version"] != "")
			require.Equal(t, "3145728", info["maxmemory"])
			requireTakesWrites(t, d, "k")

			// Its clock is set forward and back.
			requireOffset(t, d, 0)
			for _, offset := range []time.Duration{-48 * time.Hour, 300 * time.Millisecond, 0, time.Hour} {
				d.SetClock(t, offset)
				requireOffset(t, d, offset)
			}

			// It has what it had at the time of a snapshot, and nothing survives a restart but the clock.
			require.NoError(t, set(t, client, "a", "before"))
			s.Snapshot(t)
			require.NoError(t, set(t, client, "a", "after"))
			s.Restore(t)
			value, err := get(t, client, "a")
			require.NoError(t, err)
			require.Equal(t, "before", value)
			s.Restart(t)
			_, err = get(t, client, "a")
			require.True(t, rueidis.IsRedisNil(err), "got %v", err)
			requireOffset(t, d, time.Hour)
		})
	}
}

// requireOffset looks at TIME in a script, as Berth does.
func requireOffset(t *testing.T, d *Deployment, offset time.Duration) {
	t.Helper()
	client := d.Client(t)
	before := time.Now()
	reply, err := client.Do(within(t, settleLimit),
		client.B().Eval().Script(`return redis.call("TIME")`).Numkeys(0).Build()).AsIntSlice()
	after := time.Now()
	require.NoError(t, err)
	at := time.Unix(reply[0], reply[1]*1000).Add(-offset)
	require.False(t, at.Before(before.Truncate(time.Microsecond)), "%v before %v", at, before)
	require.False(t, at.After(after), "%v after %v", at, after)
}

func TestAClusterTakesWritesAndAKilledMasterComesBackAsReplica(t *testing.T) {
	t.Parallel()
	d := Cluster(t)
	require.Len(t, d.Servers(), 6)
	masters := d.Masters(t)
	require.Len(t, masters, 3)
	client := d.Client(t)
	for _, key := range []string{"a", "b", "c", "{a}b"} { // three masters
		require.NoError(t, set(t, client, key, "v"))
	}
	slot, owner := d.owner(t, "a")
	require.Equal(t, 15495, slot)
	old, err := d.at(owner.addr)
	require.NoError(t, err)
	require.Contains(t, masters, old)

	d.KillMaster(t, "a")
	require.Zero(t, old.PID())
	require.NotContains(t, d.Masters(t), old)
	value, err := get(t, client, "a")
	require.NoError(t, err)
	require.Equal(t, "v", value, "the replica had it")
	requireTakesWrites(t, d, "{a}b")

	d.Rejoin(t)
	require.NotZero(t, old.PID())
	require.NotContains(t, d.Masters(t), old)
	requireRole(t, old, "slave")
	requireTakesWrites(t, d, "a")
}

// Where the machine stands still in the midst of it, a replica may take over before all have their places.
func TestAClusterIsMadeThoughAReplicaHasTakenOver(t *testing.T) {
	t.Parallel()
	d := Cluster(t)
	heir := d.servers[clusterSize]
	until(t, "a failover by hand", func(ctx context.Context) error { return order(ctx, heir, "CLUSTER", "FAILOVER") })
	require.Eventually(t, func() bool { return slices.Contains(d.Masters(t), heir) }, settleLimit, 50*time.Millisecond)
	require.NoError(t, d.appoint(within(t, settleLimit)))
	until(t, "a cluster as before", d.whole)
}

// A failover that loses exactly what came after the cut.
func TestAReplicaThatWasCutOffTakesOverWithWhatItHas(t *testing.T) {
	t.Parallel()
	for _, start := range []func(testing.TB) *Deployment{Cluster, Sentinel} {
		d := start(t)
		t.Run(d.Name, func(t *testing.T) {
			client := d.Client(t)
			for _, key := range []string{"a", "{a}b"} {
				masters := d.Masters(t)
				require.NoError(t, set(t, client, key, "before"))
				c := d.Cut(t, "a")
				require.Contains(t, masters, c.old)
				require.NotContains(t, masters, c.heir)
				require.NoError(t, set(t, client, key, "after"))
				c.TakeOver(t)
				require.Zero(t, c.old.PID())
				require.Contains(t, d.Masters(t), c.heir)
				value, err := get(t, client, key)
				require.NoError(t, err)
				require.Equal(t, "before", value)
				d.Rejoin(t)
				requireRole(t, c.old, "slave")
				requireTakesWrites(t, d, "a")
			}
		})
	}
}

func TestAMoveTakesKeysAlongAndAnswersAsRedisDoesUntilItIsFinished(t *testing.T) {
	t.Parallel()
	d := Cluster(t)
	client := d.Client(t)
	require.NoError(t, set(t, client, "{k}1", "one"))
	require.NoError(t, set(t, client, "{k}2", "two"))
	ctx := within(t, settleLimit)

	m := d.Move(t, "{k}")
	require.NotEqual(t, m.from, m.to)
	require.NoError(t, ask(ctx, m.from.Addr, "GET", "{k}1").Error(), "what is still there is served")
	require.ErrorContains(t, ask(ctx, m.from.Addr, "GET", "{k}3").Error(), "ASK")
	require.ErrorContains(t, ask(ctx, m.from.Addr, "MGET", "{k}1", "{k}3").Error(), "TRYAGAIN")

	m.Keys(t)
	require.ErrorContains(t, ask(ctx, m.from.Addr, "GET", "{k}1").Error(), "ASK "+strconv.Itoa(m.slot)+" "+m.to.Addr)
	value, err := get(t, client, "{k}1")
	require.NoError(t, err)
	require.Equal(t, "one", value, "the client asks the other master")
	require.NoError(t, set(t, client, "{k}3", "three"))

	m.Finish(t)
	require.ErrorContains(t, ask(ctx, m.from.Addr, "GET", "{k}1").Error(), "MOVED "+strconv.Itoa(m.slot)+" "+m.to.Addr)
	values, err := ask(ctx, m.to.Addr, "MGET", "{k}1", "{k}2", "{k}3").AsStrSlice()
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two", "three"}, values)
	requireTakesWrites(t, d, "{k}1")
	d.Move(t, "{k}").Finish(t)
	requireTakesWrites(t, d, "{k}1")
}

func TestSentinelReplacesAMasterThatIsKilledAndOneThatIsNot(t *testing.T) {
	t.Parallel()
	d := Sentinel(t)
	require.Len(t, d.Servers(), 3)
	require.Len(t, d.Spec().Addresses, 3)
	first := d.Masters(t)
	require.Len(t, first, 1)
	client := d.Client(t)
	require.NoError(t, set(t, client, "k", "v"))

	d.Failover(t)
	require.Zero(t, first[0].PID())
	second := d.Masters(t)
	require.Len(t, second, 1)
	require.NotSame(t, first[0], second[0])
	value, err := get(t, client, "k")
	require.NoError(t, err)
	require.Equal(t, "v", value, "the replica had it")
	requireTakesWrites(t, d, "k")

	d.Rejoin(t)
	requireRole(t, first[0], "slave")
	require.Same(t, second[0], d.Masters(t)[0])

	d.Switchover(t)
	third := d.Masters(t)
	require.NotSame(t, second[0], third[0])
	requireTakesWrites(t, d, "k")
	require.NotZero(t, second[0].PID())
	d.Rejoin(t)
	requireRole(t, second[0], "slave")
	requireRole(t, third[0], "master")

	d.Failover(t) // and a second one beside it
	d.Failover(t)
	requireTakesWrites(t, d, "k")
	d.Rejoin(t)
	require.Len(t, d.running(), 3)
	requireTakesWrites(t, d, "k")
}

func requireRole(t *testing.T, s *Server, role string) {
	t.Helper()
	info, err := report(t.Context(), s, "INFO", "replication")
	require.NoError(t, err)
	require.Equal(t, role, info["role"])
}
