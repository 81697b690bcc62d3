package browser

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/test/harness"
)

var serves = regexp.MustCompile(`http://\S+/`)

// program runs berth web, and returns its address.
func (s *stage) program(flags ...string) string {
	s.Helper()
	path, err := harness.Command()
	require.NoError(s, err)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, append([]string{"web", "--listen", "127.0.0.1:0"}, flags...)...)
	cmd.Env = append(os.Environ(), "BERTH_REDIS="+s.server.URL(), "BERTH_NAMESPACE="+s.ns)
	said, err := cmd.StderrPipe()
	require.NoError(s, err)
	require.NoError(s, cmd.Start())
	ended := make(chan struct{})
	address := make(chan string, 1)
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			s.Log(lines.Text())
			if at := serves.FindString(lines.Text()); at != "" {
				address <- at
			}
		}
	}()
	s.Cleanup(func() {
		require.NoError(s, cmd.Process.Signal(syscall.SIGTERM))
		s.Signalled("it has ended", ended)
		_ = cmd.Wait() // by a signal
		cancel()
	})
	select {
	case at := <-address:
		return at
	case <-ended:
		require.FailNow(s, "it has ended")
	}
	return ""
}

// The program serves the page: what is released there goes to the first in line.
func TestTheProgram(t *testing.T) {
	s := newStage(t, console.Config{})
	held, waits := s.turns("gpu", "alpha", "beta")
	l := s.tab()
	l.base = s.program("--allow-actions")
	l.goes("")
	l.shows(names, "gpu")
	require.NoError(t, l.Eval(l.step(), `[...document.querySelectorAll("a.name")].find(a => a.textContent == "gpu").click()`, nil))
	l.shows(holders, "alpha")
	l.asks(linked(holders+" tr", "alpha", "Release"), `Release claim "`+held.ID()+`"`)
	l.confirms("it hangs", "")
	l.shows(holders, "beta")
	require.NoError(t, waits[0].Wait(s).Err())
	l.right()
}
