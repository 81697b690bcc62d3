package semaphore_test

import (
	"fmt"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/model"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/internal/testkit/link"
)

func TestTheSemaphoreKeepsTheLawsWhateverHappens(t *testing.T) {
	require.NoError(t, amount.Histories(5))
	inWorld(t, func(t *testing.T, w *world) {
		runs := 0
		// Hidden in a TB, because rapid asks a T for what bubbles do not have.
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) {
			runs++
			model.Run(rt, model.World{
				Redis: w.Redis, Namespace: "berth", Name: fmt.Sprint(gpu, runs), Lease: lease, Exact: true,
				Connect: func() (rueidis.Client, *link.Link) {
					l := link.New(testkit.Script)
					redis, err := w.Server.Client(link.RarePings, l.Wrap)
					require.NoError(t, err)
					return redis, l
				},
				Advance: w.Advance,
				Settle:  func(func() bool) { w.Advance(0) },
			})
		})
	})
}
