package row

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/bench/contender"
)

// spy notes the names that are locked.
type spy struct {
	contender.Locker
	mu    sync.Mutex
	names []string // guarded by mu
}

func (s *spy) Lock(ctx context.Context, name string) (func() error, error) {
	s.mu.Lock()
	s.names = append(s.names, name)
	s.mu.Unlock()
	return s.Locker.Lock(ctx, name)
}

// spied has a row use a spy in the place of its locker.
func spied(t *testing.T, env *Env, column string) *spy {
	t.Helper()
	l, err := openLocker(column, env.Addr)
	require.NoError(t, err)
	s := &spy{Locker: l}
	_, err = Kept(env, "locker "+column, func() (contender.Locker, func(), error) { return s, l.Close, nil })
	require.NoError(t, err)
	return s
}

func keys(t *testing.T, env *Env) int64 {
	t.Helper()
	n, err := env.Redis.Do(t.Context(), env.Redis.B().Dbsize().Build()).AsInt64()
	require.NoError(t, err)
	return n
}

func TestFreshNamesAreNewAndDoNotStay(t *testing.T) {
	env := testEnv(t)
	s := spied(t, env, Berth)
	_, err := fresh(2).Measure(t.Context(), env, Berth)
	require.NoError(t, err)
	all := len(s.names)
	require.Positive(t, all)
	slices.Sort(s.names)
	require.Len(t, slices.Compact(s.names), all)
	require.Zero(t, keys(t, env))
}

func TestAWorkersNameIsItsOwn(t *testing.T) {
	env := testEnv(t)
	s := spied(t, env, Berth)
	_, err := uncontended(2).Measure(t.Context(), env, Berth)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(s.names), 2)
	slices.Sort(s.names)
	require.Len(t, slices.Compact(s.names), 2)
}

func TestMemoryIsGivenBack(t *testing.T) {
	env := testEnv(t)
	for _, column := range []string{Berth, contender.Semaphore.Name, "redislock"} {
		values, err := measureMemory(t.Context(), env, column)
		require.NoError(t, err, column)
		require.Contains(t, values, "held", column)
		require.Zero(t, keys(t, env), column)
	}
}

func TestIdleNamesAreGivenBack(t *testing.T) {
	env := testEnv(t)
	env.For = time.Nanosecond // no cycle ends within it, as where the machine stands still
	values, err := measureIdle(t.Context(), env, Berth)
	require.NoError(t, err)
	require.InDelta(t, 130, values["usage"], 60)
	for _, rate := range []string{"empty", "cycles", "share"} {
		require.Positive(t, values[rate], rate)
		require.False(t, math.IsInf(values[rate], 0), rate)
	}
	require.Zero(t, keys(t, env))
}
