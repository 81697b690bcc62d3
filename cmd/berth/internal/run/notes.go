package run

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
)

// notes prints lines for the user without ever blocking the sender: a renewal or a kill may be
// due while nobody reads our stderr.
type notes struct {
	out  io.Writer
	done chan struct{} // closed when the last line is printed

	mu     sync.Mutex
	lines  chan string // guarded by mu
	closed bool        // guarded by mu
}

func newNotes(out io.Writer) *notes {
	n := &notes{out: out, lines: make(chan string, 64), done: make(chan struct{})}
	go func() {
		defer close(n.done)
		for line := range n.lines {
			fmt.Fprintln(n.out, line)
		}
	}()
	return n
}

// say prints a line, or drops it where too many wait to be read.
func (n *notes) say(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	select {
	case n.lines <- app.OneLine(fmt.Sprintf(format, args...)):
	default:
	}
}

// close prints what has been said, unless nobody reads it.
func (n *notes) close() {
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		close(n.lines)
	}
	n.mu.Unlock()
	select {
	case <-n.done:
	case <-time.After(time.Second):
	}
}

// place is where a claim waits: for a name, or for one resource of it.
func place(name, resource string) string {
	if resource != "" {
		return fmt.Sprintf("resource %s of %q", view.Key(resource), name)
	}
	return strconv.Quote(name)
}

// observer says of a node's events what the user of one command has to know.
func (n *notes) observer(quiet bool) observe.Observer {
	watched := app.IsTerminal(n.out) && !quiet
	return observe.Func(func(e observe.Event) {
		switch e.Kind {
		case observe.Queued:
			if e.Primitive == string(keyspace.Pool) && e.Capacity == 0 {
				n.say("warning: the pool %q has no resources; waiting until it has", e.Name) // a typing error waits for ever
			} else if watched {
				n.say("waiting for %s, %d ahead in line", place(e.Name, e.Resource), e.Ahead)
			}
		case observe.CapacityDiffers:
			n.say("warning: the capacity of %q is %d, and not %d; the stored one counts", e.Name, e.Capacity, e.Count)
		case observe.Damaged:
			n.say("warning: what is stored of %s in %q is damaged: nobody gets it until it is removed or added again", e.Resource, e.Name)
		case observe.Unavailable:
			n.say("warning: for %s now the server has not answered for %q, or has refused; it is asked again: %v",
				e.Silent.Round(time.Second), e.Name, e.Err)
		}
	})
}
