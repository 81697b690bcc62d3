package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// startLimit bounds how long a server may take until it accepts connections.
const startLimit = 20 * time.Second

var errAddressInUse = errors.New("address already in use")

// process is a redis-server of this machine.
type process struct {
	binary string
	args   []string
	at     string // host:port
	dir    string
	life   *life // nil while killed
}

func newProcess(args []string) (engine, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "berth-redis-")
	if err != nil {
		return nil, err
	}
	p := &process{binary: binary, dir: dir}
	// A port that was free a moment ago may be taken by now.
	for range 5 {
		if err = p.place(args); err != nil {
			break
		}
		if err = p.start(); err == nil {
			return p, nil
		}
		if !errors.Is(err, errAddressInUse) {
			break
		}
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// place draws a port and fixes the command line for it.
func (p *process) place(args []string) error {
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	p.at = addr
	p.args = append([]string{
		"--bind", host, "--port", port, "--dir", p.dir,
		"--save", "", "--appendonly", "no",
	}, args...)
	return nil
}

func (p *process) addr() string { return p.at }

func (p *process) pid() int {
	if p.life == nil {
		return 0
	}
	return p.life.cmd.Process.Pid
}

func (p *process) start() error {
	life, err := launch(p.binary, p.args)
	if err != nil {
		return err
	}
	p.life = life
	return nil
}

func (p *process) kill() error {
	if p.life != nil {
		p.life.end()
		p.life = nil
	}
	return nil
}

func (p *process) freeze() error { return p.signal(syscall.SIGSTOP) }

func (p *process) thaw() error { return p.signal(syscall.SIGCONT) }

func (p *process) signal(sig syscall.Signal) error {
	if p.life == nil {
		return os.ErrProcessDone
	}
	return p.life.cmd.Process.Signal(sig)
}

func (p *process) remove() error {
	return errors.Join(p.kill(), os.RemoveAll(p.dir))
}

// life is one run of a server process.
type life struct {
	cmd   *exec.Cmd
	kill  context.CancelFunc // SIGKILL
	ended chan struct{}      // closed when the process has been waited for
}

// launch starts a server and returns when it accepts connections. What counts is
// the line that the process itself prints: a port that answers may be another's.
func launch(binary string, args []string) (*life, error) {
	ctx, kill := context.WithCancel(context.Background())
	l := &life{cmd: exec.CommandContext(ctx, binary, args...), kill: kill, ended: make(chan struct{})}
	l.cmd.SysProcAttr = dieWithParent()
	ready := make(chan error, 1)
	go l.run(ready)
	timer := time.NewTimer(startLimit)
	defer timer.Stop()
	select {
	case err := <-ready:
		if err != nil {
			l.end()
			return nil, err
		}
		return l, nil
	case <-timer.C:
		l.end()
		return nil, fmt.Errorf("not ready within %v", startLimit)
	}
}

// run starts the process, reads what it prints, and waits for it. On Linux the
// kernel ends the child with the thread that started it, so this goroutine keeps
// its thread until the process is gone.
func (l *life) run(ready chan<- error) {
	defer close(l.ended)
	runtime.LockOSThread()
	var complaints bytes.Buffer // about the settings
	l.cmd.Stderr = &complaints
	out, err := l.cmd.StdoutPipe()
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		ready <- err
		return
	}
	var said []string
	up := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if up {
			continue
		}
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			up = true
			ready <- nil
		}
	}
	err = l.cmd.Wait()
	if !up {
		ready <- startError(strings.Join(append(said, complaints.String()), "\n"), err)
	}
}

func (l *life) end() {
	l.kill()
	<-l.ended
}

func startError(said string, err error) error {
	if strings.Contains(said, "Address already in use") {
		return errAddressInUse
	}
	return fmt.Errorf("ended before it was ready: %w\n%s", err, said)
}
