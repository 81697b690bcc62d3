//go:build unix

// Command suite is what GNU make and gotestsum do not do for `make check`, `test`, `ci` and `nightly`.
//
//	suite run PLAN STEP...                    has make run the steps, and sums up
//	suite step NAME [VAR=value...] COMMAND... is one of them
//	suite tests NAME [VAR=value...] FLAG... PACKAGE... is one, too: of go test, by gotestsum
//
// A step that fails keeps no other from running. What failed in a test while the machine was late (see
// internal/testkit/lag) is run again when all else has ended, alone, twice at most. The exit code of run is 1
// if anything failed or was not run, and 75 if the machine was late each time that it failed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	codePassed, codeFailed, codeMachine = 0, 1, 75
	dirVariable                         = "BERTH_SUITE"        // the folder in which the steps of a run leave what run reads
	reportVariable                      = "BERTH_TEST_REPORT"  // the file in which tests say what they could not run
	ledgerVariable                      = "BERTH_SUITE_LEDGER" // the file for the ledger of a run, if there is to be one
	commitVariable                      = "BERTH_SUITE_COMMIT" // which that names
	sideBySide                          = "--jobs=2"           // two steps fill two processors
	grace                               = 10 * time.Second     // from asking a process to end to ending it
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if len(os.Args) > 1 && os.Args[1] == "run" { // make passes on to a step what that has heard
		context.AfterFunc(ctx, stop) // a second Ctrl-C waits for nothing
	}
	code, err := suite(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "suite: %v\n", err)
		code = codeFailed
	}
	os.Exit(code)
}

func suite(ctx context.Context, args []string, out io.Writer) (code int, err error) {
	if len(args) < 3 {
		return codeFailed, errors.New("what to do is in the comment of its main.go")
	}
	if args[0] == "run" {
		return run(ctx, args[1], args[2:], out)
	}
	s := &step{Name: args[1], Tests: args[0] == "tests", dir: os.Getenv(dirVariable)}
	for s.Command = args[2:]; len(s.Command) > 0; s.Command = s.Command[1:] {
		if name, _, given := strings.Cut(s.Command[0], "="); !given || strings.HasPrefix(name, "-") {
			break
		}
		s.Vars = append(s.Vars, s.Command[0])
	}
	return codePassed, s.run(ctx, out)
}

// run has make run the steps of a plan, runs again what is to be, and sums up.
func run(ctx context.Context, plan string, names []string, out io.Writer) (code int, err error) {
	dir, err := os.MkdirTemp("", "berth-suite")
	if err != nil {
		return codeFailed, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	report, began := filepath.Join(dir, "report"), time.Now()
	cmd := exec.CommandContext(ctx, "make", append([]string{"--no-print-directory", "--keep-going", sideBySide}, names...)...)
	cmd.Env = append(os.Environ(), dirVariable+"="+dir, reportVariable+"="+report)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // golangci-lint leaves its go list behind
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 2 * grace
	if err := cmd.Run(); ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	} else if err != nil { // more than a step that fails
		fmt.Fprintf(out, "make: %v\n", err)
	}
	r := summary{plan: plan, interrupted: ctx.Err() != nil}
	if err := fromJSON(costsFile, &r.before); err != nil {
		return codeFailed, err
	}
	for _, name := range names {
		s := &step{Name: name, dir: dir}
		_ = fromJSON(s.file(), s) // one that was not run has none
		r.steps = append(r.steps, s)
	}
	for _, s := range r.steps {
		s.again(ctx, out)
	}
	skipped, _ := os.ReadFile(report) // there is none where all was run
	now := r.print(out, time.Since(began), string(skipped))
	if file := os.Getenv(ledgerVariable); file != "" {
		err = toJSON(file, now)
	}
	return now.Code, err
}

// A step is one thing that a run does, and how it ended. The run reads both from a file.
type step struct {
	Name    string
	Vars    []string // VAR=value
	Command []string // of tests: what go test gets
	Tests   bool

	Took     time.Duration
	CPU      time.Duration // of all its processes
	Result   string        // of tests: how many
	Cached   bool          // of tests: some had passed before, and were not run
	Failures []failure
	Late     []string // what was run again, since the machine was late, and what came of it

	dir string
}

// run runs a step, and keeps how it ended. That it failed is no error: the summary says so.
func (s *step) run(ctx context.Context, out io.Writer) error {
	began := time.Now()
	go func() {
		for range time.Tick(time.Minute) { // one package says nothing for minutes
			fmt.Fprintf(out, "...  %s runs for %s\n", s.Name, round(time.Since(began)))
		}
	}()
	if s.Tests {
		var all outcomes
		all, s.Failures = s.test(ctx, out, s.Command...)
		s.Result, s.Cached = all.result()
	} else if err := s.execute(ctx, out, s.Command...); err != nil {
		s.Failures = []failure{{What: s.Name, Why: err.Error(), Again: strings.Join(append(s.Vars, s.Command...), " ")}}
	}
	s.Took = time.Since(began)
	fmt.Fprintf(out, "%s  %s after %s\n", s.state(), s.Name, round(s.Took))
	return toJSON(s.file(), s)
}

func (s *step) file() string { return filepath.Join(s.dir, s.Name+".step") }

func (s *step) state() string {
	if s.Took == 0 {
		return "NOT RUN"
	}
	return map[bool]string{true: "ok", false: "FAILED"}[len(s.Failures) == 0]
}

func fromJSON(file string, to any) error {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	return err
}

func toJSON(file string, what any) error {
	text, _ := json.MarshalIndent(what, "", "  ") // of texts and numbers
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// execute runs a command of a step.
func (s *step) execute(ctx context.Context, out io.Writer, command ...string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), s.Vars...), out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	err := cmd.Run()
	if state := cmd.ProcessState; state != nil {
		s.CPU += state.UserTime() + state.SystemTime()
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	return err
}
