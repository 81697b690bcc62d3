package conformance

import (
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/qlock"
)

func fenceTests() []test {
	return []test{
		{name: "fence/a guard refuses an older hold", run: guard},
		{name: "fence/check and write in one script", run: guardedWrite},
	}
}

func guard(b *bed) {
	guard, err := fence.NewRedis(b.redis[0], fence.RedisConfig{Namespace: b.ns})
	require.NoError(b, err)
	older, newer := b.twoFences()
	require.NoError(b, guard.Admit(b.within(patience), door, older))
	require.NoError(b, guard.Admit(b.within(patience), door, newer))
	require.NoError(b, guard.Admit(b.within(patience), door, newer), "one hold writes often")
	err = guard.Admit(b.within(patience), door, older)
	require.ErrorIs(b, err, fence.ErrStale)
	var stale *fence.StaleError
	require.ErrorAs(b, err, &stale)
	require.Equal(b, fence.StaleError{Name: door, Fence: older, Greatest: newer}, *stale)
	require.ErrorIs(b, guard.Admit(b.within(patience), door, 0), fence.ErrStale, "no hold at all")
	require.NoError(b, guard.Forget(b.within(patience), door, newer))
	require.NoError(b, guard.Admit(b.within(patience), door, older))
}

func guardedWrite(b *bed) {
	older, newer := b.twoFences()
	write := func(fences int64, value string) bool {
		b.Helper()
		script := fence.Lua() + `
			if not admit(KEYS[1], ARGV[1]) then return 0 end
			redis.call("HSET", KEYS[1], "value", ARGV[2])
			return 1`
		c := b.redis[1]
		done, err := c.Do(b.within(patience), c.B().Eval().Script(script).Numkeys(1).
			Key(b.ns+":row").Arg(text(fences), value).Build()).AsBool()
		require.NoError(b, err)
		return done
	}
	require.True(b, write(older, "first"))
	require.True(b, write(newer, "second"))
	require.False(b, write(older, "too late"))
	c := b.redis[0]
	value, err := c.Do(b.within(patience), c.B().Hget().Key(b.ns+":row").Field("value").Build()).ToString()
	require.NoError(b, err)
	require.Equal(b, "second", value)
}

// twoFences are those of two holds of the door, one after the other.
func (b *bed) twoFences() (older, newer int64) {
	b.Helper()
	locks := b.locks(qlock.Config{Lease: long})
	for _, c := range locks {
		l := must(b, lock(c, door, nil))
		older, newer = newer, l.Fence()
		release(b, l)
	}
	require.Greater(b, newer, older)
	return older, newer
}
