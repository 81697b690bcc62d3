package view

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestHowANameStands(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]berth.Name{
		"newer form": {Err: fmt.Errorf("this one: %w", berth.ErrIncompatible), Pause: &berth.Pause{}},
		"damaged":    {Err: errors.New("this one"), Pause: &berth.Pause{}},
		"paused":     {Pause: &berth.Pause{}, Capacity: 1},
		"empty":      {Kind: keyspace.Pool, Pool: &berth.PoolInfo{}},
		"gone":       {Kind: keyspace.Sem},
		"too few":    {Kind: keyspace.Sem, Capacity: 2, Held: 1, Waiting: 2, First: []berth.Waiter{{Weight: 1}, {Weight: 2, Alive: 1}}},
		"free":       {Kind: keyspace.Pool, Capacity: 3, Held: 1, Waiting: 1, Pool: &berth.PoolInfo{Free: 1, Resting: 1}},
		"resting":    {Kind: keyspace.Pool, Capacity: 2, Pool: &berth.PoolInfo{Resting: 2}},
		"over":       {Kind: keyspace.Sem, Capacity: 2, Held: 3},
		"held":       {Kind: keyspace.Lock, Capacity: 1, Held: 1},
		"full":       {Kind: keyspace.Pool, Capacity: 2, Held: 1, Pool: &berth.PoolInfo{Resting: 1}},
	} {
		require.Equal(t, want, NameState(&n))
	}
}

func TestWhoWaitsLongest(t *testing.T) {
	t.Parallel()
	require.Nil(t, Waits(&berth.Name{First: []berth.Waiter{{ID: "dead", Waited: time.Hour}}}))
	n := berth.Name{First: []berth.Waiter{
		{ID: "dead", Waited: time.Hour}, {ID: "urgent", Waited: 1, Alive: 1}, {ID: "old", Waited: time.Minute, Alive: 1}, {ID: "new", Waited: time.Second, Alive: 1},
	}}
	require.Equal(t, "old", Waits(&n).ID)
}

func TestAColumnOfAClaimThatNeitherHoldsNorWaitsIsEmpty(t *testing.T) {
	t.Parallel()
	for _, kind := range []keyspace.Kind{"", keyspace.Sem, keyspace.Lock, keyspace.Pool} {
		require.NotPanics(t, func() { Claims.Cells([]Claim{{Claim: inspect.Claim{Kind: kind}}}) }, kind)
	}
}

func TestAReplicaSaysOfNobodyThatItIsOverdue(t *testing.T) {
	t.Parallel()
	n := berth.Name{Longest: &berth.Holder{Label: "a", Lease: time.Minute, Left: 1, Held: time.Hour}}
	by := Names.Pick("HELD BY")[0]
	require.Equal(t, "a, overdue", by.Cell(&n).String())
	n.Replica = true
	require.Equal(t, "a", by.Cell(&n).String())
}

// A lock is held for so long, a pool by so many.
func TestWhatIsHeldMostOfALockAndOfAPool(t *testing.T) {
	t.Parallel()
	for _, kind := range []keyspace.Kind{keyspace.Lock, keyspace.Pool} {
		all := []berth.Name{
			{Kind: kind, Name: "c", Held: 1, Oldest: 2, Holders: 3},
			{Kind: kind, Name: "a", Held: 1, Holders: 1},
			{Kind: kind, Name: "b", Held: 1, Oldest: 1, Holders: 2},
		}
		for _, o := range Orders {
			if o.Name == "held" {
				o.Sort(all)
			}
		}
		require.Equal(t, []string{"c", "b", "a"}, []string{all[0].Name, all[1].Name, all[2].Name}, kind)
	}
}
