package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// workerVariable makes this test binary a worker process, of the kind that it
// says.
const workerVariable = "BERTH_DEMO_TEST_WORKER"

func TestMain(m *testing.M) {
	switch os.Getenv(workerVariable) {
	case "good":
		if err := Work(context.Background(), os.Stdin, os.Stdout); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
	case "broken":
		_, _ = os.Stderr.WriteString("I cannot work")
		os.Exit(1)
	default:
		if os.Getenv(urlVariable) != "" {
			os.Exit(1) // a worker of no kind: it must not run the tests, which start workers
		}
		goleak.VerifyTestMain(m)
	}
}

func withWorkers(kind string, out *bytes.Buffer) Options {
	return Options{
		Out: out, Width: 80,
		Worker: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			// By default the race detector lets every process linger for a second.
			cmd.Env = append(os.Environ(), workerVariable+"="+kind, "GORACE=atexit_sleep_ms=0")
			return cmd
		},
	}
}

func TestTheDemoOnATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	opts := withWorkers("good", &out)
	opts.Live, opts.Color = true, true
	require.NoError(t, Run(context.Background(), opts), out.String())
	require.Equal(t, 3, strings.Count(out.String(), hideCursor))
	require.Equal(t, 3, strings.Count(out.String(), showCursor))
	require.Greater(t, strings.Count(out.String(), "\x1b[19A"), 50, "drawn over and over")
	require.Greater(t, strings.Count(out.String(), "\x1b[16A"), 30, "drawn over and over")
	require.Equal(t, 5+7+8, strings.Count(out.String(), "\x1b[32mok   \x1b[0m"))
}

func TestWorkersThatCannotStartFailTheDemo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := Run(context.Background(), withWorkers("broken", &out))
	require.ErrorContains(t, err, "exit status 1: I cannot work")

	opts := withWorkers("good", &out)
	opts.Worker = func() *exec.Cmd { return exec.Command("/nowhere/at/all") }
	require.ErrorIs(t, Run(context.Background(), opts), os.ErrNotExist)
}

func TestTheDemoEndsWithItsContext(t *testing.T) {
	t.Parallel()
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	var out bytes.Buffer
	opts := withWorkers("good", &out)
	started := 0
	worker := opts.Worker
	opts.Worker = func() *exec.Cmd {
		if started++; started == semaphorePlan.workers {
			cancel(reason)
		}
		return worker()
	}
	require.ErrorIs(t, Run(ctx, opts), reason)
}

func TestAWorkerEndsWithItsDirector(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cmd := withWorkers("good", &out).Worker()
	cmd.Env = append(cmd.Env, urlVariable+"=not a URL")
	require.Error(t, cmd.Run())
}
