package exporter_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os/exec"
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

// served is berth exporter as a process.
type served struct {
	*exec.Cmd
	said *bufio.Reader
	base string
}

func serve(t *testing.T, url string, args ...string) served {
	t.Helper()
	cmd := apptest.Command(t, url, append([]string{"exporter"}, args...)...)
	errs, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s := served{cmd, bufio.NewReader(errs), ""}
	line, err := s.said.ReadString('\n')
	require.NoError(t, err)
	s.base = regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(line)
	require.NotEmpty(t, s.base, line)
	return s
}

func (s served) get(t *testing.T, path string, changes ...func(*http.Request)) (code int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+path, http.NoBody)
	require.NoError(t, err)
	for _, change := range changes {
		change(r)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, string(text)
}

func TestItServesUntilASignal(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	p := serve(t, s.URL(), "--listen", "127.0.0.1:0", "--timeout", "1m", "--host", "ops.test")
	code, body := p.get(t, "healthz")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "ok\n", body)
	code, body = p.get(t, "metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "\nberth_up 1\n")
	code, _ = p.get(t, "")
	require.Equal(t, http.StatusNotFound, code)
	for name, change := range map[string]func(*http.Request){
		"a name that leads here":  func(r *http.Request) { r.Host = "evil.test" },
		"what another site loads": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
	} {
		code, _ = p.get(t, "metrics", change)
		require.Equal(t, http.StatusForbidden, code, name)
	}
	code, _ = p.get(t, "healthz", func(r *http.Request) { r.Host = "ops.test:9464" })
	require.Equal(t, http.StatusOK, code)

	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(p.said)
	require.NoError(t, err)
	require.Equal(t, "berth: ended by signal: terminated\n", string(rest))
	require.Error(t, p.Wait())
	require.Equal(t, 143, p.ProcessState.ExitCode())
}

// TestTheServerMayComeLater begins before there is a server: who is to tell that it is not there must not need it.
func TestTheServerMayComeLater(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	p := serve(t, "redis://"+address+"?client_cache=0", "--listen", "127.0.0.1:0", "--every", "1ms", "--timeout", "500ms")
	code, body := p.get(t, "metrics")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "\nberth_up 0\n")
	line, err := p.said.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, address)

	s, err := embedded.StartListening(address)
	require.NoError(t, err)
	defer s.Close()
	require.Eventually(t, func() bool {
		_, body := p.get(t, "metrics")
		return regexp.MustCompile(`(?m)^berth_up 1$`).MatchString(body)
	}, apptest.Patience, 1)
	code, _ = p.get(t, "healthz")
	require.Equal(t, http.StatusOK, code)
}

// TestAWrongPasswordIsNoSilentServer has a server that answers everything with an error.
func TestAWrongPasswordIsNoSilentServer(t *testing.T) {
	t.Parallel()
	url := apptest.Answering(t, func([]string) string { return "-WRONGPASS invalid username-password pair or user is disabled." })
	p := serve(t, strings.Replace(url, "redis://", "redis://reads:bad@", 1), "--listen", "127.0.0.1:0", "--timeout", "1m")
	_, body := p.get(t, "metrics")
	require.Contains(t, body, "\nberth_up 1\n")
	require.Contains(t, body, "\nberth_exporter_problems 1\n")
	require.Contains(t, body, "\nberth_exporter_readings_total{outcome=\"silent\"} 0\n")
	line, err := p.said.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "WRONGPASS")
}

func TestItIsRefused(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for _, args := range [][]string{
		{"--listen", "9464"},
		{"--every=-1s"},
		{"--every", "0s"},
		{"--timeout", "0s"},
		{"--timeout", "2m"},
		{"--name-class", "both"},
		{"--max-classes", "0"},
		{"--max-classes", "1001"},
		{"--json"},
		{"--namespace", "a{b"},
		{"x"},
	} {
		r := apptest.Call(t, s.URL(), append([]string{"exporter"}, args...)...)
		require.Equal(t, 64, r.Code, args)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	r := apptest.Call(t, s.URL(), "exporter", "--listen", taken.Addr().String())
	require.Equal(t, 1, r.Code, "%+v", r)
	require.Equal(t, 64, apptest.Call(t, "redis://x:y", "exporter").Code)
}

func TestItWarnsWhereOthersReachIt(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	cmd := apptest.Command(t, s.URL(), "exporter", "--listen", ":0")
	errs, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(errs).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "berth: warning: whoever reaches :0 sees the classes of the names; there is no TLS and no password\n", line)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Error(t, cmd.Wait())
}

func TestTheWaysToAClassAreCompleted(t *testing.T) {
	t.Parallel()
	r := apptest.Call(t, "127.0.0.1:1", "__complete", "exporter", "--name-class", "")
	require.Equal(t, "collapse\nname\nnone\n:4\n", r.Out)
}
