package lock

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
)

type extendDocument struct {
	Fence int64         `json:"fence"`
	By    time.Duration `json:"byMs"`
	Left  time.Duration `json:"leftMs"`
}

func printLocks(a *app.App, all []berth.Name, most int) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(a.Out, "No lock is held in namespace %s.\n", text.Plain(a.Namespace))
		return err
	}
	rows := make([][]string, 0, len(all))
	for _, n := range all {
		l := lockOf(n)
		owner := l.Owner
		if owner == l.Claim {
			owner = "" // none was given
		}
		rows = append(rows, []string{
			text.Plain(n.Name), strconv.FormatInt(n.Fence, 10), text.Human(n.Oldest), text.Human(l.Left),
			strconv.Itoa(n.Holders), strconv.Itoa(n.Waiting), text.Plain(owner), text.Plain(l.Label),
		})
	}
	heading, rows := app.PausedColumn(all, []string{"NAME", "FENCE", "HELD", "LEFT", "ENTRIES", "WAITING", "OWNER", "LABEL"}, rows)
	return app.Limited(a.Out, heading, rows, most)
}

// lockOf is who has a lock: nobody, of one that is only paused.
func lockOf(n berth.Name) berth.LockInfo {
	if n.Lock == nil {
		return berth.LockInfo{}
	}
	return *n.Lock
}

func printLock(a *app.App, s *shown, most int) error {
	if a.JSON {
		return app.PrintShown(a, s.ShowDocument, most)
	}
	l, says := lockOf(s.Name), "free"
	if s.Lock != nil {
		says = fmt.Sprintf("held for %s, %s left", text.Human(s.Oldest), text.Human(l.Left))
	}
	fmt.Fprintf(a.Out, "%s: %s, waiting %d\n", text.Plain(s.Name.Name), says, len(s.Waiters))
	fmt.Fprint(a.Out, app.PauseText(s.Pause))
	if l.Reentries > 0 {
		fmt.Fprintf(a.Out, "re-entered %s", often(l.Reentries))
		if l.Extended > 0 {
			fmt.Fprintf(a.Out, ", extended by %s", text.Human(l.Extended))
		}
		fmt.Fprintln(a.Out)
	}
	return cmp.Or(a.PrintClaims(s.HeldBy, s.Waiters, false, most), s.printRuns(a))
}

func often(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

func printQueue(a *app.App, name string, waiters inspect.Page[berth.Waiter], most int) error {
	if a.JSON {
		return app.PrintPage(a, name, waiters, most)
	}
	if len(waiters.Items) == 0 {
		_, err := fmt.Fprintf(a.Out, "Nobody waits for lock %s in namespace %s.\n", text.Plain(name), text.Plain(a.Namespace))
		return err
	}
	return app.WaiterTable(a.Out, waiters.Items, false, most)
}

func printExtended(a *app.App, name string, by, left time.Duration, fence int64) error {
	if a.JSON {
		return app.PrintJSON(a, name, extendDocument{fence, by, left})
	}
	_, err := fmt.Fprintf(a.Out, "%s: extended by %s, %s left\n", text.Plain(name), text.Human(by), text.Human(left))
	return err
}
