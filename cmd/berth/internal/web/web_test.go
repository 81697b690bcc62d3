package web_test

import (
	"bufio"
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/cmd/berth/internal/commands"
)

func TestMain(m *testing.M) { apptest.Main(m, commands.Execute) }

func get(t *testing.T, address string, change func(*http.Request)) (code int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	change(r)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, string(text)
}

// inTime is get where a busy machine may not have read in time at first.
func inTime(t *testing.T, address string, change func(*http.Request)) (code int, body string) {
	t.Helper()
	require.Eventually(t, func() bool {
		code, body = get(t, address, change)
		return code != http.StatusServiceUnavailable
	}, apptest.Patience, 10*time.Millisecond)
	return code, body
}

func TestItServesUntilASignal(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	cmd := apptest.Command(t, s.URL(), "web", "--listen", "127.0.0.1:0", "--host", "ops.test")
	errs, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := bufio.NewReader(errs)
	line, err := said.ReadString('\n')
	require.NoError(t, err)
	base := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(line)
	require.NotEmpty(t, base, line)
	require.Contains(t, line, "read-only")

	asIs := func(*http.Request) {}
	code, body := inTime(t, base+"healthz", asIs)
	require.Equal(t, http.StatusOK, code, body)
	code, body = inTime(t, base, asIs)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "Nobody waits for anything.")
	code, _ = get(t, base, func(r *http.Request) { r.Host = "evil.test" })
	require.Equal(t, http.StatusForbidden, code, "by a name of another site")
	code, _ = inTime(t, base, func(r *http.Request) { r.Host = "ops.test" })
	require.Equal(t, http.StatusOK, code)

	apptest.Interrupt(t, cmd, time.Millisecond)
	rest, err := io.ReadAll(said)
	require.NoError(t, err)
	require.Equal(t, "berth: ended by signal: interrupt\n", string(rest))
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
}

func TestItWarnsWhereOthersReachIt(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for want, args := range map[string][]string{
		"berth: warning: whoever reaches 0.0.0.0:0 sees all names, claims and labels; there is no TLS and no password\n": nil,
		"berth: warning: whoever reaches 0.0.0.0:0 can read what the proxies ask for: there is no TLS\n":                 {"--user-header", "X-User", "--trusted-proxy", "10.0.0.2"},
	} {
		cmd := apptest.Command(t, s.URL(), append([]string{"web", "--listen", "0.0.0.0:0"}, args...)...)
		errs, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		said := bufio.NewReader(errs)
		line, err := said.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want, line)
		_, err = said.ReadString('\n')
		require.NoError(t, err)
		apptest.Interrupt(t, cmd, time.Millisecond)
		_, _ = io.Copy(io.Discard, said)
		_ = cmd.Wait()
	}
}

func TestItIsRefused(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for _, args := range [][]string{
		{"web", "--listen", "0.0.0.0:0", "--allow-actions"},
		{"web", "--json"},
		{"web", "--host", "a:80"},
		{"web", "x"},
	} {
		r := apptest.Call(t, s.URL(), args...)
		require.Equal(t, 64, r.Code, args)
	}
}
