//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// quiet is the time after which it is said what runs.
const quiet = 20 * time.Second

// A suite runs the steps of a plan.
type suite struct {
	command string
	plan    plan
	console *console
	env     []string
	report  string        // the file in which tests say what they could not run
	grace   time.Duration // from asking a step to end to ending it

	mu      sync.Mutex
	results map[string]*result // guarded by mu; by the step's name
}

// result is how a step ended, or what it does.
type result struct {
	begun    time.Time
	took     time.Duration
	cpu      time.Duration // of all processes of the step
	state    state
	tests    *tests // of a step that runs some
	failures []failure
	late     []string // what was run again, since the machine was late, and what came of it
	done     chan struct{}
}

type state string

const (
	waits  state = "waits"
	runs   state = "runs"
	passed state = "ok"
	failed state = "FAILED"
	notRun state = "NOT RUN"
)

func newSuite(command string, p plan, c *console) *suite {
	s := &suite{command: command, plan: p, console: c, grace: 10 * time.Second, results: make(map[string]*result)}
	for _, step := range p.steps {
		s.results[step.name] = &result{state: waits, done: make(chan struct{})}
	}
	return s
}

// The exit codes of a run. That of a machine says that it was late whenever what failed was run.
const (
	codePassed  = 0
	codeFailed  = 1
	codeMachine = 75
)

// run runs all steps and says how they ended.
func (s *suite) run(ctx context.Context) (code int) {
	s.announce()
	watched, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() { s.watch(watched) })

	var all sync.WaitGroup
	for _, step := range s.plan.steps {
		if !step.always {
			all.Go(func() { s.step(ctx, step) })
		}
	}
	all.Wait()
	for _, step := range s.plan.steps {
		s.again(ctx, step)
	}
	for _, step := range s.plan.steps {
		if step.always {
			s.step(context.WithoutCancel(ctx), step)
		}
	}
	unwatch()
	watch.Wait()
	return s.summary(ctx.Err() != nil)
}

func (s *suite) announce() {
	var b strings.Builder
	fmt.Fprintf(&b, "make %s: %s.\nOn two quiet cores it takes about %s, and %s with a full build cache; here are %d.\n",
		s.command, s.plan.does, about(s.plan.cold), about(s.plan.warm), runtime.NumCPU())
	for _, step := range s.plan.steps {
		fmt.Fprintf(&b, "  %-15s %6s  %s\n", step.name, about(step.takes), step.does)
	}
	s.console.print(b.String() + "\n")
}

// watch says what runs when nothing else was said for a while.
func (s *suite) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.console.silent() >= quiet {
				s.console.line("...   %s", strings.Join(s.doing(), "; "))
			}
		}
	}
}

func (s *suite) doing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, step := range s.plan.steps {
		r := s.results[step.name]
		switch {
		case r.state != runs:
		case r.tests != nil:
			if what := r.tests.doing(); what != "" {
				all = append(all, what)
			} else {
				all = append(all, step.name+" builds")
			}
		default:
			all = append(all, step.name+" "+round(time.Since(r.begun)))
		}
	}
	return all
}

// step runs one step when those before it have ended.
func (s *suite) step(ctx context.Context, step step) {
	r := s.results[step.name]
	defer close(r.done)
	for _, name := range step.after {
		<-s.results[name].done
	}
	if why := s.pointless(ctx, step); why != "" {
		s.set(func() { r.state, r.failures = notRun, []failure{{what: step.name, why: why}} })
		return
	}
	s.set(func() { r.begun, r.state = time.Now(), runs })
	var failures []failure
	if step.module != "" {
		failures = s.tests(ctx, step, r)
	} else {
		failures = s.process(ctx, step, r)
	}
	s.set(func() {
		r.took, r.state, r.failures = time.Since(r.begun), passed, failures
		if len(failures) > 0 {
			r.state = failed
		}
	})
	s.console.line("%-5s %s  %s", map[state]string{passed: "ok", failed: "FAIL"}[r.state], step.name, round(r.took))
}

