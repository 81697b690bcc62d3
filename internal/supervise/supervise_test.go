package supervise

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestACommandThatEndsUnderALivingHoldIsLeftAlone(t *testing.T) {
	for name, left := range map[string]time.Duration{"leased": 10 * time.Second, "forever": berth.Forever} {
		t.Run(name, func(t *testing.T) {
			w, err := inWorld(t, left, func(w *world) {
				time.Sleep(8 * time.Second)
				w.command.exit()
			})
			require.NoError(t, err)
			require.Empty(t, w.command.log)
			require.Empty(t, w.said)
		})
	}
}

func TestWithoutARenewalTermComesAtTheDeadlineLessTheGraceAndKillAtTheDeadline(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(*world) {})
	require.ErrorIs(t, err, berth.ErrLost)
	require.Equal(t, []string{"9s TERM", "10s KILL"}, w.command.log)
	require.Equal(t, []string{
		"no renewal in time: SIGTERM sent, SIGKILL follows in 1s",
		"the lease is lost: SIGKILL sent",
	}, w.said)
}

func TestRenewalsMoveTheDeadlineAndCostNoLooking(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) {
		for range 100 {
			time.Sleep(3 * time.Second)
			w.hold.renew(10 * time.Second)
		}
	})
	require.ErrorIs(t, err, berth.ErrLost)
	require.Equal(t, []string{"5m9s TERM", "5m10s KILL"}, w.command.log)
	require.Less(t, w.hold.calls, 60, "310 s with a look about every 9 s")
}

func TestACommandThatEndsInItsGraceWasToldTo(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) { w.command.polite = 300 * time.Millisecond })
	require.ErrorIs(t, err, ErrEnding)
	require.Equal(t, []string{"9s TERM"}, w.command.log)
}

func TestARenewalInTheGracePutsTheKillOff(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) {
		time.Sleep(9500 * time.Millisecond)
		w.hold.renew(10 * time.Second)
	})
	require.ErrorIs(t, err, berth.ErrLost)
	require.Equal(t, []string{"9s TERM", "18.5s TERM", "19.5s KILL"}, w.command.log)
	require.Equal(t, "the lease has been renewed after all", w.said[1])
}

func TestTheReasonStaysWhenARenewalComesTooLateForTheCommand(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) {
		time.Sleep(9500 * time.Millisecond)
		w.hold.renew(10 * time.Second)
		time.Sleep(2 * time.Second)
		w.command.exit()
	})
	require.ErrorIs(t, err, ErrEnding)
	require.Equal(t, []string{"9s TERM"}, w.command.log)
}

func TestAHoldThatEndsByItsOwnLimitIsNotCalledLost(t *testing.T) {
	for name, polite := range map[string]time.Duration{"polite": 300 * time.Millisecond, "stubborn": never} {
		t.Run(name, func(t *testing.T) {
			var asked []time.Duration
			limited := func(left time.Duration) bool {
				asked = append(asked, left)
				return left <= time.Second
			}
			w, err := inLimitedWorld(t, 10*time.Second, limited, func(w *world) { w.command.polite = polite })
			require.ErrorIs(t, err, berth.ErrExpired)
			require.Equal(t, "9s TERM", w.command.log[0])
			require.Equal(t, "it has been held as long as it may: SIGTERM sent, SIGKILL follows in 1s", w.said[0])
			require.Equal(t, time.Second, asked[0], "not before it matters")
		})
	}
	w, err := inLimitedWorld(t, 10*time.Second, func(time.Duration) bool { return false }, func(*world) {})
	require.ErrorIs(t, err, berth.ErrLost)
	require.Equal(t, "no renewal in time: SIGTERM sent, SIGKILL follows in 1s", w.said[0])
}

func TestAHoldThatEndsEarlyGivesTheCommandTheGrace(t *testing.T) {
	for _, test := range []struct {
		cause error
		said  string
	}{
		{berth.ErrReleased, "somebody else has released it: SIGTERM sent, SIGKILL follows in 1s"},
		{berth.ErrLost, "the lease is lost: SIGTERM sent, SIGKILL follows in 1s"},
		{berth.ErrExpired, "it has been held as long as it may: SIGTERM sent, SIGKILL follows in 1s"},
	} {
		t.Run(test.cause.Error(), func(t *testing.T) {
			w, err := inWorld(t, 10*time.Second, func(w *world) {
				time.Sleep(3 * time.Second)
				w.hold.lose(test.cause)
			})
			require.ErrorIs(t, err, test.cause)
			require.Equal(t, []string{"3s TERM", "4s KILL"}, w.command.log)
			require.Equal(t, test.said, w.said[0])
		})
	}
}

