package demo

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
)

// stage is what an act plays on: a server of its own, and processes.
type stage struct {
	opts   Options
	act    string // the name of the act
	server *embedded.Server
	paint  painter
	crew   []*member
}

// member is one worker process, as its director sees it.
type member struct {
	number int
	cmd    *exec.Cmd
	orders io.WriteCloser
	late   atomic.Int64  // how late its timers were at worst, in nanoseconds
	heard  atomic.Int64  // until when, in Unix nanoseconds, all that it said has been passed on
	ended  chan struct{} // closed when the process has ended and all it said is read
	err    error         // how it ended; to be read after ended
}

// hire starts worker processes, numbered from 1. Their reports arrive on the channel, in order
// for each worker, including a report of its end. The victim has the lease of the plan.
func (s *stage) hire(p plan) (<-chan report, error) {
	reports := make(chan report, 1024) // more than an act has, so nobody blocks
	for number := 1; number <= p.workers; number++ {
		lease := steady
		if number == p.victim {
			lease = p.lease
		}
		m, err := s.start(number, lease, reports)
		if err != nil {
			return nil, fmt.Errorf("demo: worker %d: %w", number, err)
		}
		s.crew = append(s.crew, m)
	}
	return reports, nil
}

func (s *stage) start(number int, lease time.Duration, reports chan<- report) (*member, error) {
	cmd := s.opts.Worker()
	cmd.Env = append(cmd.Environ(), urlVariable+"="+s.server.URL(), actVariable+"="+s.act, leaseVariable+"="+lease.String(),
		labelVariable+"="+fmt.Sprintf("%s worker %d", s.act, number))
	said := &tail{}
	cmd.Stderr = said
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	m := &member{number: number, cmd: cmd, orders: orders, ended: make(chan struct{})}
	go func() {
		defer close(m.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			r := report{worker: number}
			if json.Unmarshal(lines.Bytes(), &r) != nil {
				continue
			}
			if r.Kind != alive {
				reports <- r
			}
			m.late.Store(max(m.late.Load(), int64(r.Late)))
			m.heard.Store(r.At.UnixNano())
		}
		m.err = cmd.Wait()
		r := report{worker: number, Kind: exited, At: time.Now()}
		if m.err != nil {
			r.Text = m.err.Error() + said.String()
		}
		reports <- r
		m.heard.Store(math.MaxInt64)
	}()
	return m, nil
}

// heard is until when all that the crew said has been passed on, however busy the
// machine is.
func (s *stage) heard() time.Time {
	until := int64(math.MaxInt64)
	for _, m := range s.crew {
		until = min(until, m.heard.Load())
	}
	return time.Unix(0, until)
}

// late is how late the crew's timers were at worst.
func (s *stage) late() time.Duration {
	most := int64(0)
	for _, m := range s.crew {
		most = max(most, m.late.Load())
	}
	return time.Duration(most)
}

// member returns a worker by its number.
func (s *stage) member(number int) *member { return s.crew[number-1] }

// tell gives a worker an order.
func (m *member) tell(o order) error { return json.NewEncoder(m.orders).Encode(o) }

// dismiss lets a worker end by itself.
func (m *member) dismiss() { _ = m.orders.Close() }

// kill ends a worker with SIGKILL, and returns when there is nothing left of it.
func (m *member) kill() error {
	err := m.cmd.Process.Kill()
	<-m.ended
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// clear leaves no process behind.
func (s *stage) clear() {
	for _, m := range s.crew {
		m.dismiss()
		_ = m.kill()
	}
}

// tail keeps what a worker complains of.
type tail struct {
	mu   sync.Mutex
	text []byte // guarded by mu
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), max(0, 1000-len(t.text)))]...)
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.text) == 0 {
		return ""
	}
	return ": " + string(t.text)
}
