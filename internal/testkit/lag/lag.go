// Package lag tells a machine that stood still from a fault of the code. A test in real time says with [Relies] what the
// shortest real time is that it relies on: a bound, or a third of a lease. Where such a test fails, and the machine was
// late by more than a tenth of that time while the test ran, the failure says nothing about the code. The test's output
// has a line then that begins with [Inconclusive], and internal/tools/suite runs the test again, alone.
//
// What is late is a wake-up, or the wall clock: of a goroutine in the test's process, and of a process beside the
// servers. The first call starts both. They end with the test's process.
package lag

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

const (
	// Inconclusive begins the line of a test that failed while the machine was late.
	Inconclusive = "inconclusive: "
	// Goroutine is what looks for leaks has to pass by.
	Goroutine = "github.com/berth-go/berth/internal/testkit/lag.(*record).look"

	tick  = 20 * time.Millisecond
	share = 10 // a test bears a lag of one part in so many of the time that it relies on
)

// Relies says that the test relies on the machine's being late by no more than a tenth of shortest, from now until the
// test's cleanups that were registered later are over. It is not for a synctest bubble. Each call counts for itself.
func Relies(t testing.TB, shortest time.Duration) {
	t.Helper()
	m, err := watched()
	if err != nil {
		t.Fatal(err)
	}
	from := now().wall
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if late := m.late(t, from); late > shortest/share {
			t.Logf("%sthe machine was late by %v, and the test relies on %v", Inconclusive, late.Round(time.Millisecond), shortest)
		}
	})
}

// moment is one on two clocks. A machine that is saved and brought back misses nothing on the steady one, while the
// servers' leases go by the wall clock, which is put right.
type moment struct {
	steady time.Duration
	wall   time.Duration // since 1970
}

var began = time.Now()

func now() moment {
	t := time.Now()
	return moment{t.Sub(began), time.Duration(t.UnixNano())}
}

func (m moment) add(d time.Duration) moment { return moment{m.steady + d, m.wall + d} }

// after is how much later m is than due, by either clock. The wall clock may also have been put back.
func (m moment) after(due moment) time.Duration {
	steady, wall := m.steady-due.steady, m.wall-due.wall
	return max(0, steady, wall, steady-wall)
}

// record is the spells in which each wake-up of a goroutine was late.
type record struct {
	mu     sync.Mutex
	spells []spell // guarded by mu; the last one may go on
	goes   bool    // guarded by mu: it does
	due    moment  // guarded by mu: the next wake-up
}

type spell struct {
	to   moment
	late time.Duration // of all wake-ups
}

// look wakes up for ever.
func (r *record) look() {
	timer := time.NewTimer(tick)
	for due := r.due; ; timer.Reset(tick) {
		<-timer.C
		due = r.woke(due, now())
	}
}

// woke takes note of a wake-up, and returns when the next one is due. Half a tick late is on time.
func (r *record) woke(due, at moment) (next moment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = at.add(tick)
	late := at.after(due)
	if late < tick/2 {
		r.goes = false
		return r.due
	}
	if !r.goes {
		r.spells, r.goes = append(r.spells, spell{}), true
	}
	last := &r.spells[len(r.spells)-1]
	last.to, last.late = at, last.late+late
	return r.due
}

// since is the longest spell that has not ended before a time of the wall clock. The wake-up that is due counts.
func (r *record) since(wall time.Duration, at moment) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	pending := at.after(r.due)
	longest := pending
	for i, s := range r.spells {
		if r.goes && i == len(r.spells)-1 {
			s.to, s.late = at, s.late+pending
		}
		if s.to.wall > wall {
			longest = max(longest, s.late)
		}
	}
	return longest
}

func begin() *record {
	r := &record{due: now().add(tick)}
	go r.look()
	return r
}

// machine is the record of this process, and the process beside.
type machine struct {
	here *record

	mu      sync.Mutex
	asks    io.Writer      // guarded by mu
	answers *bufio.Scanner // guarded by mu
}

var watched = sync.OnceValues(func() (*machine, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), besideVariable+"=1")
	asks, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &machine{here: begin(), asks: asks, answers: bufio.NewScanner(answers)}, nil
})

// late is the longest spell of the two since a moment.
func (m *machine) late(t testing.TB, from time.Duration) time.Duration {
	t.Helper()
	here := m.here.since(from, now())
	m.mu.Lock()
	defer m.mu.Unlock()
	var beside time.Duration
	if _, err := fmt.Fprintln(m.asks, int64(from)); err != nil || !m.answers.Scan() {
		t.Errorf("the process that looks at the clock has ended: %v, %v", err, m.answers.Err())
	} else if _, err := fmt.Sscan(m.answers.Text(), (*int64)(&beside)); err != nil {
		t.Errorf("the process that looks at the clock said %q", m.answers.Text())
	}
	return max(here, beside)
}

// besideVariable makes a test binary the process beside.
const besideVariable = "BERTH_TEST_LAG"

func init() {
	if os.Getenv(besideVariable) != "" {
		answer(begin(), os.Stdin, os.Stdout)
		os.Exit(0)
	}
}

// answer says of each moment that it reads what the longest spell since is, both in nanoseconds, until there is no more
// to read.
func answer(r *record, in io.Reader, out io.Writer) {
	for asked := bufio.NewScanner(in); asked.Scan(); {
		var from int64
		if _, err := fmt.Sscan(asked.Text(), &from); err != nil {
			return
		}
		if _, err := fmt.Fprintln(out, int64(r.since(time.Duration(from), now()))); err != nil {
			return
		}
	}
}
