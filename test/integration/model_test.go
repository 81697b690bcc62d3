package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/model"
	"github.com/berth-go/berth/internal/model/fast"
	poolmodel "github.com/berth-go/berth/internal/model/pool"
	"github.com/berth-go/berth/internal/testkit/amount"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/test/harness"
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
					Connect: func() (rueidis.Client, *link.Link) {
						l := link.New(nil)
						redis, err := rueidis.NewClient(w.linked(l))
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

// The scripts of pools, on what Redis makes of them. The time that they read is the model's there as well,
// so nothing has to be waited for.
func TestTheScriptsOfAPoolKeepTheLawsWhateverHappens(t *testing.T) {
	t.Parallel()
	require.NoError(t, amount.Histories(3)) // the flag is one for all tests of the package
	for lane := range 16 {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			w := shared(t)
			clock := poolmodel.NewClock(t, w.admin, w.ns+":clock")
			scripts, heard, runs := clock.Library(compose.MustParse(compose.Sources())), poolmodel.Listen(t, w.admin, w.space), 0
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

// The plain case of each call does what the general way does, on what each of these servers makes of the
// scripts.
func TestThePlainCasesDoWhatTheGeneralWayDoesOnEachServer(t *testing.T) {
	t.Parallel()
	require.NoError(t, amount.Histories(3)) // the flag is one for all tests of the package
	for _, of := range []string{"redis", "valkey", "cluster"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			var server *harness.Server
			switch of {
			case "redis":
				server = harness.Single(t).Servers()[0]
			case "valkey":
				server = harness.Valkey(t).Servers()[0]
			case "cluster":
				server = harness.Cluster(t).Master(t, "{gpu}")
			}
			redis := server.Client(t, func(o *rueidis.ClientOption) { o.AlwaysRESP2 = true })
			clock := poolmodel.NewClock(t, redis, "{gpu}clock")
			fast.Play(
				fast.World{T: t, Redis: redis, Now: clock.Now, Advance: clock.Advance, Library: clock.Library},
				"gpu", slices.Repeat([]string{"lock", "semaphore", "pool"}, 3)...,
			)
		})
	}
}

// linked are the options of a client whose connections go through a link, which
// reads RESP2.
func (w *world) linked(l *link.Link) rueidis.ClientOption {
	option := rueidis.ClientOption{
		InitAddress: []string{w.server.Addr}, DisableCache: true, AlwaysRESP2: true, ForceSingleClient: true,
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return (&net.Dialer{Timeout: calls}).DialContext(ctx, "tcp", w.server.Addr)
		},
	}
	link.Slim(&option)
	l.Wrap(&option)
	return option
}

// over is a client on a link, closed when the test ends.
func (w *world) over(l *link.Link, edits ...func(*rueidis.ClientOption)) rueidis.Client {
	w.Helper()
	option := w.linked(l)
	for _, edit := range edits {
		edit(&option)
	}
	redis, err := rueidis.NewClient(option)
	require.NoError(w, err)
	w.Cleanup(redis.Close)
	return redis
}
