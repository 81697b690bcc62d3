// Package lag tells a machine that stood still from a fault of the code. A test in real time says with [Relies] what the
// shortest real time is that it relies on: a bound, or a third of a lease. Where such a test fails, and the machine was
// late by more than a tenth of that time while the test ran, the failure says nothing about the code. The test's output
// has a line then that begins with [Inconclusive], and internal/tools/suite runs the test again, alone.
//
// What is late is a wake-up: of a goroutine in the test's process, and of a process beside the servers. The first call
// starts both. They end with the test's process.
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

	tick  = 10 * time.Millisecond
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
	from := time.Now()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if late := m.late(t, from); late > shortest/share {
			t.Logf("%sthe machine was late by %v, and the test relies on %v", Inconclusive, late.Round(time.Millisecond), shortest)
		}
	})
}

// record is the spells in which each wake-up of a goroutine was late.
type record struct {
	mu     sync.Mutex
	spells []spell   // guarded by mu; the last one may go on
	goes   bool      // guarded by mu: it does
	due    time.Time // guarded by mu: the next wake-up
}

type spell struct {
	to   time.Time
	late time.Duration // of all wake-ups
}

// look wakes up for ever.
func (r *record) look() {
	for due := r.due; ; {
		<-time.After(time.Until(due))
		due = r.woke(due, time.Now())
	}
}

// woke takes note of a wake-up, and returns when the next one is due. One tick late is on time.
func (r *record) woke(due, now time.Time) (next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = now.Add(tick)
	late := now.Sub(due)
	if late < tick {
		r.goes = false
		return r.due
	}
	if !r.goes {
		r.spells, r.goes = append(r.spells, spell{}), true
	}
	last := &r.spells[len(r.spells)-1]
	last.to, last.late = now, last.late+late
	return r.due
}

// since is the longest spell that has not ended before a moment. The wake-up that is due counts.
func (r *record) since(from, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	pending := max(0, now.Sub(r.due))
	longest := pending
	for i, s := range r.spells {
		if r.goes && i == len(r.spells)-1 {
			s.to, s.late = now, s.late+pending
		}
		if s.to.After(from) {
			longest = max(longest, s.late)
		}
	}
	return longest
}

func begin() *record {
	r := &record{due: time.Now().Add(tick)}
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
func (m *machine) late(t testing.TB, from time.Time) time.Duration {
	t.Helper()
	here := m.here.since(from, time.Now())
	m.mu.Lock()
	defer m.mu.Unlock()
	var beside time.Duration
	if _, err := fmt.Fprintln(m.asks, from.UnixNano()); err != nil || !m.answers.Scan() {
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
		if _, err := fmt.Fprintln(out, int64(r.since(time.Unix(0, from), time.Now()))); err != nil {
			return
		}
	}
}
