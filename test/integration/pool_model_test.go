package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	poolmodel "github.com/berth-go/berth/internal/model/pool"
	"github.com/berth-go/berth/internal/testkit/amount"
)

// The same model as on the embedded server, on what Redis makes of the scripts. The
// time that they read is the model's there as well, so nothing has to be waited for.
func TestTheScriptsOfAPoolKeepTheLawsWhateverHappens(t *testing.T) {
	t.Parallel()
	require.NoError(t, amount.Histories(3)) // the flag is one for all tests of the package
	for lane := range 16 {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			w := sharedPools(t)
			clock := poolmodel.NewClock(t, w.admin, w.ns+":clock")
			scripts, heard, runs := clock.Scripts(), poolmodel.Listen(t, w.admin, w.space), 0
			rapid.Check(t, func(rt *rapid.T) {
				runs++
				poolmodel.Run(rt, poolmodel.World{
					Redis: w.admin, Scripts: scripts, Space: w.space, Name: fmt.Sprint(proxies, runs),
					Heard: heard, Now: clock.Now, Advance: clock.Advance,
				})
			})
		})
	}
}
