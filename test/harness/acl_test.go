package harness

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestTheSmallestUserIsHeldToItsNamespace(t *testing.T) {
	t.Parallel()
	s := Start(t)
	client := s.Client(t, s.SmallestUser(t, "mine"))

	// EVAL is allowed; what the script may touch is what the rules say.
	try := func(key string) error {
		return client.Do(within(t, settleLimit), client.B().Eval().
			Script(`return redis.call("HGET", KEYS[1], "f")`).Numkeys(1).Key(key).Build()).Error()
	}
	require.True(t, rueidis.IsRedisNil(try("mine:sem:{x}:state")))
	require.ErrorContains(t, try("other:sem:{x}:state"), "NOPERM")
	require.ErrorContains(t, client.Do(within(t, settleLimit), client.B().Flushall().Build()).Error(), "NOPERM")
}
