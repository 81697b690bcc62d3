package conformance

import (
	"strconv"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/fence"
)

func fenceTests() []test {
	return []test{{name: "fence/a guard refuses an older hold, by itself and in a script", run: guard}}
}

func guard(w *world) {
	var fences []int64
	for _, c := range w.locks() { // one after the other
		l := must(w, lock(c, door, nil))
		fences = append(fences, l.Fence())
		release(w, l)
	}
	older, newer := fences[0], fences[1]
	guard, err := fence.NewRedis(w.redis[0], fence.RedisConfig{Namespace: w.ns})
	require.NoError(w, err)
	require.NoError(w, guard.Admit(w.Within(patience), door, older))
	require.NoError(w, guard.Admit(w.Within(patience), door, newer))
	require.NoError(w, guard.Admit(w.Within(patience), door, newer), "one hold writes often")
	require.ErrorIs(w, guard.Admit(w.Within(patience), door, older), fence.ErrStale)
	require.NoError(w, guard.Forget(w.Within(patience), door, newer))
	require.NoError(w, guard.Admit(w.Within(patience), door, older))

	write := func(of int64) bool {
		w.Helper()
		c := w.redis[1]
		done, err := c.Do(w.Within(patience), c.B().Eval().Script(fence.Lua()+" return admit(KEYS[1], ARGV[1])").
			Numkeys(1).Key(w.ns+":row").Arg(strconv.FormatInt(of, 10)).Build()).AsBool()
		require.True(w, err == nil || rueidis.IsRedisNil(err), err)
		return done
	}
	require.Equal(w, []bool{true, true, false}, []bool{write(older), write(newer), write(older)})
}
