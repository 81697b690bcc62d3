package apptest

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Served is a command that serves HTTP, as a process, until it ends or the test does.
type Served struct {
	*exec.Cmd
	First string // the line that it says first
	Base  string // the address in that line, "" for none
	said  *bufio.Reader
}

// Serve starts a command that serves.
func Serve(t *testing.T, url string, args ...string) *Served {
	t.Helper()
	s := &Served{Cmd: Command(t, url, args...)}
	errs, err := s.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, s.Start())
	t.Cleanup(func() {
		_ = s.Process.Signal(syscall.SIGTERM)
		_ = s.Wait()
	})
	s.said = bufio.NewReader(errs)
	s.First = s.Line(t)
	s.Base = regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(s.First)
	return s
}

// Line is the next one that it says.
func (s *Served) Line(t *testing.T) string {
	t.Helper()
	line, err := s.said.ReadString('\n')
	require.NoError(t, err)
	return line
}

// Get gets a page.
func (s *Served) Get(t *testing.T, path string, changes ...func(*http.Request)) (code int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Base+path, http.NoBody)
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

// EndsBy requires that the signal that was sent ends it.
func (s *Served) EndsBy(t *testing.T, sig syscall.Signal) {
	t.Helper()
	rest, err := io.ReadAll(s.said)
	require.NoError(t, err)
	require.Equal(t, "berth: ended by signal: "+sig.String()+"\n", string(rest))
	require.Error(t, s.Wait())
	require.Equal(t, 128+int(sig), s.ProcessState.ExitCode())
}
