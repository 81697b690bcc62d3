package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
)

// restShare bounds how much of the time a command reads that is repeated: it rests that many times as long as it has read.
const restShare = 9

// Watch lets a command be repeated with --watch: each so often, and no more often than every. It is called last, when all else
// of the command is set.
func (a *App) Watch(cmd *cobra.Command, every time.Duration) {
	var span time.Duration
	TimeVar(cmd.Flags(), &span, "watch", 0, fmt.Sprintf("look again and again until Ctrl-C, each `D`: at least %s, which it is without =D; with --json one document a line", every))
	cmd.Flags().Lookup("watch").NoOptDefVal = every.String()
	once := cmd.RunE
	cmd.RunE = a.Runs(func(cmd *cobra.Command, args []string) error {
		switch {
		case !cmd.Flags().Changed("watch"):
			return once(cmd, args)
		case span < every:
			return berth.Invalid("--watch", "%s is less than %s", span, every)
		case a.form == namesForm:
			return berth.Invalid("--watch", "it is not for -o name")
		}
		return a.repeat(cmd.Context(), span, func(ctx context.Context) error {
			cmd.SetContext(ctx)
			return once(cmd, args)
		})
	})
}

// repeat has a command print its page again and again until somebody ends it: on a terminal in place, else one below the other.
// All of them use one connection.
func (a *App) repeat(ctx context.Context, every time.Duration, once func(context.Context) error) error {
	a.repeated = true
	return a.untilEnded(ctx, func(ctx context.Context) error {
		c, err := a.connect(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		c.kept, a.kept = true, c
		p := repeats{a: a, every: every, errs: a.Err}
		for {
			wait, err := p.next(ctx, once)
			if err != nil {
				return err
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	})
}

// repeats prints what a command prints that is repeated.
type repeats struct {
	a     *App
	every time.Duration
	errs  io.Writer
	drawn bool   // a page is on the terminal
	last  []byte // likewise: what a server has told last
}

// next prints a page, and says how long to wait for the next one. An error that the next page would have, too, ends it.
func (p *repeats) next(ctx context.Context, once func(context.Context) error) (time.Duration, error) {
	a, began, terminal := p.a, time.Now(), Capable() && IsTerminal(p.a.Out.Writer)
	a.Out.page = &bytes.Buffer{}
	if terminal {
		a.Err = a.Out.page
	}
	err := once(ctx)
	page := a.Out.page.Bytes()
	a.Out.page, a.Err = nil, p.errs
	took := time.Since(began)
	switch {
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case CodeOf(err) == exitUsage:
		return 0, err
	case terminal:
		p.draw(page, err)
	case len(page) > 0 && !a.JSON:
		fmt.Fprintf(a.Out, "%s\n%s\n", time.Now().UTC().Format(time.RFC3339), page)
		a.tell(err)
	default:
		_, _ = a.Out.Write(page)
		a.tell(err)
	}
	return max(p.every-took, restShare*took), a.Out.err
}

// draw draws a page on a terminal in place of the last one, of which it leaves as much as a server has told if none answers now.
// The terminal is told to break no line.
func (p *repeats) draw(page []byte, err error) {
	if !p.drawn {
		_, _ = io.WriteString(p.a.Out, "\x1b[2J")
	}
	if !p.drawn || !Unavailable(err) {
		p.drawn, p.last = true, page
	}
	lines := []string{fmt.Sprintf("%s UTC, each %s; Ctrl-C ends it.", time.Now().UTC().Format(time.TimeOnly), text.Human(p.every))}
	if says := said(err); says != "" {
		lines = append(lines, says)
	}
	lines = append(append(lines, ""), strings.Split(strings.TrimRight(string(p.last), "\n"), "\n")...)
	if _, height, err := term.GetSize(int(p.a.Out.File().Fd())); err == nil && len(lines) >= height && height > 2 {
		lines = append(lines[:height-2], fmt.Sprintf("... and %d more lines", len(lines)-height+2))
	}
	_, _ = fmt.Fprintf(p.a.Out, "\x1b[?7l\x1b[H%s\x1b[K\n\x1b[J\x1b[?7h", strings.Join(lines, "\x1b[K\n"))
}
