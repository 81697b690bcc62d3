package swarm

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestAProbeIsADeadlineThatNobodyRevives(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.Equal(t, "probed", w.probe("a", 1))
		require.Equal(t, "probed", w.probe("b", 1))
		w.Advance(limit - ms)
		require.Equal(t, "alive 1", w.condemn("a"))
		require.Equal(t, "probed", w.probe("a", 1))
		require.Equal(t, []string{"p:b", "p:a"}, w.members())
		w.Advance(ms)
		require.Equal(t, "condemned", w.probe("b", 1), "it is late")
		require.Equal(t, "condemned", w.probe("b", 2), "for good")
		w.Advance(limit - ms)
		require.Equal(t, []string{"p:a", "c:b"}, w.members())
		require.Equal(t, "condemned 1", w.condemn("a"))
		require.Equal(t, "condemned 0", w.condemn("a"), "again")
		require.Equal(t, "unknown 0", w.condemn("c"))
	})
}

func TestWhoIsOverdueCannotLeave(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.probe("a", 1)
		w.Advance(limit)
		require.Equal(t, "condemned", w.leave("a", 1, 0))
		require.Equal(t, "condemned", w.leave("a", 1, 0))
		require.Equal(t, []string{"c:a"}, w.members())
	})
}

func TestALeaveOfAnEarlierRunChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.probe("a", 1)
		require.Equal(t, "left", w.leave("a", 1, 0))
		require.Equal(t, "left", w.leave("a", 1, 0), "again")
		require.Equal(t, "probed", w.probe("a", 2))
		require.Equal(t, "left", w.leave("a", 1, 60000))
		require.Equal(t, []string{"p:a"}, w.members())
		require.Equal(t, "left", w.probe("a", 1), "nor does a probe")
		require.Equal(t, "left", w.leave("a", 2, 60000))
		require.Equal(t, "left", w.probe("a", 2))
		require.Equal(t, []string{"t:a"}, w.members())
		require.Equal(t, 24*time.Hour+time.Minute, w.Expiry())
	})
}

func TestTheIdsOfADayAreForgottenInBoundedSteps(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for i := range 250 {
			w.probe(fmt.Sprintf("dead%d", i), 1)
			require.Equal(t, "left", w.leave(fmt.Sprintf("gone%d", i), 1, 60000))
		}
		w.Advance(limit)
		for i := range 250 {
			require.Equal(t, "condemned 1", w.condemn(fmt.Sprintf("dead%d", i)))
		}
		w.Advance(24*time.Hour - ms)
		n := w.node("a").start() // drops the tombstones, in several runs
		w.Advance(0)
		require.Len(t, w.members(), 251)
		w.Advance(300 * ms) // no two were condemned in one ms
		r := w.Call("swarm_probe", "b", "1", "l", limitMS, memoryMS)
		require.EqualValues(t, 1, r.Int(1), "more")
		require.Len(t, w.members(), 152)
		require.NoError(t, n.ProbeNow(context.Background()))
		w.Advance(0)
		require.ElementsMatch(t, []string{"p:a", "p:b"}, w.members())
		fields, err := w.Do("HKEYS", stateKey).AsStrSlice()
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"fmt", "n:a", "n:b"}, fields)
	})
}

func TestTheKeysEndTogetherADayAfterTheLastWord(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const day = 24*time.Hour + time.Minute
		w.probe("a", 1)
		require.Equal(t, day, w.Expiry())
		w.Advance(1500 * ms)
		w.probe("b", 1)
		require.Equal(t, day+2*time.Second, w.Expiry())
		w.probe("a", 1)
		require.Equal(t, day+2*time.Second, w.Expiry())
		w.Advance(time.Second)
		w.probe("a", 1)
		require.Equal(t, day+3*time.Second, w.Expiry(), "each probe moves it")
		w.Advance(time.Minute)
		w.condemn("a")
		require.Equal(t, day+63*time.Second, w.Expiry())
		w.condemn("b") // the last one that probes
		require.Equal(t, day+63*time.Second, w.Expiry())
		require.Equal(t, []string{probesKey, stateKey}, w.Keys())
		w.Until(day + 63*time.Second - ms)
		require.Len(t, w.Keys(), 2)
		w.Advance(ms)
		require.Empty(t, w.Keys())
	})
}

func TestALabelMayHaveAnyBytes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		label := "1 2 \n\x00\xff "
		n := w.node("a", func(c *Config) { c.Label = label }).start()
		for range 2 {
			for node, err := range n.Info(context.Background()) {
				require.NoError(t, err)
				require.Equal(t, label, node.Label)
			}
			w.Advance(time.Minute)
			require.NoError(t, n.Stop(context.Background()))
			w.Call("swarm_probe", "a", "5", label, limitMS, memoryMS)
			w.Advance(limit)
			w.condemn("a")
		}
	})
}

func TestANewerFormatIsRefusedAndNothingIsWritten(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node("a").start()
		w.Do("HSET", stateKey, "fmt", "3")
		dump := func() string {
			fields, err := w.Do("HGETALL", stateKey).AsStrMap()
			require.NoError(t, err)
			return fmt.Sprint(fields, w.members(), w.Expiry())
		}
		before := dump()
		require.ErrorIs(t, n.ProbeNow(ctx), berth.ErrIncompatible)
		_, err := n.FlushNow(ctx)
		require.ErrorIs(t, err, berth.ErrIncompatible)
		_, err = n.Zombies(ctx)
		require.ErrorIs(t, err, berth.ErrIncompatible)
		_, _, err = n.calls.Condemn(ctx, "a")
		require.ErrorIs(t, err, berth.ErrIncompatible)
		require.ErrorIs(t, n.Stop(ctx), berth.ErrIncompatible)
		require.ErrorContains(t, n.Start(ctx), "format 3")
		require.Equal(t, before, dump())
		require.Equal(t, []replaced{{last, "a", ReasonSilent}}, n.ends(), "it could not leave")
	})
}

// Of a state that was evicted, what is left is of use.
func TestANodeWhoseRecordIsGoneProbesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a").start()
		for _, key := range []string{stateKey, probesKey} {
			w.Do("DEL", key)
			require.NoError(t, n.ProbeNow(context.Background()))
			require.Equal(t, 24*time.Hour+time.Minute, w.Expiry())
			require.Equal(t, []string{"p:a"}, w.members())
		}
		w.Do("DEL", stateKey)
		w.Advance(1)
		require.Equal(t, "alive "+limitMS, w.condemn("a"))
		require.NoError(t, n.Stop(context.Background()))
		require.Empty(t, w.Keys())
	})
}
