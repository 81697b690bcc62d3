package top

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// jam is a server on which somebody waits for a semaphore, and two for a lock.
func jam(t *testing.T) *embedded.Server {
	t.Helper()
	s, ctx := apptest.Server(t), context.Background()
	gpu := semaphore.New(apptest.NodeOf(t, s, node.Config{Label: "host-1/one"}), "gpu", 1, nil)
	_, err := gpu.Acquire(apptest.Owned("order 66"), nil)
	require.NoError(t, err)
	go func() { _, _ = gpu.Acquire(ctx, nil) }() // ends with the node
	locks := apptest.LocksOf(t, s, node.Config{Label: "two\x1b[2J"})
	_, err = locks.Lock(ctx, "nightly", nil)
	require.NoError(t, err)
	for range 2 {
		go func() { _, _ = locks.Lock(ctx, "nightly", nil) }() // likewise
	}
	require.Eventually(t, func() bool {
		return apptest.Waiting(t, s, keyspace.Lock, "nightly") == 2 && apptest.Waiting(t, s, keyspace.Sem, "gpu") == 1
	}, apptest.Patience, 10*time.Millisecond)
	return s
}

func TestWithoutATerminalOnePageIsPrinted(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	require.Equal(t, apptest.Outcome(0, "Nobody waits for anything in namespace berth.\n", ""), apptest.Call(t, s.URL(), "top"))

	s = jam(t)
	rows := `lock +nightly +1/1 +2 +[\d.]+m?s +"two\\x1b\[2J" +[\d.]+m?s +held +\d+s\nsem +gpu +1/1 +1 +[\d.]+m?s +host-1/one +[\d.]+m?s +full +\d+s\n`
	var got apptest.Result
	require.Eventually(t, func() bool { // who has come less than a second ago may be missed
		got = apptest.Call(t, s.URL(), "top")
		var found topDocument
		return json.Unmarshal([]byte(apptest.Call(t, s.URL(), "top", "--json").Out), &found) == nil && len(found.Names) == 2
	}, apptest.Patience, 10*time.Millisecond)
	got = apptest.Call(t, s.URL(), "top")
	require.Zero(t, got.Code, got.Err)
	require.Empty(t, got.Err)
	require.Regexp(t, `^KIND +NAME +HELD +WAITING +OLDEST +HELD BY +FOR +STATE +AGE\n`+rows+`$`, got.Out)
	got = apptest.Call(t, s.URL(), "top", "--kind", "sem")
	require.NotContains(t, got.Out, "lock")
	require.Contains(t, got.Out, "gpu")

	got = apptest.Call(t, s.URL(), "top", "--kind", "sem", "--json")
	require.Zero(t, got.Code, got.Err)
	var document topDocument
	require.NoError(t, json.Unmarshal([]byte(got.Out), &document))
	require.Len(t, document.Names, 1)
	n := document.Names[0]
	require.Equal(t, []any{"gpu", "full", 1, 1, 1, "host-1/one", "order 66"}, []any{n.Name, n.State, n.Capacity, n.Held, n.Waiting, n.Label, n.Owner})
	require.Positive(t, n.HeldMs)
	require.Nil(t, n.Pause)
}

func TestWrongUsageOfTop(t *testing.T) {
	t.Parallel()
	require.Equal(t, apptest.Outcome(64, "", "berth: invalid --kind: \"bus\" is none of sem, lock, pool\nSee 'berth top --help'.\n"), apptest.Call(t, apptest.Nobody, "top", "--kind", "bus"))
	require.Equal(t, 64, apptest.Call(t, apptest.Nobody, "top", "more").Code)
	require.Equal(t, 69, apptest.Call(t, apptest.Nobody, "top").Code)
}
