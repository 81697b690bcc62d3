package browser

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/test/browser/chrome"
	"github.com/berth-go/berth/test/browser/jam"
	"github.com/berth-go/berth/test/harness"
)

const patience = testkit.Patience

func TestMain(m *testing.M) {
	jam.Dies()
	os.Exit(harness.Main(m, shared.end))
}

// common is what all tests share: the browser, and a jam at which they only look.
type common struct {
	once    sync.Once
	browser *chrome.Browser
	err     error

	jammed  sync.Once
	jam     *jam.Jam
	failure error
}

var shared common

func (c *common) end() error {
	if c.browser != nil {
		c.browser.Close()
	}
	if c.jam == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.jam.Close(ctx)
}

// chromium is the browser.
func chromium(t *testing.T) *chrome.Browser {
	t.Helper()
	shared.once.Do(func() { shared.browser, shared.err = chrome.Start(context.Background()) })
	require.NoError(t, shared.err)
	return shared.browser
}

const jammed = "jam"

// jamOf is the jam, on the server that tests share.
func jamOf(t *testing.T) *jam.Jam {
	t.Helper()
	shared.jammed.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		shared.jam, shared.failure = jam.Make(ctx, jam.Config{URL: harness.Shared(t).URL(), Namespace: jammed})
	})
	require.NoError(t, shared.failure)
	return shared.jam
}

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
