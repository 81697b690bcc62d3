package supervise

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCommandDiesWithItsSupervisor(t *testing.T) {
	supervisor, said := start(t, "supervisor")
	words := strings.Fields(line(t, said, "supervises"))
	child, err := strconv.Atoi(words[len(words)-1])
	require.NoError(t, err)
	line(t, said, fmt.Sprintf("child %d", child))

	require.NoError(t, syscall.Kill(supervisor.pid, syscall.SIGKILL))
	silent(t, said)
}
