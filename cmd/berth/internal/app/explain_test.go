package app_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// explained runs explain, and leaves out what is never the same twice.
func explained(t *testing.T, url string, args ...string) apptest.Result {
	t.Helper()
	got := apptest.Call(t, url, args...)
	lines := strings.Split(apptest.Settled(got.Out), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	got.Out = strings.Join(lines, "\n")
	return got
}

func TestExplain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := apptest.Server(t)
	url := s.URL()
	sem := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "alpha"}), "gpu", 2, nil)
	first, err := sem.Acquire(apptest.Owned("order 66\x1b[2J"), nil)
	require.NoError(t, err)
	require.Equal(t, apptest.Outcome(0, "Nobody waits for semaphore \"gpu\": 1 of 2 is free.\n", ""), explained(t, url, "sem", "explain", "gpu"))
	_, err = sem.Acquire(ctx, &semaphore.AcquireOptions{Lease: berth.Forever})
	require.NoError(t, err)
	other := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "beta"}), "gpu", 2, nil)
	go func() { _, _ = other.Acquire(ctx, nil) }() // ends with the node
	waiter := apptest.WaitingFor(t, s, keyspace.Sem, "gpu")

	held := `all 2 are held; alpha has held it for * and renews it (heard of * ago), and 1 other holds the rest.
Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in *.

LABEL OWNER NODE FENCE HELD LEFT RENEWS HEARD CLAIM
alpha "order 66\x1b[2J" ITS_NODE * * * renewing * *
alpha - ITS_NODE * * forever endless * *
`
	held = strings.ReplaceAll(held, "ITS_NODE", first.Node())
	require.Equal(t, apptest.Outcome(0, `1 waits for semaphore "gpu", beta first (*): `+held, ""), explained(t, url, "sem", "explain", "gpu"))
	require.Equal(t, apptest.Outcome(0, `beta has waited * for semaphore "gpu": `+held, ""), explained(t, url, "sem", "explain", "gpu", waiter))
	require.Equal(t, apptest.Outcome(0, "alpha has held semaphore \"gpu\" for * and renews it (heard of * ago).\nNothing ends by itself: alpha renews.\n", ""),
		explained(t, url, "sem", "explain", "gpu", first.ID()))

	for _, args := range [][]string{{"sem", "explain", "cpu"}, {"lock", "explain", "gpu"}, {"pool", "explain", "gpu"}, {"sem", "explain", "gpu", "x"}} {
		got := apptest.Call(t, url, args...)
		require.Equal(t, 1, got.Code, args)
		require.Regexp(t, ` is (not )?known`, got.Out)
		require.Empty(t, got.Err)
	}
	require.Equal(t, apptest.Outcome(64, "", "berth: invalid CLAIM: it is empty\nSee 'berth sem explain --help'.\n"), apptest.Call(t, url, "sem", "explain", "gpu", ""))
	require.Equal(t, 64, apptest.Call(t, url, "sem", "explain", "g{u").Code)
	require.Equal(t, 64, apptest.Call(t, url, "sem", "explain").Code)
	require.Equal(t, 64, apptest.Call(t, url, "sem", "explain", "gpu", "x", "y").Code)
	require.Equal(t, 69, apptest.Call(t, apptest.Nobody, "sem", "explain", "gpu").Code)
}

func TestExplainAPool(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := apptest.Server(t)
	pool := apptest.Filled(t, s, "proxies", "a", apptest.Wild)
	_, err := pool.Allocate(ctx, &allocator.AllocateOptions{Resource: apptest.Wild})
	require.NoError(t, err)
	beta := apptest.PoolOf(t, s, "proxies", node.Config{Label: "beta"})
	go func() { _, _ = beta.Allocate(ctx, &allocator.AllocateOptions{Resource: apptest.Wild}) }() // ends with the node
	waiter := apptest.WaitingFor(t, s, keyspace.Pool, "proxies")
	got := explained(t, s.URL(), "pool", "explain", "proxies")
	require.Equal(t, `1 waits for pool "proxies", beta first (*): it wants only "c\x1b[2J\xff", which host/one/1 has held for * and renews (heard of * ago).
Nothing ends by itself: host/one/1 renews. If it is not heard of again, beta gets it in *.
`, got.Out)

	var document struct {
		Namespace, Kind, Name, Text string
		Reasons                     []struct {
			Code, Resource string
			Base64         []byte
		}
		Blockers []struct {
			Resource               string
			Base64                 []byte
			ForMs, LeftMs, HeardMs *int64
		}
		Next     *struct{}
		IfSilent *struct {
			InMs     int64
			Grants   []string
			Resource string
			Base64   []byte
		}
	}
	text := apptest.Call(t, s.URL(), "pool", "explain", "proxies", "--json").Out
	require.NoError(t, json.Unmarshal([]byte(text), &document))
	require.Equal(t, []string{"berth", "pool", "proxies"}, []string{document.Namespace, document.Kind, document.Name})
	require.Contains(t, document.Text, `it wants only "c\x1b[2J\xff", which`)
	require.Equal(t, "one_held", document.Reasons[0].Code)
	require.Equal(t, apptest.Wild, string(document.Reasons[0].Base64))
	require.Len(t, document.Blockers, 1)
	require.Equal(t, apptest.Wild, string(document.Blockers[0].Base64))
	require.Positive(t, *document.Blockers[0].LeftMs)
	require.GreaterOrEqual(t, *document.Blockers[0].ForMs, *document.Blockers[0].HeardMs)
	require.Nil(t, document.Next)
	require.Positive(t, document.IfSilent.InMs)
	require.Equal(t, []string{waiter}, document.IfSilent.Grants)
	require.Equal(t, apptest.Wild, string(document.IfSilent.Base64))
}
