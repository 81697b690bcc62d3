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

// Under a hold of 10 s, or without end, and with a grace of 1 s.
func TestWhatBecomesOfACommandAndItsHold(t *testing.T) {
	const tells = ": SIGTERM sent, SIGKILL follows in 1s"
	after := func(d time.Duration, do func(w *world)) func(w *world) {
		return func(w *world) {
			time.Sleep(d)
			do(w)
		}
	}
	loses := func(cause error) func(w *world) { return func(w *world) { w.hold.lose(cause) } }
	renews := func(w *world) { w.hold.renew(10 * time.Second) }
	exits := func(w *world) { w.command.exit() }
	pauses := func(d time.Duration) func(w *world) { return func(w *world) { w.command.pause = d } }
	suspends := func(w *world) { w.command.stopped <- struct{}{} }
	interrupts := func(w *world) { w.signals <- os.Interrupt }
	then := func(all ...func(w *world)) func(w *world) {
		return func(w *world) {
			for _, do := range all {
				do(w)
			}
		}
	}
	for name, row := range map[string]struct {
		endless bool
		script  func(w *world)
		err     error
		log     []string
		said    []string // how that begins
	}{
		"without a renewal TERM comes at the deadline less the grace, and KILL at the deadline": {
			false, func(*world) {}, berth.ErrLost,
			[]string{"9s TERM", "10s KILL"},
			[]string{"no renewal in time" + tells, "the lease is lost: SIGKILL sent"},
		},
		"what ends in its grace was told to": {
			false, func(w *world) { w.command.polite = 300 * time.Millisecond }, ErrEnding, []string{"9s TERM"}, nil,
		},
		"a renewal in the grace puts the KILL off": {
			false, after(9500*time.Millisecond, renews), berth.ErrLost,
			[]string{"9s TERM", "18.5s TERM", "19.5s KILL"},
			[]string{"no renewal in time" + tells, "the lease has been renewed after all"},
		},
		"the reason stays when a renewal comes too late for the command": {
			false, then(after(9500*time.Millisecond, renews), after(2*time.Second, exits)), ErrEnding, []string{"9s TERM"}, nil,
		},
		"an early end gives it the grace: released": {
			false, after(3*time.Second, loses(berth.ErrReleased)), berth.ErrReleased,
			[]string{"3s TERM", "4s KILL"},
			[]string{"somebody else has released it" + tells},
		},
		"an early end gives it the grace: lost": {
			false, after(3*time.Second, loses(berth.ErrLost)), berth.ErrLost,
			[]string{"3s TERM", "4s KILL"},
			[]string{"the lease is lost" + tells},
		},
		"an early end gives it the grace: expired": {
			false, after(3*time.Second, loses(berth.ErrExpired)), berth.ErrExpired,
			[]string{"3s TERM", "4s KILL"},
			[]string{"it has been held as long as it may" + tells},
		},
		"the end of a hold without end, too": {
			true, after(time.Hour, loses(berth.ErrReleased)), berth.ErrReleased, []string{"1h0m0s TERM", "1h0m1s KILL"}, nil,
		},
		"a loss in the grace does not lengthen it": {
			false, after(9600*time.Millisecond, loses(berth.ErrReleased)), berth.ErrReleased,
			[]string{"9s TERM", "10s KILL"},
			nil,
		},
		"an end before the first look leaves no time": {false, loses(berth.ErrLost), berth.ErrLost, []string{"0s KILL"}, nil},
		"signals are passed on": {
			false, then(interrupts, after(time.Second, interrupts), after(time.Second, exits)), nil,
			[]string{"0s pass interrupt", "1s pass interrupt"},
			nil,
		},
		"after a suspension it goes on if the hold lives": {
			false, then(pauses(5*time.Second), after(time.Second, suspends), after(6*time.Second, exits)), nil,
			[]string{"1s suspend", "6s resume"},
			nil,
		},
		"after a suspension past the deadline it is killed at once": {
			false, then(pauses(time.Minute), after(time.Second, suspends)), berth.ErrLost,
			[]string{"1s suspend", "1m1s KILL", "1m1s resume"},
			[]string{"the lease is lost: SIGKILL sent"},
		},
		"what it has started is killed at the deadline": {
			false, func(w *world) { w.command.polite, w.command.remains = 0, time.Hour }, berth.ErrLost,
			[]string{"9s TERM", "10s KILL"},
			nil,
		},
		"a hold that ended with it is not overlooked, for what it may have left behind": {
			false, then(after(time.Second, exits), loses(berth.ErrReleased)), berth.ErrReleased, []string{"1s TERM"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			left := 10 * time.Second
			if row.endless {
				left = berth.Forever
			}
			w, err := inWorld(t, left, row.script)
			require.ErrorIs(t, err, row.err)
			require.Equal(t, row.log, w.command.log)
			require.Equal(t, row.said, append([]string(nil), w.said[:len(row.said)]...))
		})
	}
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

func TestWhatTheCommandStartedGetsTheRestOfTheGrace(t *testing.T) {
	w, err := inWorld(t, 10*time.Second, func(w *world) {
		w.command.polite, w.command.remains = 0, 600*time.Millisecond
	})
	require.ErrorIs(t, err, ErrEnding)
	require.Equal(t, []string{"9s TERM"}, w.command.log)
	require.GreaterOrEqual(t, w.command.clock.Now(), 9600*time.Millisecond)
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
