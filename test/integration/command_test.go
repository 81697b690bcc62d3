package integration

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/test/harness"
)

// The smallest ACL has no SCAN: who may not list all names is told so, and not that
// there are none.
func TestTheCommandOfTheSmallestUser(t *testing.T) {
	w := private(t)
	w.server.SmallestUser(t, w.ns)
	w.take(w.sem(w.node(node.Config{}), "gpu", 1), nil)
	program, err := harness.Command()
	require.NoError(t, err)
	run := func(args ...string) (code int, out, errs string) {
		cmd := exec.CommandContext(w.Within(patience), program, args...)
		cmd.Env = append(os.Environ(), "BERTH_REDIS=redis://smallest@"+w.server.Addr, "BERTH_REDIS_PASSWORD=secret", "BERTH_NAMESPACE="+w.ns)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
		}
		return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}
	for _, kind := range []string{"sem", "lock", "pool"} {
		for _, args := range [][]string{{kind, "ls"}, {kind, "ls", "--json"}} {
			code, out, errs := run(args...)
			require.Equal(t, 69, code, errs)
			require.Empty(t, out)
			require.Regexp(t, `^berth: refused by the server at \S+: .*'scan' command.*\+scan beside the smallest ACL\n$`, errs)
		}
	}
	for _, args := range [][]string{{"check"}, {"sem", "show", "gpu"}, {"run", "--lock", "nightly", "true"}} {
		code, _, errs := run(args...)
		require.Equal(t, 0, code, errs)
	}
	w.do("ACL", "SETUSER", "smallest", "+scan")
	code, out, errs := run("sem", "ls")
	require.Equal(t, 0, code, errs)
	require.Regexp(t, `(?m)^gpu +1 +1 +0 `, out)
}
