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
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// startLimit bounds how long a server may take until it accepts connections.
const startLimit = 2 * time.Minute

var errAddressInUse = errors.New("address already in use")

// program says how a server process is run.
type program struct {
	binary string   // redis-server or valkey-server
	args   []string // settings, as on the command line
	config string   // the text of its configuration file, if it is to have one
	bus    bool     // it needs a second port: that of the cluster bus
	clock  bool     // its clock can be set, where that can be done
}

// process is a server of this machine.
type process struct {
	program
	path     string // of the binary
	fixed    []string
	at       string // host:port
	busPort  string // of the cluster bus, if it has one
	dir      string
	clock    *clock // nil if it has none of its own
	clockErr error  // why not
	life     *life  // nil while killed
}

func newProcess(args []string) (engine, error) {
	return run(program{binary: "redis-server", args: args})
}

// run starts a server on a port that is free.
func run(how program) (engine, error) {
	path, err := exec.LookPath(how.binary)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "berth-redis-")
	if err != nil {
		return nil, err
	}
	p := &process{program: how, path: path, dir: dir}
	if how.clock {
		p.clock, p.clockErr = newClock(dir)
	}
	// A port that was free a moment ago may be taken by now.
	for range 5 {
		if err = p.place(); err != nil {
			break
		}
		if err = p.start(); err == nil {
			return p, nil
		}
		if !errors.Is(err, errAddressInUse) {
			break
		}
	}
	return nil, errors.Join(err, p.remove())
}

// place draws the ports, fixes the command line for them, and writes the
// configuration file.
func (p *process) place() error {
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	p.at, p.fixed = addr, nil
	if p.config != "" {
		p.fixed = append(p.fixed, p.configFile())
		if err := p.configure(p.config); err != nil {
			return err
		}
	}
	p.fixed = append(p.fixed,
		"--bind", host, "--port", port, "--dir", p.dir,
		"--save", "", "--appendonly", "no",
	)
	if p.bus {
		bus, err := freeAddr()
		if err != nil {
			return err
		}
		if _, p.busPort, err = net.SplitHostPort(bus); err != nil {
			return err
		}
		p.fixed = append(p.fixed, "--cluster-port", p.busPort)
	}
	p.fixed = append(p.fixed, p.args...)
	return nil
}

func (p *process) configFile() string { return filepath.Join(p.dir, "server.conf") }

// configure replaces the configuration file, which the server rewrites when it is
// told to follow another one.
func (p *process) configure(text string) error {
	return os.WriteFile(p.configFile(), []byte(text), 0o600)
}

func (p *process) addr() string { return p.at }

func (p *process) pid() int {
	if p.life == nil {
		return 0
	}
	return p.life.cmd.Process.Pid
}

func (p *process) start() error {
	var env []string
	if p.clock != nil {
		env = p.clock.env()
	}
	life, err := launch(p.path, p.fixed, env)
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

// A server loads the file of its data when it starts, so a snapshot has another name.
func (p *process) data() string     { return filepath.Join(p.dir, "dump.rdb") }
func (p *process) snapshot() string { return filepath.Join(p.dir, "snapshot.rdb") }

func (p *process) keepSnapshot() error { return os.Rename(p.data(), p.snapshot()) }

// restore starts the server again with the data of the snapshot, once.
func (p *process) restore() error {
	if err := p.kill(); err != nil {
		return err
	}
	if err := os.Rename(p.snapshot(), p.data()); err != nil {
		return err
	}
	return errors.Join(p.start(), os.Remove(p.data()))
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
	err := p.kill()
	if p.clock != nil {
		err = errors.Join(err, p.clock.remove())
		p.clock = nil
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// life is one run of a server process.
type life struct {
	cmd   *exec.Cmd
	kill  context.CancelFunc // SIGKILL
	ended chan struct{}      // closed when the process has been waited for
}

// launch starts a server and returns when it accepts connections. What counts is
// the line that the process itself prints: a port that answers may be another's.
func launch(binary string, args, env []string) (*life, error) {
	ctx, kill := context.WithCancel(context.Background())
	l := &life{cmd: exec.CommandContext(ctx, binary, args...), kill: kill, ended: make(chan struct{})}
	l.cmd.SysProcAttr = DieWithParent()
	l.cmd.Env = append(os.Environ(), env...)
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
		if isUp(lines.Text()) {
			up = true
			ready <- nil
		}
	}
	err = l.cmd.Wait()
	if !up {
		ready <- startError(strings.Join(append(said, complaints.String()), "\n"), err)
	}
}

// isUp knows the line that a server prints when it listens, and that of a Sentinel.
func isUp(line string) bool {
	return strings.Contains(line, "Ready to accept connections") || strings.Contains(line, "Sentinel ID is")
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
