package lock

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

type extendDocument struct {
	Fence int64         `json:"fence"`
	By    time.Duration `json:"byMs"`
	Left  time.Duration `json:"leftMs"`
}

func printLock(a *app.App, s *shown, most int) error {
	if a.JSON {
		return app.PrintShown(a, s.ShowDocument, most)
	}
	says := "free"
	if s.Lock != nil {
		says = fmt.Sprintf("held for %s, %s left", text.Human(s.Oldest), text.Human(s.Lock.Left))
	}
	a.PrintHead(fmt.Sprintf("%s: %s, waiting %d", text.Plain(s.Name.Name), says, len(s.Waiters)), s.Pause)
	if l := s.Lock; l != nil && l.Reentries > 0 {
		fmt.Fprintf(a.Out, "re-entered %s", often(l.Reentries))
		if l.Extended > 0 {
			fmt.Fprintf(a.Out, ", extended by %s", text.Human(l.Extended))
		}
		fmt.Fprintln(a.Out)
	}
	return cmp.Or(a.PrintClaims(keyspace.Lock, s.Name.Name, s.HeldBy, s.Waiters, most), s.printRuns(a))
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
	return app.Limited(a.Out, app.InLine, view.ClaimsOf(keyspace.Lock, name, waiters.Items), most)
}

func printExtended(a *app.App, name string, by, left time.Duration, fence int64) error {
	if a.JSON {
		return app.PrintJSON(a, name, extendDocument{fence, by, left})
	}
	_, err := fmt.Fprintf(a.Out, "%s: extended by %s, %s left\n", text.Plain(name), text.Human(by), text.Human(left))
	return err
}
