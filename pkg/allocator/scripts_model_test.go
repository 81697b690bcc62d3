package allocator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/model/pool"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/scripts/composed"
)

// TestTheScriptsOfAPoolKeepTheLawsWhateverHappens drives the scripts themselves.
func TestTheScriptsOfAPoolKeepTheLawsWhateverHappens(t *testing.T) {
	require.NoError(t, amount.Histories(20))
	testkit.In(t, "proxies", "berth:pool:{proxies}:state", "", func(t *testing.T, w *testkit.World) {
		space := must(keyspace.New(keyspace.DefaultNamespace))(t)
		heard, runs := pool.Listen(t, w.Redis, space), 0
		// Hidden in a TB, because rapid asks a T for what bubbles do not have.
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			runs++
			pool.Run(rt, pool.World{
				Redis: w.Redis, Scripts: composed.Library(), Space: space, Name: fmt.Sprint("proxies", runs),
				Heard: heard, Now: time.Now, Advance: func(d time.Duration, _ ...string) { w.Advance(d) },
			})
		})
	})
}
