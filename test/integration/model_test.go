package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/model"
	"github.com/berth-go/berth/internal/testkit/amount"
	modellink "github.com/berth-go/berth/internal/testkit/link"
)

const modelLease = 1200 * time.Millisecond

// The same model as on the embedded server, in real time: fewer histories, and no
// exact deadlines.
func TestTheSemaphoreKeepsTheLawsWhateverHappens(t *testing.T) {
	t.Parallel()
	require.NoError(t, amount.Histories(3))
	for lane := range 4 {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			w := shared(t)
			w.Relies(modelLease)
			runs := 0
			rapid.Check(t, func(rt *rapid.T) {
				runs++
				model.Run(rt, model.World{
					Redis: w.admin, Namespace: w.ns, Name: fmt.Sprint("gpu", runs), Lease: modelLease,
					Connect: func() (rueidis.Client, *modellink.Link) {
						l := modellink.New(nil)
						redis, err := rueidis.NewClient(linked(w, l))
						require.NoError(w, err)
						return redis, l
					},
					Advance: w.pass,
					Settle:  func(done func() bool) { w.Await("all has settled", done) },
				})
			})
		})
	}
}

// linked are the options of a client whose connections go through a link, which
// reads RESP2.
func linked(w *world, l *modellink.Link) rueidis.ClientOption {
	option := rueidis.ClientOption{
		InitAddress: []string{w.server.Addr}, DisableCache: true, AlwaysRESP2: true, ForceSingleClient: true,
		DialCtxFn: func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", addr)
		},
	}
	modellink.Slim(&option)
	l.Wrap(&option)
	return option
}
