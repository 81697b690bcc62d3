package lock

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/once"
)

// The JSON documents of locks, by the rules of those of semaphores.
type (
	showLockDocument struct {
		Namespace string               `json:"namespace"`
		Name      string               `json:"name"`
		Held      bool                 `json:"held"`
		Owner     string               `json:"owner"`
		Fence     int64                `json:"fence"`
		LeftMs    *int64               `json:"leftMs"`
		Pause     *berth.Pause         `json:"pause,omitempty"`
		Reentry   reentryDocument      `json:"reentry"`
		Entries   []app.HolderDocument `json:"entries"`
		Waiters   []app.WaiterDocument `json:"waiters"`
		Once      *once.Last           `json:"once,omitempty"` // absent where no runs are known
		GoesOn    bool                 `json:"goesOn,omitempty"`
	}
	reentryDocument struct {
		Count           int        `json:"count"`
		WorkedThroughAt *time.Time `json:"workedThroughAt"` // null for never
		ExtendedMs      int64      `json:"extendedMs"`
		LastLeaseMs     int64      `json:"lastLeaseMs"`
		ExtendedAt      *time.Time `json:"extendedAt"` // null for never
	}
	queueDocument struct {
		Namespace string               `json:"namespace"`
		Name      string               `json:"name"`
		Waiters   []app.WaiterDocument `json:"waiters"`
	}
	extendDocument struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Fence     int64  `json:"fence"`
		ByMs      int64  `json:"byMs"`
		LeftMs    *int64 `json:"leftMs"`
	}
)

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
		return app.PrintDocument(a.Out, showDocument(a, s, most))
	}
	l, says := lockOf(s.Name), "free"
	if s.Lock != nil {
		says = fmt.Sprintf("held for %s, %s left", text.Human(s.Oldest), text.Human(l.Left))
	}
	fmt.Fprintf(a.Out, "%s: %s, waiting %d\n", text.Plain(s.Name.Name), says, len(s.waiters))
	fmt.Fprint(a.Out, app.PauseText(s.Pause))
	if l.Reentries > 0 {
		fmt.Fprintf(a.Out, "re-entered %s", often(l.Reentries))
		if l.Extended > 0 {
			fmt.Fprintf(a.Out, ", extended by %s", text.Human(l.Extended))
		}
		fmt.Fprintln(a.Out)
	}
	return cmp.Or(a.PrintClaims(s.entries, s.waiters, false, most), s.runs.print(a))
}

func showDocument(a *app.App, s *shown, most int) showLockDocument {
	l := lockOf(s.Name)
	entries, _ := app.First(s.entries, most)
	waiters, _ := app.First(s.waiters, most)
	document := showLockDocument{
		Namespace: a.Namespace, Name: s.Name.Name, Held: s.Lock != nil, Owner: l.Owner, LeftMs: app.Millis(l.Left), Pause: s.Pause,
		Reentry: reentryDocument{
			l.Reentries, instant(l.WorkedThroughAt), l.Extended.Milliseconds(), l.LastLease.Milliseconds(), instant(l.ExtendedAt),
		},
		Entries: app.HolderDocuments(entries, false), Waiters: app.WaiterDocuments(waiters, false), GoesOn: s.runs.goesOn,
	}
	if s.runs.known() {
		document.Once = &s.runs.Last
	}
	if s.Lock != nil {
		document.Fence = s.Fence
	}
	return document
}

func often(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// instant is a moment in a JSON document: the server's, null for never.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func printQueue(a *app.App, name string, waiters []berth.Waiter, most int) error {
	if a.JSON {
		waiters, _ = app.First(waiters, most)
		return app.PrintDocument(a.Out, queueDocument{a.Namespace, name, app.WaiterDocuments(waiters, false)})
	}
	if len(waiters) == 0 {
		_, err := fmt.Fprintf(a.Out, "Nobody waits for lock %s in namespace %s.\n", text.Plain(name), text.Plain(a.Namespace))
		return err
	}
	return app.WaiterTable(a.Out, waiters, false, most)
}

func printExtended(a *app.App, name string, by, left time.Duration, fence int64) error {
	if a.JSON {
		return app.PrintDocument(a.Out, extendDocument{a.Namespace, name, fence, by.Milliseconds(), app.Millis(left)})
	}
	_, err := fmt.Fprintf(a.Out, "%s: extended by %s, %s left\n", text.Plain(name), text.Human(by), text.Human(left))
	return err
}
