package harness

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A test binary that is killed runs no cleanup; its servers end all the same.
func TestServersEndWithATestBinaryThatIsKilled(t *testing.T) {
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildWithAServer$")
	child.Env = append(os.Environ(), "HARNESS_CHILD=1", "TMPDIR="+t.TempDir())
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())

	var addr string
	for lines := bufio.NewScanner(out); addr == "" && lines.Scan(); {
		if rest, found := strings.CutPrefix(lines.Text(), "server at "); found {
			addr = rest
		}
	}
	conn := dial(t, addr)
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	requireBroken(t, conn)
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, settleLimit, 5*time.Millisecond)
}

// TestChildWithAServer is the killed one.
func TestChildWithAServer(t *testing.T) {
	if os.Getenv("HARNESS_CHILD") == "" {
		return
	}
	e, err := newProcess(nil)
	require.NoError(t, err)
	fmt.Fprintf(os.Stdout, "server at %s\n", e.addr())
	<-time.After(time.Minute)
}
