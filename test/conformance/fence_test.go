package conformance

import (
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/fence"
)

func fenceTests() []test {
	return []test{
		{name: "fence/a guard refuses an older hold", run: guard},
		{name: "fence/check and write in one script", run: guardedWrite},
	}
}

func guard(w *world) {
	guard, err := fence.NewRedis(w.redis[0], fence.RedisConfig{Namespace: w.ns})
	require.NoError(w, err)
	older, newer := w.twoFences()
	require.NoError(w, guard.Admit(w.Within(patience), door, older))
	require.NoError(w, guard.Admit(w.Within(patience), door, newer))
	require.NoError(w, guard.Admit(w.Within(patience), door, newer), "one hold writes often")
	err = guard.Admit(w.Within(patience), door, older)
	require.ErrorIs(w, err, fence.ErrStale)
	var stale *fence.StaleError
	require.ErrorAs(w, err, &stale)
	require.Equal(w, fence.StaleError{Name: door, Fence: older, Greatest: newer}, *stale)
	require.ErrorIs(w, guard.Admit(w.Within(patience), door, 0), fence.ErrStale, "no hold at all")
	require.NoError(w, guard.Forget(w.Within(patience), door, newer))
	require.NoError(w, guard.Admit(w.Within(patience), door, older))
}

func guardedWrite(w *world) {
	older, newer := w.twoFences()
	write := func(fences int64, value string) bool {
		w.Helper()
		script := fence.Lua() + `
			if not admit(KEYS[1], ARGV[1]) then return 0 end
			redis.call("HSET", KEYS[1], "value", ARGV[2])
			return 1`
		c := w.redis[1]
		done, err := c.Do(w.Within(patience), c.B().Eval().Script(script).Numkeys(1).
			Key(w.ns+":row").Arg(text(fences), value).Build()).AsBool()
		require.NoError(w, err)
		return done
	}
	require.True(w, write(older, "first"))
	require.True(w, write(newer, "second"))
	require.False(w, write(older, "too late"))
	c := w.redis[0]
	value, err := c.Do(w.Within(patience), c.B().Hget().Key(w.ns+":row").Field("value").Build()).ToString()
	require.NoError(w, err)
	require.Equal(w, "second", value)
}

// twoFences are those of two holds of the door, one after the other.
func (w *world) twoFences() (older, newer int64) {
	w.Helper()
	for _, c := range w.locks() {
		l := must(w, lock(c, door, nil))
		older, newer = newer, l.Fence()
		release(w, l)
	}
	require.Greater(w, newer, older)
	return older, newer
}
