package lock

import (
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
)

// The JSON documents of locks, by the rules of those of semaphores.
type (
	lockDocument struct {
		Name    string `json:"name"`
		Owner   string `json:"owner"` // the claim's id where none was given
		Label   string `json:"label"`
		Fence   int64  `json:"fence"`
		HeldMs  int64  `json:"heldMs"`
		LeftMs  *int64 `json:"leftMs"`
		Entries int    `json:"entries"`
		Waiting int    `json:"waiting"`
	}
	locksDocument struct {
		Namespace string         `json:"namespace"`
		Locks     []lockDocument `json:"locks"`
	}
	showLockDocument struct {
		Namespace string               `json:"namespace"`
		Name      string               `json:"name"`
		Held      bool                 `json:"held"`
		Owner     string               `json:"owner"`
		Fence     int64                `json:"fence"`
		LeftMs    *int64               `json:"leftMs"`
		Reentry   reentryDocument      `json:"reentry"`
		Entries   []app.HolderDocument `json:"entries"`
		Waiters   []app.WaiterDocument `json:"waiters"`
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

func printLocks(a *app.App, all []app.LockState, most int) error {
	if a.JSON {
		all, _ = app.First(all, most)
		document := locksDocument{Namespace: a.Namespace, Locks: []lockDocument{}}
		for _, i := range all {
			outer := i.Entries[0]
			document.Locks = append(document.Locks, lockDocument{
				i.Name, i.Owner, outer.Label, i.Fence, outer.Held.Milliseconds(), app.Millis(i.Left), len(i.Entries), i.Waiting,
			})
		}
		return app.PrintJSON(a.Out, document)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(a.Out, "No lock is held in namespace %s.\n", text.Plain(a.Namespace))
		return err
	}
	rows := make([][]string, 0, len(all))
	for _, i := range all {
		outer := i.Entries[0]
		rows = append(rows, []string{
			text.Plain(i.Name), strconv.FormatInt(i.Fence, 10), text.Human(outer.Held), text.Human(i.Left),
			strconv.Itoa(len(i.Entries)), strconv.Itoa(i.Waiting), text.Plain(outer.Owner), text.Plain(outer.Label),
		})
	}
	return app.Limited(a.Out, []string{"NAME", "FENCE", "HELD", "LEFT", "ENTRIES", "WAITING", "OWNER", "LABEL"}, rows, most)
}

func printLock(a *app.App, i app.LockState, waiters []berth.Waiter, most int) error {
	if a.JSON {
		entries, _ := app.First(i.Entries, most)
		waiters, _ = app.First(waiters, most)
		return app.PrintJSON(a.Out, showLockDocument{
			Namespace: a.Namespace, Name: i.Name, Held: i.Held(), Owner: i.Owner, Fence: i.Fence, LeftMs: app.Millis(i.Left),
			Reentry: reentryDocument{
				i.Reentry.Count, instant(i.Reentry.WorkedThroughAt), i.Reentry.Extended.Milliseconds(),
				i.Reentry.LastLease.Milliseconds(), instant(i.Reentry.ExtendedAt),
			},
			Entries: app.HolderDocuments(entries, false), Waiters: app.WaiterDocuments(waiters, false),
		})
	}
	says := "free"
	if i.Held() {
		says = fmt.Sprintf("held for %s, %s left", text.Human(i.Entries[0].Held), text.Human(i.Left))
	}
	fmt.Fprintf(a.Out, "%s: %s, waiting %d\n", text.Plain(i.Name), says, len(waiters))
	if i.Reentry.Count > 0 {
		fmt.Fprintf(a.Out, "re-entered %s", often(i.Reentry.Count))
		if i.Reentry.Extended > 0 {
			fmt.Fprintf(a.Out, ", extended by %s", text.Human(i.Reentry.Extended))
		}
		fmt.Fprintln(a.Out)
	}
	return a.PrintClaims(i.Entries, waiters, false, most)
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
		return app.PrintJSON(a.Out, queueDocument{a.Namespace, name, app.WaiterDocuments(waiters, false)})
	}
	if len(waiters) == 0 {
		_, err := fmt.Fprintf(a.Out, "Nobody waits for lock %s in namespace %s.\n", text.Plain(name), text.Plain(a.Namespace))
		return err
	}
	return app.WaiterTable(a.Out, waiters, false, most)
}

func printExtended(a *app.App, name string, by, left time.Duration, fence int64) error {
	if a.JSON {
		return app.PrintJSON(a.Out, extendDocument{a.Namespace, name, fence, by.Milliseconds(), app.Millis(left)})
	}
	_, err := fmt.Fprintf(a.Out, "%s: extended by %s, %s left\n", text.Plain(name), text.Human(by), text.Human(left))
	return err
}
