//go:build unix

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A console is where the suite talks to a person: whole lines, each with the time since
// the beginning. Its methods may be called at the same time.
type console struct {
	mu    sync.Mutex
	w     io.Writer
	begun time.Time
	last  time.Time // when something was said
}

func newConsole(w io.Writer) *console {
	now := time.Now()
	return &console{w: w, begun: now, last: now}
}

// line says one thing of a step.
func (c *console) line(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	fmt.Fprintf(c.w, "%6s  %s\n", round(c.last.Sub(c.begun)), fmt.Sprintf(format, args...))
}

// block prints text as it is, below a line that nothing else can come behind.
func (c *console) block(title, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	fmt.Fprintf(c.w, "%6s  %s\n", round(c.last.Sub(c.begun)), title)
	if text != "" {
		fmt.Fprint(c.w, strings.TrimRight(text, "\n"), "\n")
	}
}

// print prints text as it is.
func (c *console) print(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = time.Now()
	fmt.Fprint(c.w, text)
}

// silent returns for how long nothing was said.
func (c *console) silent() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.last)
}

// round returns a time as a person reads it.
func round(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	default:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
}