func TestAHoldWithoutEndThatEndsGivesTheCommandTheGrace(t *testing.T) {
	w, err := inWorld(t, berth.Forever, func(w *world) {
		time.Sleep(time.Hour)
		w.hold.lose(berth.ErrReleased)
	})
	require.ErrorIs(t, err, berth.ErrReleased)
	require.Equal(t, []string{"1h0m0s TERM", "1h0m1s KILL"}, w.command.log)
}

func TestALossInTheGraceDoesNotLengthenIt(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) {
		time.Sleep(9600 * time.Millisecond)
		w.hold.lose(berth.ErrReleased)
	})
	require.ErrorIs(t, err, berth.ErrReleased)
	require.Equal(t, []string{"9s TERM", "10s KILL"}, w.command.log)
}

func TestAHoldThatHasEndedBeforeTheFirstLookLeavesNoTime(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) { w.hold.lose(berth.ErrLost) })
	require.ErrorIs(t, err, berth.ErrLost)
	require.Equal(t, []string{"0s KILL"}, w.command.log)
}

func TestSignalsArePassedOn(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) {
		w.signals <- os.Interrupt
		time.Sleep(time.Second)
		w.signals <- os.Interrupt
		time.Sleep(time.Second)
		w.command.exit()
	})
	require.NoError(t, err)
	require.Equal(t, []string{"0s pass interrupt", "1s pass interrupt"}, w.command.log)
}

func TestAfterASuspensionTheCommandGoesOnIfTheHoldLives(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) {
		w.command.pause = 5 * time.Second
		time.Sleep(time.Second)
		w.command.stopped <- struct{}{}
		time.Sleep(6 * time.Second)
		w.command.exit()
	})
	require.NoError(t, err)
	require.Equal(t, []string{"1s suspend", "6s resume"}, w.command.log)
}

func TestAfterASuspensionPastTheDeadlineTheCommandIsKilledAtOnce(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) {
		w.command.pause = time.Minute
		time.Sleep(time.Second)
		w.command.stopped <- struct{}{}
	})
	require.ErrorIs(t, err, berth.ErrLost)
	require.Equal(t, []string{"1s suspend", "1m1s KILL", "1m1s resume"}, w.command.log)
	require.Equal(t, []string{"the lease is lost: SIGKILL sent"}, w.said)
}

func TestWhatTheCommandStartedGetsTheRestOfTheGrace(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) {
		w.command.polite, w.command.remains = 0, 600*time.Millisecond
	})
	require.ErrorIs(t, err, ErrEnding)
	require.Equal(t, []string{"9s TERM"}, w.command.log)
	require.GreaterOrEqual(t, w.command.clock.Now(), 9600*time.Millisecond)
}

func TestWhatTheCommandStartedIsKilledAtTheDeadline(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) {
		w.command.polite, w.command.remains = 0, time.Hour
	})
	require.ErrorIs(t, err, berth.ErrLost)
	require.Equal(t, []string{"9s TERM", "10s KILL"}, w.command.log)
}

func TestAHoldThatEndedWithTheCommandIsNotOverlooked(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) {
		time.Sleep(time.Second)
		w.command.exit()
		w.hold.lose(berth.ErrReleased)
	})
	require.ErrorIs(t, err, berth.ErrReleased)
	require.Equal(t, []string{"1s TERM"}, w.command.log, "for what it may have left behind")
}

// The hold goes on, and so does the command, until it ends by itself.
func TestWhoeverIsAskedToGiveBackIsToldOnce(t *testing.T) {
	w, err := inWorld(t, berth.Forever, func(w *world) {
		w.passed = os.Interrupt
		time.Sleep(3 * time.Second)
		close(w.hold.wanted)
		time.Sleep(time.Minute)
		w.command.exit()
	})
	require.NoError(t, err)
	require.Equal(t, []string{"3s pass interrupt"}, w.command.log)
	require.Equal(t, []string{"somebody wants it back: " + Name(os.Interrupt) + " sent"}, w.said)

	w, err = inWorld(t, berth.Forever, func(w *world) {
		close(w.hold.wanted)
		time.Sleep(time.Minute)
		w.command.exit()
	})
	require.NoError(t, err)
	require.Empty(t, w.command.log)
	require.Equal(t, []string{"somebody wants it back"}, w.said)
}
