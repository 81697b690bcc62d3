package state_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/state"
)

func TestAMemberOfTheRegistryIsAKindAndAName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gpu", "shop:eu", ":"} {
		kind, told, ok := state.ParseMember(state.Member("sem", name))
		require.True(t, ok)
		require.Equal(t, "sem", kind)
		require.Equal(t, name, told)
	}
	_, _, ok := state.ParseMember("gpu")
	require.False(t, ok)
}

// Two releases side by side look for a name in the same place: a change here is a change of form.
func TestTheShardsOfTheRegistryNeverChange(t *testing.T) {
	t.Parallel()
	require.Equal(t, 16, state.Shards)
	for member, shard := range map[string]int{"sem:gpu": 4, "lock:nightly": 13, "pool:proxies": 9} {
		require.Equal(t, shard, state.Shard(member), member)
	}
	filled := map[int]int{}
	for i := range 1600 {
		filled[state.Shard(fmt.Sprintf("sem:%d", i))]++
	}
	require.Len(t, filled, state.Shards)
	for _, n := range filled {
		require.InDelta(t, 100, n, 50)
	}
}
