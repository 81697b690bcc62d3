package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/view"
)

// printed is what comes to a terminal until a mark, of which each is printed once.
func printed(t *testing.T, master *os.File, mark string) string {
	t.Helper()
	var all []byte
	for !bytes.Contains(all, []byte(mark)) {
		some := make([]byte, 4096)
		n, err := master.Read(some)
		require.NoError(t, err)
		all = append(all, some[:n]...)
	}
	return strings.ReplaceAll(string(all), "\r\n", "\n")
}

func TestAPageStaysOnTheTerminalWhileNoServerAnswers(t *testing.T) {
	t.Setenv("TERM", "xterm")
	master, terminal := apptest.OpenTerminal(t)
	require.NoError(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 6, Col: 80}))
	a := app.New(terminal, io.Discard)
	next := app.Pages(a)
	const end = "\x1b[J\x1b[?7h"
	for _, step := range []struct {
		says string
		err  error
		want string
	}{
		{"one\ntwo\nthree\nfour\n", nil, "\x1b[2J\x1b[?7l\x1b[H* UTC, each 1s; Ctrl-C ends it.\x1b[K\n\x1b[K\none\x1b[K\ntwo\x1b[K\n... and 2 more lines\x1b[K\n" + end},
		{"", errors.New("no answer"), "\x1b[?7l\x1b[H* UTC, each 1s; Ctrl-C ends it.\x1b[K\nberth: no answer\x1b[K\n\x1b[K\none\x1b[K\n... and 3 more lines\x1b[K\n" + end},
		{"", app.Exit(app.ExitFailed, errors.New("it is free")), "\x1b[?7l\x1b[H* UTC, each 1s; Ctrl-C ends it.\x1b[K\nberth: it is free\x1b[K\n\x1b[K\n\x1b[K\n" + end},
		{"free again\n", nil, "\x1b[?7l\x1b[H* UTC, each 1s; Ctrl-C ends it.\x1b[K\n\x1b[K\nfree again\x1b[K\n" + end},
	} {
		wait, err := next(t.Context(), func(context.Context) error {
			fmt.Fprint(a.Out, step.says)
			return step.err
		})
		require.NoError(t, err)
		require.Positive(t, wait)
		got := printed(t, master, end)
		at := strings.Index(got, " UTC")
		require.Equal(t, step.want, got[:at-len("15:04:05")]+"*"+got[at:])
	}
}

func TestPagesStandBelowEachOtherWhereNoTerminalIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errs bytes.Buffer
		a := app.New(&out, &errs)
		next := app.Pages(a)
		page := func(err error, took time.Duration) time.Duration {
			wait, failed := next(t.Context(), func(context.Context) error {
				fmt.Fprintln(a.Out, "a page")
				<-time.After(took)
				return err
			})
			require.NoError(t, failed)
			return wait
		}
		require.Equal(t, 900*time.Millisecond, page(nil, 100*time.Millisecond))
		require.Equal(t, 1800*time.Millisecond, page(errors.New("no answer"), 200*time.Millisecond), "it rests longer than it reads")
		require.Regexp(t, `^(20\S+Z\na page\n\n){2}$`, out.String())
		require.Equal(t, "berth: no answer\n", errs.String())
		_, err := next(t.Context(), func(context.Context) error { return berth.Invalid("NAME", "no") })
		require.ErrorIs(t, err, berth.ErrInvalidConfig, "the next page would say the same")
	})
}

func TestATableHasColorsThatSayNothingMore(t *testing.T) {
	t.Setenv("TERM", "xterm")
	master, terminal := apptest.OpenTerminal(t)
	for _, colors := range []bool{true, false} {
		a := app.New(terminal, io.Discard)
		a.NoColor = !colors
		columns := view.Columns[view.Cell]{
			{Head: "DOES", Cell: func(c *view.Cell) view.Cell { return (*c)[1:] }}, {Head: "FOR", Cell: func(c *view.Cell) view.Cell { return (*c)[:1] }},
		}
		require.NoError(t, app.Limited(a, columns, []view.Cell{
			{{Says: "1s"}, {Says: "holds", Look: view.Good}, {Says: "dead", Look: view.Bad}}, {{Says: "2s"}, {Says: "waits", Look: view.Busy}},
		}, 0))
		want := "DOES          FOR\n\x1b[32mholds\x1b[m, \x1b[31mdead\x1b[m   1s\n\x1b[33mwaits\x1b[m         2s\n"
		if !colors {
			want = "DOES          FOR\nholds, dead   1s\nwaits         2s\n"
		}
		require.Equal(t, want, printed(t, master, "2s\r\n"))
	}
}
