package pool

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

// filledAtATerminal adds so many resources with stderr at a terminal, and returns
// what that shows.
func filledAtATerminal(t *testing.T, n int) string {
	t.Helper()
	master, slave := apptest.OpenTerminal(t)
	defer func() { _ = master.Close() }()
	cmd := apptest.Command(t, apptest.Server(t).URL(), "pool", "add", "proxies", "--file", "-")
	var keys bytes.Buffer
	for i := range n {
		fmt.Fprintln(&keys, i)
	}
	cmd.Stdin = &keys
	cmd.Stderr = slave
	out := apptest.Got(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	require.NoError(t, slave.Close())
	screen, _ := io.ReadAll(bufio.NewReader(master)) // ends with an error when nobody has the terminal any more
	said := apptest.Got(io.ReadAll(out))(t)
	require.NoError(t, cmd.Wait())
	var added, kept int // a step that is sent again because its answer comes late counts as kept
	_, err := fmt.Sscanf(string(said), "proxies: %d added, %d kept\n", &added, &kept)
	require.NoError(t, err, "%s", said)
	require.Equal(t, n, added+kept)
	return string(screen)
}

func TestManyResourcesAreAddedUnderABar(t *testing.T) {
	t.Parallel()
	screen := filledAtATerminal(t, many+200)
	require.Contains(t, screen, "proxies ")
	require.Contains(t, screen, "%")
	require.NotContains(t, screen, "\n", "it leaves nothing behind")
	require.Empty(t, filledAtATerminal(t, 400), "not worth a bar")
}
