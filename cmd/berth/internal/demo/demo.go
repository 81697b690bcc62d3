// Package demo shows with real processes what Berth does, and checks what it
// shows. It needs no server: the processes share the embedded one.
//
// The demo is a list of acts, one for each primitive. An act starts a crew of
// worker processes, directs them, lets a view show what happens, and returns
// facts: what it has checked from what the workers reported. To show another
// primitive, write another act, and a worker that plays in it.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// ErrFailed says that a fact turned out to be none. Failures are printed.
var ErrFailed = errors.New("demo: what it shows is not so")

// Options say how the demo is shown. All fields are required, but Lease and Slow.
type Options struct {
	// Out takes the text.
	Out io.Writer
	// Live redraws one picture over and over, as a terminal allows; else there
	// is a line for everything that happens.
	Live bool
	// Color uses colors.
	Color bool
	// Width is the number of columns that the text may have.
	Width int
	// Lease is that of the worker that dies, 0 for that of the act.
	Lease time.Duration
	// Slow makes every span of an act so many times as long, but leases; 0 for 1.
	Slow int
	// Worker makes the command of a worker process, which calls Work.
	Worker func() *exec.Cmd
}

// act is one part of the demo.
type act struct {
	name  string // by which its workers know it
	title string // one line
	about string // some lines: what will be seen
	next  string // some lines: what to try next
	play  func(ctx context.Context, s *stage) ([]fact, error)
	join  func(n *node.Node, lease time.Duration) *desk // in a worker
}

// acts are played one after the other. All together end within app.Times.Demo.
func acts() []act { return []act{semaphoreAct, lockAct, poolAct} }

// fact is something that was checked.
type fact struct {
	ok   bool
	text string
}

// Run plays the demo. It returns ErrFailed if a fact is none, the end of ctx, or
// why the demo could not be played.
func Run(ctx context.Context, opts Options) error {
	ctx, cancel := within(ctx)
	defer cancel()
	var failed error
	for i, a := range acts() {
		if i > 0 {
			fmt.Fprint(opts.Out, "\n\n")
		}
		if err := perform(ctx, opts, a); errors.Is(err, ErrFailed) {
			failed = err
		} else if err != nil {
			return err
		}
	}
	return failed
}

// within bounds a demo.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, app.Times.Demo, fmt.Errorf("demo: not over after %s", app.Times.Demo))
}

// perform plays one act on a stage of its own.
func perform(ctx context.Context, opts Options, a act) error {
	server, err := embedded.StartListening("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	s := &stage{opts: opts, act: a.name, server: server, paint: paint(opts.Color)}
	defer s.clear()

	fmt.Fprintf(opts.Out, "%s\n\n%s\n\n", s.paint(bold, a.title), flow(a.about, opts.Width))
	facts, err := a.play(ctx, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(opts.Out, "\n%s\n", s.paint(bold, "What was checked"))
	for _, f := range facts {
		mark := s.paint(green, "ok   ")
		if !f.ok {
			mark, err = s.paint(red, "WRONG"), ErrFailed
		}
		fmt.Fprintf(opts.Out, "  %s  %s\n", mark, strings.Join(wrap(f.text, opts.Width-12), "\n         "))
	}
	if err == nil {
		fmt.Fprintf(opts.Out, "\n%s\n", flow(a.next, opts.Width))
	}
	return err
}

// flow wraps the paragraphs of a text that have a line longer than width. Those that are
// indented are commands, and stay as they are.
func flow(text string, width int) string {
	paragraphs := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, p := range paragraphs {
		tooLong := func(line string) bool { return len(line) > width }
		if !strings.HasPrefix(p, " ") && slices.ContainsFunc(strings.Split(p, "\n"), tooLong) {
			paragraphs[i] = strings.Join(wrap(p, width), "\n")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// wrap breaks a text into lines of at most width characters, at its spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
