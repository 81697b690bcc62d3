package pool

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/keyspace"
)

// numbers is a file with a number in each of its lines.
func numbers(t *testing.T, n int) string {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintln(&lines, i)
	}
	file := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(file, []byte(lines.String()), 0o600))
	return file
}

// filledAtATerminal adds so many resources with stderr at a terminal, and returns
// what that shows.
func filledAtATerminal(t *testing.T, n int) string {
	t.Helper()
	master, slave := apptest.OpenTerminal(t)
	defer func() { _ = master.Close() }()
	cmd := apptest.Command(t, apptest.Server(t).URL(), "pool", "add", "proxies", "--file", numbers(t, n))
	cmd.Stderr = slave
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, slave.Close())
	screen, _ := io.ReadAll(bufio.NewReader(master)) // ends with an error when nobody has the terminal any more
	said, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	var added, kept int // a step that is sent again because its answer comes late counts as kept
	_, err = fmt.Sscanf(string(said), "proxies: %d added, %d kept\n", &added, &kept)
	require.NoError(t, err, "%s", said)
	require.Equal(t, n, added+kept)
	return string(screen)
}

// TestCtrlCInTheMidstOfAddSaysHowMuchWasSent adds far more than are sent until the
// bar moves.
func TestCtrlCInTheMidstOfAddSaysHowMuchWasSent(t *testing.T) {
	t.Parallel()
	const far = 50_000
	s := apptest.Server(t)
	master, slave := apptest.OpenTerminal(t)
	defer func() { _ = master.Close() }()
	cmd := apptest.Command(t, s.URL(), "pool", "add", "proxies", "--file", numbers(t, far))
	cmd.Stdin, cmd.Stderr = slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, slave.Close())
	var screen strings.Builder
	moved := regexp.MustCompile(`\([1-9]\d*/`)
	for chunk := make([]byte, 1000); !moved.MatchString(screen.String()); {
		n, err := master.Read(chunk)
		require.NoError(t, err, screen.String())
		screen.Write(chunk[:n])
	}
	_, err := io.WriteString(master, apptest.CtrlC)
	require.NoError(t, err)
	rest, _ := io.ReadAll(master) // ends with an error when nobody has the terminal any more
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	said := regexp.MustCompile(`berth: ended by signal: interrupt; (\d+) of 50000 were sent before: \d+ added, \d+ kept, 0 removed; the same command again does the rest`).
		FindStringSubmatch(string(rest))
	require.NotNil(t, said, "%q", rest)
	sent, err := strconv.Atoi(said[1])
	require.NoError(t, err)
	require.Positive(t, sent)
	there := apptest.NameOf(t, s, keyspace.Pool, "proxies").Capacity
	require.GreaterOrEqual(t, there, sent, "what was sent stays")
	require.Less(t, there, far)
}

func TestManyResourcesAreAddedUnderABar(t *testing.T) {
	t.Parallel()
	screen := filledAtATerminal(t, many+200)
	require.Contains(t, screen, "proxies ")
	require.Contains(t, screen, "%")
	require.NotContains(t, screen, "\n", "it leaves nothing behind")
	require.Empty(t, filledAtATerminal(t, 400), "not worth a bar")
}
