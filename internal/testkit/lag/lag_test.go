//go:build unix

package lag

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wakes are wake-ups at these times after the first is due.
func wakes(at ...time.Duration) (r *record, due moment) {
	due = moment{time.Hour, 1000 * time.Second}
	r = &record{due: due}
	next := due
	for _, after := range at {
		next = r.woke(next, due.add(after))
	}
	return r, due
}

func TestASpellIsWhatIsLateWithoutAPause(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	// On time, late by 30 and at once by 20, a little late, and late by 40.
	r, due := wakes(0, 50*ms, 90*ms, 115*ms, 175*ms, 195*ms)
	last := due.add(195 * ms)
	require.Equal(t, 50*ms, r.since(due.wall, last))
	require.Equal(t, 40*ms, r.since(due.wall+90*ms, last), "the first spell had ended")
	require.Zero(t, r.since(due.wall+175*ms, last))
	require.Equal(t, 100*ms, r.since(due.wall+195*ms, last.add(tick+100*ms)), "it has not woken up yet")

	r, due = wakes(30 * ms)
	require.Equal(t, 55*ms, r.since(due.wall+31*ms, due.add(30*ms+tick+25*ms)), "the spell goes on")
}

func TestOnTimeIsNoSpell(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	r, due := wakes(9*ms, 38*ms, 67*ms)
	require.Zero(t, r.since(due.wall, due.add(67*ms)))
}

// A machine is saved, and brought back after 10 s: the steady clock does not know. Or its wall clock was put back.
func TestAWallClockThatJumpsIsLate(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{10 * time.Second, -10 * time.Second} {
		r, due := wakes(0)
		at := due.add(tick)
		at.wall += jump
		require.Equal(t, due.add(2*tick).steady, r.woke(due.add(tick), at).steady)
		require.Equal(t, 10*time.Second, r.since(min(due.wall, at.wall)-1, at), jump)
	}
}

// stillFor is at least how long a process stands still.
const stillFor = 150 * time.Millisecond

// stillVariable has the test below do what it is about.
const stillVariable = "BERTH_TEST_LAG_STILL"

// standsStill has this process stand still, and fails.
func standsStill(t *testing.T, what string) {
	t.Helper()
	switch what {
	case "long":
		Relies(t, time.Second)
	case "passes":
		Relies(t, time.Second)
		t.Cleanup(func() { require.False(t, t.Failed()) })
	case "short":
		Relies(t, time.Hour)
	}
	asked := time.Now()
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGSTOP))
	for time.Since(asked) < stillFor { // a thread may run on for a moment
		runtime.Gosched()
	}
	if what != "passes" {
		t.Error("a fault")
	}
}

func TestAFailureSaysThatTheMachineWasLate(t *testing.T) {
	if what := os.Getenv(stillVariable); what != "" {
		standsStill(t, what)
		return
	}
	t.Parallel()
	for what, expected := range map[string]string{"long": "relies on 1s\n", "short": "", "passes": ""} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestAFailureSaysThatTheMachineWasLate$")
			cmd.Env = append(os.Environ(), stillVariable+"="+what)
			var said strings.Builder
			cmd.Stdout = &said
			require.NoError(t, cmd.Start())
			var status syscall.WaitStatus
			_, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
			require.NoError(t, err)
			require.True(t, status.Stopped())
			<-time.After(2 * stillFor) // what is under test is that it stood still
			require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
			err = cmd.Wait()
			if what == "passes" {
				require.NoError(t, err, said.String())
			} else {
				require.Error(t, err)
				require.Contains(t, said.String(), "a fault")
			}
			require.Equal(t, expected != "", strings.Contains(said.String(), Inconclusive), said.String())
			require.Contains(t, said.String(), expected)
		})
	}
}

func TestTheProcessBesideAnswers(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	r, _ := wakes(40 * ms)
	r.due = now().add(time.Hour)
	r.goes = false
	var out strings.Builder
	answer(r, strings.NewReader("0\n"+"9000000000000000000\n"+"nonsense\n"+"0\n"), &out)
	require.Regexp(t, `^40000000\n\d{1,4}\n$`, out.String(), "the clocks are not read at the same moment")
}
