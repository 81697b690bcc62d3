package pool

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
)

func TestAPoolIsSetAndShown(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Filled(t, s, "proxies", "a", apptest.Wild)
	berthPool := func(args ...string) apptest.Result {
		t.Helper()
		return apptest.Call(t, s.URL(), append([]string{"pool"}, args...)...)
	}
	wild := []string{"--quoted", "proxies", text.Quoted(apptest.Wild)}
	require.Equal(t, apptest.Outcome(0, "proxies: cooldown 30s, 2 sharers\n", ""), berthPool("set", "proxies", "--cooldown", "30s", "--sharers", "2"))
	all := "most recent first, cooldown 30s, 2 sharers, bindings forever, leases up to 1m00s, holds without limit\n"
	require.Equal(t, apptest.Outcome(0, "proxies: "+all, ""),
		berthPool("set", "proxies", "--policy", "most-recent", "--bind-for", "forever", "--max-lease", "1m", "--max-hold", "forever"))
	require.Equal(t, apptest.Outcome(0, "proxies: \"c\\x1b[2J\\xff\": no cooldown\n", ""), berthPool(append([]string{"set", "--cooldown", "0"}, wild...)...))
	require.Contains(t, berthPool("show", "proxies").Out, "\nset by an operator: "+all)
	require.Contains(t, berthPool("show", "proxies", "--json").Out, `"settings": {
    "policy": "most-recent",
    "cooldownMs": 30000,
    "maxSharers": 2,
    "bindForMs": -1,
    "maxLeaseMs": 60000,
    "maxHoldMs": -1,
    "byOperator": true
  }`)
	require.Contains(t, berthPool(append([]string{"show"}, wild...)...).Out, "\nof its own: no cooldown\n")
	require.Contains(t, berthPool(append([]string{"show", "--json"}, wild...)...).Out, `"cooldownMs": 0`)
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies", "settings": null}`, berthPool("set", "proxies", "--reset", "--json").Out)
	require.Equal(t, apptest.Outcome(0, "proxies: nothing is set\n", ""), berthPool("set", "proxies", "--reset"))
	require.Equal(t, apptest.Outcome(1, "", "berth: resource gone is not in pool \"proxies\" in namespace \"berth\"\n"), berthPool("set", "proxies", "gone", "--sharers", "1"))
	require.Equal(t, apptest.Outcome(0, "later: 3 sharers\n", ""), berthPool("set", "later", "--sharers", "3"))
	require.Equal(t, apptest.Outcome(0, "later: 0 resources, 0 free, 0 leased, 0 resting, waiting 0\nset by an operator: 3 sharers\n", ""), berthPool("show", "later"))
}

// What a process has said is told too.
func TestWhatAProcessHasSaidIsShown(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	pool := allocator.New(apptest.NodeOf(t, s, node.Config{}), "proxies", allocator.PoolConfig[string]{Cooldown: time.Second})
	_, err := pool.Add(context.Background(), []string{"a"}, nil)
	require.NoError(t, err)
	require.Contains(t, apptest.Call(t, s.URL(), "pool", "show", "proxies").Out, "\nset by processes: cooldown 1s\n")
}
