package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheDemoInAPipe(t *testing.T) {
	t.Parallel()
	got := spawn(t, nobody, "demo")
	require.Zero(t, got.code, got.out+got.err)
	require.Empty(t, got.err)
	require.NotContains(t, got.out, "\x1b", "no colors, no cursor")
	require.NotContains(t, got.out, "WRONG")
	require.Equal(t, 5+7+8, strings.Count(got.out, "\n  ok     "), got.out)
	for _, line := range []string{
		"Berth demo: a semaphore between processes\n",
		"worker 1 asks, and gets a free place at once\n",
		"worker 3 asks, finds no free place, stands in line as the first\n",
		"worker 3 is killed with SIGKILL; its lease has ",
		"Never more than 2 were inside at once.\n",
		"All 8 were granted a place in the order in which they asked; 6 of",
		"Everything was given back: nothing is held, nobody waits.\n",
		"  berth run --sem workshop --capacity 1 -- sleep 10\n",
		"Berth demo: a lock between processes\n",
		"worker 2 is killed with SIGKILL; its lease has ",
		"worker 4 asks again while inside, and passes the line\n",
		"Never was more than one inside at once.\n",
		"Each had a higher fence than all before, also after the one that was\n",
		"  berth run --lock invoice:42 -- sleep 10\n",
		"Berth demo: a pool of proxies between processes\n",
		"worker 4 for cleo asks, and gets proxy-c again at once\n",
		"worker 4 for cleo is answered 429, and lets proxy-c rest for 900 ms\n",
		"worker 6 for cleo gets proxy-b and not proxy-c, after ",
		"worker 8 for cleo asks, and gets proxy-b again at once\n",
		"Never did two have the same proxy at once; up to 3 were at work.\n",
		"Worker 2 was killed; its lease ended ",
		"The pool is whole, and its 3 proxies are free.\n",
		"  berth run --pool proxies -- printenv BERTH_RESOURCE\n",
	} {
		require.Contains(t, got.out, line)
	}
	for i, act := range strings.Split(got.out, "   time   inside\n")[1:] {
		last := 0.0
		for _, found := range regexp.MustCompile(`(?m)^ *(\d+\.\d\d) s `).FindAllStringSubmatch(act, -1) {
			at, err := strconv.ParseFloat(found[1], 64)
			require.NoError(t, err)
			require.GreaterOrEqual(t, at, last, "act %d is told in order:\n%s", i, act)
			last = at
		}
		require.Positive(t, last)
	}
}

func TestTheDemoEndsWithASignal(t *testing.T) {
	t.Parallel()
	cmd := program(t, "", "demo")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	var said bytes.Buffer
	for !strings.Contains(said.String(), "worker 2 asks") {
		chunk := make([]byte, 1000)
		n, err := out.Read(chunk)
		require.NoError(t, err)
		said.Write(chunk[:n])
	}
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_, err = said.ReadFrom(out) // ends when no worker is left either
	require.NoError(t, err)
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
	require.Equal(t, "berth: ended by signal: interrupt\n", errs.String())
}

func TestADemoThatCannotBePlayedFails(t *testing.T) {
	var out, errs bytes.Buffer
	a := &app{out: &output{Writer: &out}, err: &errs}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.Equal(t, exitFailed, codeOf(a.demo(ctx, false)))
}
