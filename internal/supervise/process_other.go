//go:build !unix

package supervise

import (
	"os"
	"os/exec"
)

// Process is a started command. This system has no process groups and only one
// way to end a process, so what the command started is not ended with it.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
}

var _ Command = (*Process)(nil)

// Start starts a command whose input and outputs are files. Its errors are
// those of exec.Cmd.Start.
func Start(cmd *exec.Cmd) (*Process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // ExitCode says it
		close(p.exited)
	}()
	return p, nil
}

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitCode is what the process ended with. It is to be asked after Exited.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Gone reports whether the process has ended.
func (p *Process) Gone() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Terminate does nothing: there is no signal for it. Kill follows.
func (p *Process) Terminate() {}

// Kill ends the process.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// Pass does nothing: the console sends what there is to the command too.
func (p *Process) Pass(os.Signal) {}

// Stopped never receives.
func (p *Process) Stopped() <-chan struct{} { return nil }

// Suspend does nothing.
func (p *Process) Suspend() {}

// Resume does nothing.
func (p *Process) Resume() {}

// Interrupts are the signals that ask a program to end.
func Interrupts() []os.Signal { return []os.Signal{os.Interrupt} }

// Others are signals that mean something to the command, and are passed on:
// none.
func Others() []os.Signal { return nil }

// Stops are the signals by which Wait suspends the command: none.
func Stops() []os.Signal { return nil }

// Number is the number of a signal: there is one, SIGINT.
func Number(os.Signal) int { return 2 }

// Named is the signal of a name: here nothing can be sent.
func Named(string) (os.Signal, bool) { return nil, false }

// Name is the name of a signal.
func Name(sig os.Signal) string { return sig.String() }

func suspends(os.Signal) bool { return false }
