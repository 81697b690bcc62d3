package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/testkit/lag"
)

// workerVariable makes this test binary a worker process, of the kind that it
// says.
const workerVariable = "BERTH_DEMO_TEST_WORKER"

func TestMain(m *testing.M) {
	app.Times.Demo = time.Hour // no slow machine fails a demo
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
		goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(lag.Goroutine))
	}
}

func withWorkers(kind string, out *bytes.Buffer) Options {
	return Options{
		Out: out, Width: 80, Lease: 8 * time.Second, // no pause of a busy machine ends it before its time
		Worker: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			// By default the race detector lets every process linger for a second.
			cmd.Env = append(os.Environ(), workerVariable+"="+kind, "GORACE=atexit_sleep_ms=0")
			return cmd
		},
	}
}

// TestTheDemo plays each act once, that of the lock on a terminal and the others in a
// pipe.
func TestTheDemo(t *testing.T) {
	for _, played := range []struct {
		act   act
		facts int
		tells []string
	}{
		{semaphoreAct, 5, []string{
			"Berth demo: a semaphore between processes\n",
			"worker 1 asks, and gets a free place at once\n",
			"worker 3 asks, finds no free place, stands in line as the first\n",
			"worker 3 is killed with SIGKILL; its lease has ",
			" has done its work and gives its place back\n",
			"Never more than 2 were inside at once.\n",
			"All 8 were granted a place in the order in which they asked; 6 of",
			"Everything was given back: nothing is held, nobody waits.\n",
			"  berth run --sem workshop --capacity 1 -- sleep 10\n",
		}},
		{lockAct, 7, []string{
			"Berth demo: a lock between processes",
			"worker 2 is killed with SIGKILL; its lease has ",
			"Never was more than one inside at once.\n",
			"Each had a higher fence than all before, also after the one that was\n",
			"  berth run --lock invoice:42 -- sleep 10\n",
		}},
		{poolAct, 8, []string{
			"Berth demo: a pool of proxies between processes\n",
			"worker 1 for anna asks, and gets proxy-a at once\n",
			"worker 1 for anna has done its work and gives proxy-a back\n",
			"worker 4 for cleo asks, and gets proxy-c again at once\n",
			"worker 4 for cleo is answered 429, and lets proxy-c rest for 900 ms\n",
			"worker 6 for cleo gets proxy-b and not proxy-c, after ",
			"worker 8 for cleo asks, and gets proxy-b again at once\n",
			"Never did two have the same proxy at once; up to 3 were at work.\n",
			"Worker 2 was killed; its lease ended ",
			"The pool is whole, and its 3 proxies are free.\n",
			"  berth run --pool proxies -- printenv BERTH_RESOURCE\n",
		}},
	} {
		t.Run(played.act.name, func(t *testing.T) {
			t.Parallel()
			lag.Relies(t, inTime)
			var out bytes.Buffer
			opts := withWorkers("good", &out)
			live := played.act.name == lockAct.name
			opts.Live, opts.Color = live, live
			require.NoError(t, perform(t.Context(), opts, played.act), out.String())
			for _, line := range played.tells {
				require.Contains(t, out.String(), line)
			}
			if live {
				require.Equal(t, 1, strings.Count(out.String(), hideCursor))
				require.Equal(t, 1, strings.Count(out.String(), showCursor))
				require.Greater(t, strings.Count(out.String(), "\x1b[16A"), 10, "drawn over and over")
				require.Equal(t, played.facts, strings.Count(out.String(), "\x1b[32mok   \x1b[0m"))
				return
			}
			require.NotContains(t, out.String(), "\x1b", "no colors, no cursor")
			require.Equal(t, played.facts, strings.Count(out.String(), "\n  ok     "), out.String())
			last := 0.0
			for _, found := range regexp.MustCompile(`(?m)^ *(\d+\.\d\d) s `).FindAllStringSubmatch(out.String(), -1) {
				at, err := strconv.ParseFloat(found[1], 64)
				require.NoError(t, err)
				require.GreaterOrEqual(t, at, last, "it is told in order:\n%s", out.String())
				last = at
			}
			require.Positive(t, last)
		})
	}
}

func TestWorkersThatCannotStartFailTheDemo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.ErrorContains(t, Run(context.Background(), withWorkers("broken", &out)), "exit status 1: I cannot work")

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

// seen is what a broken server shows a director.
type seen struct {
	all []berth.Holder
	err error
}

func (s seen) holders(context.Context) ([]berth.Holder, error) { return s.all, s.err }
func (s seen) waiting(context.Context) (int, error)            { return 0, s.err }

func TestADemoThatCannotSeeWhoIsInsideSaysSo(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for want, thing := range map[string]thing{
		"down": seen{err: down},
		"demo: worker 3 was inside, and the server does not know it": seen{all: []berth.Holder{{ID: "somebody"}}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			broken := semaphoreAct
			broken.play = func(ctx context.Context, s *stage) ([]fact, error) {
				_, err := s.direct(ctx, semaphorePlan, thing)
				return nil, err
			}
			require.EqualError(t, perform(t.Context(), withWorkers("good", &out), broken), want)
		})
	}
}
