package torture

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/test/harness"
	"github.com/berth-go/berth/test/torture/checker"
	"github.com/berth-go/berth/test/torture/job"
)

// startLimit bounds the start of a worker, drainLimit its end beyond its own limit.
const (
	startLimit = testkit.Patience
	drainLimit = testkit.Patience
)

// worker is one worker process.
type worker struct {
	name string // "w3"; its lives are "w3.1", "w3.2"
	life int
	job  job.Job
	env  []string // beside the job

	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{} // closed when it is gone
	shot  bool          // it was killed
}

// start begins a life of the worker, and returns when it works.
func (r *round) start(w *worker) {
	r.Helper()
	w.life++
	w.shot = false
	w.job.Process = fmt.Sprintf("%s.%d", w.name, w.life)
	w.job.History = filepath.Join(r.dir, w.job.Process+".jsonl")
	w.job.Seed = r.rng.Int64()
	variable, err := w.job.Variable()
	require.NoError(r, err)
	w.cmd = exec.Command(r.program)
	w.cmd.Env = append(append(os.Environ(), variable), w.env...)
	errs, err := os.Create(w.job.History + ".err")
	require.NoError(r, err)
	defer func() { _ = errs.Close() }() // the worker has its own
	w.cmd.Stderr = errs
	w.in, err = w.cmd.StdinPipe()
	require.NoError(r, err)
	out, err := w.cmd.StdoutPipe()
	require.NoError(r, err)
	w.cmd.SysProcAttr = harness.DieWithParent()
	started, ready, ended := make(chan error), make(chan struct{}), make(chan struct{})
	w.ended = ended
	cmd := w.cmd
	go func() {
		runtime.LockOSThread() // see DieWithParent
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if lines.Text() == job.Ready {
				close(ready)
			}
		}
		_ = cmd.Wait() // how it ended is in its state
		close(ended)
	}()
	require.NoError(r, <-started)
	select {
	case <-ready:
	case <-ended:
		require.FailNow(r, "a worker has ended at once", "%s: %v\n%s", w.job.Process, w.cmd.ProcessState, w.said())
	case <-time.After(startLimit):
		w.end()
		require.FailNow(r, "a worker does not start", "%s\n%s", w.job.Process, w.said())
	}
}

// end kills the worker and returns when it is gone.
func (w *worker) end() {
	w.shot = true
	_ = w.cmd.Process.Kill() // it may have ended
	<-w.ended
}

func (w *worker) signal(sig syscall.Signal) { _ = w.cmd.Process.Signal(sig) } // it may have ended

// said is the beginning of what it has written to its standard error: a report of the race detector, or a panic.
func (w *worker) said() string {
	text, err := os.ReadFile(w.job.History + ".err")
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.20000s", text)
}

// alive says whether the process runs.
func (w *worker) alive() bool {
	select {
	case <-w.ended:
		return false
	default:
		return true
	}
}

// revive starts the workers that are gone. One that nobody has killed has ended by itself.
func (r *round) revive() {
	r.Helper()
	for _, w := range r.workers {
		if w.alive() {
			continue
		}
		if !w.shot {
			text := fmt.Sprintf("%s has ended before it was told to: %v\n%s", w.job.Process, w.cmd.ProcessState, w.said())
			r.found = append(r.found, checker.Violation{Rule: ruleEnd, Text: text})
		}
		r.start(w)
	}
}

// command gives all workers an order. One that is gone is started again, or found when
// it is to end.
func (r *round) command(order string) {
	for _, w := range r.workers {
		_, _ = io.WriteString(w.in, order+"\n")
	}
}

// drain has all workers end what they have begun, and returns those that do not end
// as they should.
func (r *round) drain() []checker.Violation {
	r.Helper()
	r.command(job.Drain)
	limit := time.After(time.Duration(r.workers[0].job.DrainLimit)*time.Millisecond + drainLimit)
	var found []checker.Violation
	for _, w := range r.workers {
		r.tally.check(ruleEnd)
		select {
		case <-w.ended:
		case <-limit:
			w.signal(syscall.SIGQUIT) // its goroutines go to its standard error
			select {
			case <-w.ended:
			case <-time.After(time.Second):
			}
			w.end()
			found = append(found, checker.Violation{Rule: ruleEnd, Text: w.job.Process + " does not end\n" + w.said()})
			continue
		}
		if !w.cmd.ProcessState.Success() {
			text := fmt.Sprintf("%s: %v\n%s", w.job.Process, w.cmd.ProcessState, w.said())
			found = append(found, checker.Violation{Rule: ruleEnd, Text: text})
		}
	}
	return found
}