// set changes a result.
func (s *suite) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// pointless returns why a step is not run: it is interrupted, or a vital step before it
// failed, or was not run for such a reason itself.
func (s *suite) pointless(ctx context.Context, step step) string {
	if ctx.Err() != nil {
		return "interrupted"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.plan.steps {
		r := s.results[other.name]
		switch {
		case !slices.Contains(step.after, other.name):
		case r.state == notRun:
			return other.name + " was not run"
		case other.vital && r.state == failed:
			return other.name + " failed"
		}
	}
	return ""
}

// process runs the command of a step and passes on what it says.
func (s *suite) process(ctx context.Context, step step, r *result) []failure {
	say := func(text string) { s.console.line("      %s | %s", step.name, text) }
	if err := s.execute(ctx, step, r, step.command, say); err != nil {
		return []failure{{what: step.name, why: err.Error(), again: quoted(step.command)}}
	}
	return nil
}

// quoted returns a command as a person gives it to a shell.
func quoted(command []string) string {
	var words []string
	for _, word := range command {
		switch {
		case word == "--no-print-directory":
		case strings.Contains(word, " "):
			words = append(words, "'"+word+"'")
		default:
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// tests runs the tests of a module, all or those of one package.
func (s *suite) tests(ctx context.Context, step step, r *result, of ...string) []failure {
	path, err := modulePath(step.module)
	if err != nil {
		return []failure{{what: step.name, why: err.Error(), again: "go -C " + step.module + " list -m"}}
	}
	var env []string // what a test that is run again needs, too
	for _, variable := range step.env {
		if strings.HasPrefix(variable, "BERTH_") && strings.Contains(variable, "=") {
			env = append(env, variable)
		}
	}
	flags := slices.Clone(step.flags)
	t := newTests(step.module, path, env, s.console)
	if step.cpu != "" {
		t.cpu, flags = step.cpu, append(flags, "-cpu="+step.cpu)
	}
	if of == nil {
		of = []string{step.first, "./..."}
	}
	of = slices.DeleteFunc(of, func(path string) bool { return path == "" })
	s.set(func() { r.tests = t })
	command := slices.Concat([]string{"go", "-C", step.module, "test", "-json"}, testFlags, flags, of)
	step.env = append(slices.Clone(step.env), "BERTH_TEST_REPORT="+s.report)
	t.ended(s.execute(ctx, step, r, command, t.line))
	return t.failures
}

// execute runs a command in a session of its own, so that what it has started ends with it.
func (s *suite) execute(ctx context.Context, step step, r *result, command []string, line func(string)) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = environment(s.env, step.env)
	cmd.WaitDelay = s.grace
	if !step.vital { // setup may ask the terminal for a password
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Cancel = func() error { return end(cmd.Process.Pid, syscall.SIGTERM) }
	}
	out, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	var read sync.WaitGroup
	read.Go(func() {
		lines := bufio.NewReader(out)
		for {
			text, err := lines.ReadString('\n')
			if text != "" {
				line(strings.TrimRight(text, "\n"))
			}
			if err != nil {
				return
			}
		}
	})
	err := cmd.Start()
	if err == nil {
		if step.yields {
			giveWay(cmd.Process.Pid)
		}
		err = cmd.Wait()
	}
	_ = w.Close()
	read.Wait()
	if state := cmd.ProcessState; state != nil {
		s.set(func() { r.cpu = state.UserTime() + state.SystemTime() })
	}
	if ctx.Err() != nil {
		if !step.vital && cmd.Process != nil {
			_ = end(cmd.Process.Pid, syscall.SIGKILL) // golangci-lint leaves its go list behind
		}
		return errors.New("interrupted")
	}
	return err
}

// behind is how nice a step is that gives way.
const behind = 10

// giveWay has all processes of a session get a processor after others: by being nice, and where Linux shares the
// processors among sessions, by their autogroup.
func giveWay(session int) {
	_ = syscall.Setpriority(syscall.PRIO_PGRP, session, behind)
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", session), []byte(strconv.Itoa(behind)), 0o600)
}

// end sends a signal to all processes of a session: to the group that has its number, and
// where /proc tells them to the groups that those have made.
func end(session int, signal syscall.Signal) error {
	err := syscall.Kill(-session, signal)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path) // it may have ended
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest) // state, parent, group, session
		if len(fields) > 3 && fields[2] != fields[3] && fields[3] == strconv.Itoa(session) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				_ = syscall.Kill(pid, signal)
			}
		}
	}
	return err
}

// environment returns env with changes: NAME=value, or NAME alone to take it away.
func environment(env, changes []string) []string {
	env = slices.Clone(env)
	for _, change := range changes {
		name, _, given := strings.Cut(change, "=")
		env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		if given {
			env = append(env, change)
		}
	}
	return env
}

func modulePath(folder string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return "", err
	}
	for text := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(text, "module "); ok {
			return strings.TrimSpace(path), nil
		}
	}
	return "", fmt.Errorf("%s/go.mod names no module", folder)
}
