package sem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestSemResize(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for _, args := range [][]string{{"3"}, {"3", "--keep"}, {"3", "--json"}} {
		got := apptest.Call(t, s.URL(), append([]string{"sem", "resize", "gpu"}, args...)...)
		require.Equal(t, apptest.Outcome(1, "", `berth: no semaphore "gpu" in namespace "berth": it has not been used, `+
			"or not for a minute; to set its capacity all the same, say --create\n"), got)
	}
	require.Equal(t, 1, apptest.Call(t, s.URL(), "sem", "show", "gpu").Code, "and nothing was written")
	const stays = "; forgotten when idle for 1m00s, unless --keep is given\n"
	for _, step := range []struct {
		args []string
		says string
	}{
		{[]string{"3", "--create"}, "gpu: capacity 3, created" + stays},
		{[]string{"5"}, "gpu: capacity 5, was 3" + stays},
		{[]string{"5", "--keep"}, "gpu: capacity 5; kept for good\n"},
		{[]string{"2", "--keep", "--create"}, "gpu: capacity 2, was 5; kept for good\n"},
		{[]string{"2", "--json", "--keep"}, "{\n  \"namespace\": \"berth\",\n  \"name\": \"gpu\",\n  \"capacity\": 2,\n  \"before\": 2,\n  \"kept\": true,\n  \"idleMs\": null\n}\n"},
		{[]string{"4", "--json"}, "{\n  \"namespace\": \"berth\",\n  \"name\": \"gpu\",\n  \"capacity\": 4,\n  \"before\": 2,\n  \"kept\": false,\n  \"idleMs\": 60000\n}\n"},
	} {
		got := apptest.Call(t, s.URL(), append([]string{"sem", "resize", "gpu"}, step.args...)...)
		require.Equal(t, apptest.Outcome(0, step.says, ""), got)
	}
	require.Equal(t, 4, apptest.NameOf(t, s, keyspace.Sem, "gpu").Capacity)
	require.Equal(t, "gpu: capacity 4, held 0, free 4, waiting 0\n", apptest.Call(t, s.URL(), "sem", "show", "gpu").Out)
}
