package exporter_test

import (
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/cmd/berth/internal/commands"
	"github.com/berth-go/berth/pkg/embedded"
)

func TestMain(m *testing.M) { apptest.Main(m, commands.Execute) }

func serve(t *testing.T, url string, args ...string) *apptest.Served {
	t.Helper()
	return apptest.Serve(t, url, append([]string{"exporter"}, args...)...)
}

func TestItServesUntilASignal(t *testing.T) {
	t.Parallel()
	p := serve(t, apptest.Server(t).URL(), "--listen", "127.0.0.1:0", "--timeout", "1m", "--host", "ops.test")
	code, body := p.Get(t, "healthz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ok\n", body)
	code, body = p.Get(t, "metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "\nberth_up 1\n")
	code, _ = p.Get(t, "")
	require.Equal(t, http.StatusNotFound, code)
	for name, change := range map[string]func(*http.Request){
		"a name that leads here":  func(r *http.Request) { r.Host = "evil.test" },
		"what another site loads": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		code, _ = p.Get(t, "metrics", change)
		require.Equal(t, http.StatusForbidden, code, name)
	}
	code, _ = p.Get(t, "healthz", func(r *http.Request) { r.Host = "ops.test:9464" })
	require.Equal(t, http.StatusOK, code)

	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	p.EndsBy(t, syscall.SIGTERM)
}

// TestTheServerMayComeLater begins before there is a server: who is to tell that it is not there must not need it.
func TestTheServerMayComeLater(t *testing.T) {
	t.Parallel()
	free := apptest.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	p := serve(t, "redis://"+address+"?client_cache=0", "--listen", "127.0.0.1:0", "--every", "1ms", "--timeout", "500ms")
	code, body := p.Get(t, "metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "\nberth_up 0\n")
	require.Contains(t, p.Line(t), address)

	s := apptest.Got(embedded.StartListening(address))(t)
	defer s.Close()
	require.Eventually(t, func() bool {
		_, body := p.Get(t, "metrics")
		return regexp.MustCompile(`(?m)^berth_up 1$`).MatchString(body)
	}, apptest.Patience, 1)
	code, _ = p.Get(t, "healthz")
	require.Equal(t, http.StatusOK, code)
}

// TestAWrongPasswordIsNoSilentServer has a server that answers everything with an error.
func TestAWrongPasswordIsNoSilentServer(t *testing.T) {
	t.Parallel()
	url := apptest.Answering(t, func([]string) string { return "-WRONGPASS invalid username-password pair or user is disabled." })
	p := serve(t, strings.Replace(url, "redis://", "redis://reads:bad@", 1), "--listen", "127.0.0.1:0", "--timeout", "1m")
	_, body := p.Get(t, "metrics")
	require.Contains(t, body, "\nberth_up 1\n")
	require.Contains(t, body, "\nberth_exporter_problems 1\n")
	require.Contains(t, body, "\nberth_exporter_readings_total{outcome=\"silent\"} 0\n")
	require.Contains(t, p.Line(t), "WRONGPASS")
}

func TestItIsRefused(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for _, args := range []string{
		"--listen 9464", "--every=-1s", "--every 0s", "--timeout 0s", "--timeout 2m", "--name-class both", "--max-classes 0", "--max-classes 1001",
		"--json", "--namespace a{b", "x",
	} {
		require.Equal(t, 64, apptest.Call(t, s.URL(), append([]string{"exporter"}, strings.Fields(args)...)...).Code, args)
	}
	taken := apptest.Got(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = taken.Close() }()
	apptest.Call(t, s.URL(), "exporter", "--listen", taken.Addr().String()).Ends(t, 1)
	require.Equal(t, 64, apptest.Call(t, "redis://x:y", "exporter").Code)
}

func TestItWarnsWhereOthersReachIt(t *testing.T) {
	t.Parallel()
	p := serve(t, apptest.Server(t).URL(), "--listen", ":0")
	require.Equal(t, "berth: warning: whoever reaches :0 sees the classes of the names; there is no TLS and no password\n", p.First)
}

func TestTheWaysToAClassAreCompleted(t *testing.T) {
	t.Parallel()
	r := apptest.Call(t, "127.0.0.1:1", "__complete", "exporter", "--name-class", "")
	require.Equal(t, "collapse\nname\nnone\n:4\n", r.Out)
}
