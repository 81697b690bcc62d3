package jam_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/test/browser/jam"
	"github.com/berth-go/berth/test/harness"
)

func TestMain(m *testing.M) {
	jam.Dies()
	os.Exit(harness.Main(m))
}

// Each part of the jam is what it is to be.
func TestTheJam(t *testing.T) {
	p := testkit.RealTime(t)
	server, ns := harness.Start(t), harness.Namespace(t)
	made, err := jam.Make(p.Within(testkit.Patience), jam.Config{URL: server.URL(), Namespace: ns})
	require.NoError(t, err)
	closed := false
	defer func() {
		if !closed {
			_ = made.Close(p.Within(testkit.Patience))
		}
	}()
	redis := server.Client(t)
	read := p.Reader(redis, ns)
	explained, err := inspect.New(redis, inspect.Config{Namespace: ns})
	require.NoError(t, err)
	codes := func(kind keyspace.Kind, name string) (codes []inspect.Code) {
		e, err := explained.Explain(p.Within(testkit.Patience), kind, name, "")
		require.NoError(t, err)
		t.Logf("%s", e)
		for _, r := range e.Reasons {
			codes = append(codes, r.Code)
		}
		return codes
	}

	full := read.Look(keyspace.Sem, jam.Full)
	require.Equal(t, []int{8, 8, 40}, []int{full.Capacity, full.Held, full.Waiting})
	require.Contains(t, codes(keyspace.Sem, jam.Full), inspect.Full)
	require.Equal(t, made.Dead, full.Longest.Node, "the one that was killed has held it for longest")
	require.Greater(t, full.Longest.Left, 50*time.Minute)

	cycles, err := explained.Cycles(p.Within(testkit.Patience), &inspect.CycleOptions{Within: testkit.Patience})
	require.NoError(t, err)
	require.Len(t, cycles.Cycles, 1)
	require.Len(t, cycles.Cycles[0].Links, len(jam.Cycle))
	require.True(t, cycles.Cycles[0].Certain)

	require.Equal(t, 5, read.Look(keyspace.Pool, jam.Resting).Waiting)
	require.NotEmpty(t, codes(keyspace.Pool, jam.Resting))
	require.Equal(t, 1, read.Look(keyspace.Pool, jam.Proxies).Waiting)
	require.NotNil(t, read.Look(keyspace.Sem, jam.Paused).Pause)
	require.Equal(t, berth.Forever, read.Look(keyspace.Lock, jam.Endless).Longest.Lease)
	for kind, names := range map[keyspace.Kind][]string{
		keyspace.Sem:  {jam.Image, jam.Escaped, jam.Long, jam.RightTo},
		keyspace.Lock: {jam.Script, jam.Parent}, keyspace.Pool: {jam.Location},
	} {
		for _, name := range names {
			require.Positive(t, read.Look(kind, name).Waiting, name)
			codes(kind, name)
		}
	}

	require.NoError(t, made.Close(p.Within(testkit.Patience)))
	closed = true
	require.Equal(t, 1, read.Look(keyspace.Sem, jam.Full).Held, "only the one that was killed is left")
}

// Where work is done, an operator who ends what is in the way sees all flow.
func TestAJamThatIsSolvedFlows(t *testing.T) {
	p := testkit.RealTime(t)
	server, ns := harness.Start(t), harness.Namespace(t)
	made, err := jam.Make(p.Within(testkit.Patience), jam.Config{URL: server.URL(), Namespace: ns, Work: time.Millisecond})
	require.NoError(t, err)
	defer func() { _ = made.Close(p.Within(testkit.Patience)) }()
	redis := server.Client(t)
	read := p.Reader(redis, ns)
	explained, err := inspect.New(redis, inspect.Config{Namespace: ns})
	require.NoError(t, err)
	p.Await("the full one flows but for the one that was killed", func() bool {
		n := read.Look(keyspace.Sem, jam.Full)
		return n.Held == 1 && n.Waiting == 0
	})

	cycles, err := explained.Cycles(p.Within(testkit.Patience), &inspect.CycleOptions{Within: testkit.Patience})
	require.NoError(t, err)
	require.Len(t, cycles.Cycles, 1)
	n, err := node.New(redis, node.Config{Namespace: ns})
	require.NoError(t, err)
	defer func() { _ = n.Close(p.Within(testkit.Patience)) }()
	release := cycles.Cycles[0].Release[0]
	_, err = n.Operator().Release(p.Within(testkit.Patience), berth.Target{Kind: keyspace.Lock, Name: release.Name, Claim: release.ID()})
	require.NoError(t, err)
	for _, name := range jam.Cycle {
		p.Await("the cycle is done with "+name, func() bool { n := read.Look(keyspace.Lock, name); return n.Held+n.Waiting == 0 })
	}

	_, err = n.Operator().Release(p.Within(testkit.Patience), berth.Target{Kind: keyspace.Lock, Name: jam.Endless, Claim: read.Look(keyspace.Lock, jam.Endless).Longest.ID})
	require.NoError(t, err)
	p.Await("who waited for the one that was killed is done", func() bool { n := read.Look(keyspace.Lock, jam.Endless); return n.Held+n.Waiting == 0 })
}
