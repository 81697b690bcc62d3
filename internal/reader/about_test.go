package reader_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestTheNodesOfASwarmAreCounted(t *testing.T) {
	inWorld(t, keyspace.Lock, func(t *testing.T, w *world) {
		ctx := context.Background()
		none, err := w.reader.Census(ctx, time.Hour)
		require.NoError(t, err)
		require.Zero(t, none, "there is no swarm")

		now := time.Now().UnixMilli()
		for member, score := range map[string]int64{
			"p:a": now + 1, "p:b": now + 5000, "p:dead": now, "p:longer": 1,
			"c:x": state.Condemned + now, "c:y": state.Condemned + now - 3_599_999, "c:forgotten": state.Condemned + now - 3_600_000,
		} {
			w.Do("ZADD", w.space.Key(keyspace.Swarm, "nodes", keyspace.ProbesPart), strconv.FormatInt(score, 10), member)
		}
		state := w.space.Key(keyspace.Swarm, "nodes", keyspace.StatePart)
		w.Do("HSET", state, "fmt", "1")
		some, err := w.reader.Census(ctx, time.Hour)
		require.NoError(t, err)
		require.Equal(t, reader.Census{Alive: 2, Zombie: 2, Condemned: 2}, some)

		w.Do("HSET", state, "fmt", "99")
		_, err = w.reader.Census(ctx, time.Hour)
		require.ErrorContains(t, err, "format 99")
	})
}

func TestAServerTellsAboutItself(t *testing.T) {
	inWorld(t, keyspace.Lock, func(t *testing.T, w *world) {
		about, err := w.reader.About(context.Background(), w.Redis)
		require.NoError(t, err)
		require.False(t, about.Replica)
		t.Logf("%+v", about)
	})
}
