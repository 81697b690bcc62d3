package failover

import (
	"runtime"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

type byPointer struct{ rueidis.Client }

type byValue struct {
	rueidis.Client
	_ []int
}

func TestOnlyClientsInUseAreRemembered(t *testing.T) {
	t.Parallel()
	client := &byPointer{}
	m := Of(client)
	require.Same(t, m, Of(client))
	require.NotSame(t, m, Of(&byPointer{}))
	one, other := Of(byValue{}), Of(byValue{})
	require.NotSame(t, one, other, "it cannot be compared")
	runtime.KeepAlive(m)
	require.Eventually(t, func() bool {
		runtime.GC()
		shared.Lock()
		defer shared.Unlock()
		_, known := shared.of[client]
		return !known
	}, time.Minute, time.Millisecond)
}
