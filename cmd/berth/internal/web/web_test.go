package web_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/cmd/berth/internal/commands"
)

func TestMain(m *testing.M) { apptest.Main(m, commands.Execute) }

// inTime gets a page where a busy machine may not have read in time at first.
func inTime(t *testing.T, p *apptest.Served, path string, changes ...func(*http.Request)) (code int, body string) {
	t.Helper()
	require.Eventually(t, func() bool {
		code, body = p.Get(t, path, changes...)
		return code != http.StatusServiceUnavailable
	}, apptest.Patience, 10*time.Millisecond)
	return code, body
}

func TestItServesUntilASignal(t *testing.T) {
	t.Parallel()
	p := apptest.Serve(t, apptest.Server(t).URL(), "web", "--listen", "127.0.0.1:0", "--host", "ops.test")
	require.NotEmpty(t, p.Base, p.First)
	require.Contains(t, p.First, "read-only")
	code, body := inTime(t, p, "healthz")
	require.Equal(t, http.StatusOK, code, body)
	code, body = inTime(t, p, "")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "Nobody waits for anything.")
	code, _ = p.Get(t, "", func(r *http.Request) { r.Host = "evil.test" })
	require.Equal(t, http.StatusForbidden, code, "by a name of another site")
	code, _ = inTime(t, p, "", func(r *http.Request) { r.Host = "ops.test" })
	require.Equal(t, http.StatusOK, code)
	apptest.Interrupt(t, p.Cmd, time.Millisecond)
	p.EndsBy(t, syscall.SIGINT)
}

func TestItWarnsWhereOthersReachIt(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for want, args := range map[string][]string{
		"berth: warning: whoever reaches 0.0.0.0:0 sees all names, claims and labels; there is no TLS and no password\n": nil,
		"berth: warning: whoever reaches 0.0.0.0:0 can read what the proxies ask for: there is no TLS\n":                 {"--user-header", "X-User", "--trusted-proxy", "10.0.0.2"},
	} {
		p := apptest.Serve(t, s.URL(), append([]string{"web", "--listen", "0.0.0.0:0"}, args...)...)
		require.Equal(t, want, p.First)
		require.NotEmpty(t, p.Line(t), "and where it serves")
	}
}

func TestItIsRefused(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for _, line := range []string{"web --listen 0.0.0.0:0 --allow-actions", "web --json", "web --host a:80", "web x"} {
		require.Equal(t, 64, apptest.Call(t, s.URL(), strings.Fields(line)...).Code, line)
	}
}
