//go:build unix

package supervise

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process is a started command in a process group of its own.
type Process struct {
	pid      int
	terminal *terminal     // nil unless the group was given the foreground
	exited   chan struct{} // closed when the process has ended
	stopped  chan struct{} // has room for one
	status   unix.WaitStatus
}

var _ Command = (*Process)(nil)

// Start starts a command whose input and outputs are files. Its errors are
// those of exec.Cmd.Start.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{exited: make(chan struct{}), stopped: make(chan struct{}, 1)}
	p.terminal = foregroundOf(cmd)
	cmd.SysProcAttr = attributes()
	if p.terminal != nil {
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, p.terminal.fd
	}
	started := make(chan error)
	go p.attend(cmd, started)
	if err := <-started; err != nil {
		return nil, err
	}
	if p.terminal != nil {
		// From now on we are in the background: neither taking the foreground
		// back nor a line on stderr may stop us.
		signal.Ignore(unix.SIGTTOU)
	}
	return p, nil
}

// attend starts the process and waits for it, all on one thread: the process is
// to die with its parent, and for the kernel that is the thread that started it.
func (p *Process) attend(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	_ = cmd.Process.Release() // exec cannot tell of a process that was stopped
	started <- nil
	for !p.await() {
		if p.terminal != nil {
			select {
			case p.stopped <- struct{}{}:
			default:
			}
		}
	}
	if p.terminal != nil {
		p.terminal.takeBack(p.pid)
	}
	close(p.exited)
}

// await waits until the process was stopped or has ended.
func (p *Process) await() (ended bool) {
	for {
		_, err := unix.Wait4(p.pid, &p.status, unix.WUNTRACED, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err != nil || !p.status.Stopped()
	}
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitCode is what the process ended with, 128+n if by signal n. It is to be
// asked after Exited.
func (p *Process) ExitCode() int {
	if p.status.Signaled() {
		return 128 + int(p.status.Signal())
	}
	return p.status.ExitStatus()
}

// Gone reports whether nobody is left in the process group.
func (p *Process) Gone() bool { return errors.Is(p.group(0), unix.ESRCH) }

// Terminate sends SIGTERM to the group, stopped or not.
func (p *Process) Terminate() {
	_ = p.group(unix.SIGTERM)
	_ = p.group(unix.SIGCONT)
}

// Kill sends SIGKILL to the group.
func (p *Process) Kill() { _ = p.group(unix.SIGKILL) }

// Pass sends a signal on: to the whole group where a terminal would, else to
// the process alone, whose children may not expect it.
func (p *Process) Pass(sig os.Signal) {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return
	}
	switch number {
	case unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH:
		select {
		case <-p.exited: // the number may be another process's by now
		default:
			_ = unix.Kill(p.pid, number)
		}
	default:
		_ = p.group(number)
	}
}

// group sends a signal to all of the process group. Its number stays taken
// while anybody is in it, also after the process has ended.
func (p *Process) group(sig syscall.Signal) error { return unix.Kill(-p.pid, sig) }

// Stopped receives when the process was stopped at its terminal.
func (p *Process) Stopped() <-chan struct{} { return p.stopped }

// Suspend stops the group and then this very process, with its own group where
// that stands for a job of the shell. It returns when this process is continued.
func (p *Process) Suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	_ = p.group(unix.SIGSTOP)
	self := unix.Getpid()
	if p.terminal != nil {
		p.terminal.takeBack(p.pid)
		self = 0
	}
	if unix.Kill(self, unix.SIGSTOP) == nil {
		<-continued
	}
}

// Resume continues the group, in the foreground if the shell has put us there.
func (p *Process) Resume() {
	if p.terminal != nil {
		p.terminal.give(p.pid)
	}
	_ = p.group(unix.SIGCONT)
}

// Interrupts are the signals that ask a program to end. Those that were ignored
// when this one began, as nohup has it, are not among them.
func Interrupts() []os.Signal {
	var list []os.Signal
	for _, sig := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM} {
		if !signal.Ignored(sig) {
			list = append(list, sig)
		}
	}
	return list
}

// Others are signals that mean something to the command, and are passed on.
func Others() []os.Signal { return []os.Signal{unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH} }

// Stops are the signals by which Wait suspends the command and this process.
func Stops() []os.Signal { return []os.Signal{unix.SIGTSTP} }

// Number is the number of a signal.
func Number(sig os.Signal) int {
	number, _ := sig.(syscall.Signal)
	return int(number)
}

// Named is the signal of a name, such as SIGUSR1 or USR1; false where there is none.
func Named(name string) (os.Signal, bool) {
	name = strings.ToUpper(name)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	number := unix.SignalNum(name)
	return number, number != 0
}

// Name is the name of a signal.
func Name(sig os.Signal) string { return unix.SignalName(syscall.Signal(Number(sig))) }

// suspends reports whether a signal asks to stop for a while.
func suspends(sig os.Signal) bool { return sig == unix.SIGTSTP }
