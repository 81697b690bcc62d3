package compose

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"testing/fstest"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files makes a file system of path, text pairs.
func files(pairs ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fsys[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return fsys
}

// embedded returns a client of a fresh embedded server.
func embedded(t testing.TB) rueidis.Client {
	t.Helper()
	m := miniredis.NewMiniRedis()
	t.Cleanup(m.Close)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"embedded"}, ForceSingleClient: true, DisableCache: true, AlwaysRESP2: true, ClientSetInfo: rueidis.DisableClientSetInfo,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return m.Dial() },
	})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}
