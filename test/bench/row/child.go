package row

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// childFlag marks a child process: it is the first argument, and a Job's name the second.
const childFlag = "-child"

// Job is what a child process does. The first message that it receives are its arguments.
// Its error ends the child with status 1 and is printed.
type Job func(ctx context.Context, p *Parent) error

// Child is a child process. One goroutine uses it at a time.
type Child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func startChild(ctx context.Context, job string) (*Child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, exe, childFlag, job)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
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
	return &Child{cmd: cmd, in: in, out: json.NewDecoder(bufio.NewReader(out))}, nil
}

// Send gives the child one message, as JSON.
func (c *Child) Send(v any) error { return json.NewEncoder(c.in).Encode(v) }

// Receive waits for a message of the child's. It fails with io.EOF when the child has
// ended, which the end of Start's context brings about.
func (c *Child) Receive(v any) error { return c.out.Decode(v) }

// Kill ends the child without a chance to clean up, as SIGKILL does.
func (c *Child) Kill() error { return c.cmd.Process.Kill() }

// Close ends the child, if it has not ended, and waits for it. The error is the child's.
func (c *Child) Close() error {
	_ = c.in.Close() // a child that has ended closed it too
	return c.cmd.Wait()
}

// Parent is what a child sees of the process that started it.
type Parent struct {
	in  chan json.RawMessage
	out *json.Encoder
}

// Receive waits for a message of the parent's.
func (p *Parent) Receive(v any) error { return json.Unmarshal(<-p.in, v) }

// Send gives the parent one message, as JSON.
func (p *Parent) Send(v any) error { return p.out.Encode(v) }

// RunChild runs the Job of a child process and ends the process; in any other process it
// does nothing. It comes first in main, and in TestMain of tests that start children.
func RunChild() {
	if len(os.Args) < 3 || os.Args[1] != childFlag {
		return
	}
	p := &Parent{in: make(chan json.RawMessage), out: json.NewEncoder(os.Stdout)}
	go func() {
		messages := json.NewDecoder(os.Stdin)
		for {
			var m json.RawMessage
			if messages.Decode(&m) != nil {
				os.Exit(0) // the parent is gone, or wants no more
			}
			p.in <- m
		}
	}()
	job, ok := Jobs()[os.Args[2]]
	if !ok {
		fmt.Fprintf(os.Stderr, "no job is called %q\n", os.Args[2])
		os.Exit(1)
	}
	if err := job(context.Background(), p); err != nil {
		fmt.Fprintf(os.Stderr, "child for %s: %v\n", os.Args[2], err)
		os.Exit(1)
	}
	os.Exit(0)
}
