package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth"
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
		Namespace string           `json:"namespace"`
		Name      string           `json:"name"`
		Held      bool             `json:"held"`
		Owner     string           `json:"owner"`
		Fence     int64            `json:"fence"`
		LeftMs    *int64           `json:"leftMs"`
		Reentry   reentryDocument  `json:"reentry"`
		Entries   []holderDocument `json:"entries"`
		Waiters   []waiterDocument `json:"waiters"`
	}
	reentryDocument struct {
		Count           int        `json:"count"`
		WorkedThroughAt *time.Time `json:"workedThroughAt"` // null for never
		ExtendedMs      int64      `json:"extendedMs"`
		LastLeaseMs     int64      `json:"lastLeaseMs"`
		ExtendedAt      *time.Time `json:"extendedAt"` // null for never
	}
	queueDocument struct {
		Namespace string           `json:"namespace"`
		Name      string           `json:"name"`
		Waiters   []waiterDocument `json:"waiters"`
	}
	extendDocument struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Fence     int64  `json:"fence"`
		ByMs      int64  `json:"byMs"`
		LeftMs    *int64 `json:"leftMs"`
	}
)

func (a *app) printLocks(all []lockState, most int) error {
	if a.json {
		all, _ = first(all, most)
		document := locksDocument{Namespace: a.namespace, Locks: []lockDocument{}}
		for _, i := range all {
			outer := i.Entries[0]
			document.Locks = append(document.Locks, lockDocument{
				i.Name, i.Owner, outer.Label, i.Fence, outer.Held.Milliseconds(), millis(i.Left), len(i.Entries), i.Waiting,
			})
		}
		return printJSON(a.out, document)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(a.out, "No lock is held in namespace %s.\n", plain(a.namespace))
		return err
	}
	rows := make([][]string, 0, len(all))
	for _, i := range all {
		outer := i.Entries[0]
		rows = append(rows, []string{
			plain(i.Name), strconv.FormatInt(i.Fence, 10), human(outer.Held), human(i.Left),
			strconv.Itoa(len(i.Entries)), strconv.Itoa(i.Waiting), plain(outer.Owner), plain(outer.Label),
		})
	}
	return limited(a.out, []string{"NAME", "FENCE", "HELD", "LEFT", "ENTRIES", "WAITING", "OWNER", "LABEL"}, rows, most)
}

func (a *app) printLock(i lockState, waiters []berth.Waiter, most int) error {
	if a.json {
		entries, _ := first(i.Entries, most)
		waiters, _ = first(waiters, most)
		return printJSON(a.out, showLockDocument{
			Namespace: a.namespace, Name: i.Name, Held: i.Held(), Owner: i.Owner, Fence: i.Fence, LeftMs: millis(i.Left),
			Reentry: reentryDocument{
				i.Reentry.Count, instant(i.Reentry.WorkedThroughAt), i.Reentry.Extended.Milliseconds(),
				i.Reentry.LastLease.Milliseconds(), instant(i.Reentry.ExtendedAt),
			},
			Entries: holderDocuments(entries, false), Waiters: waiterDocuments(waiters, false),
		})
	}
	text := "free"
	if i.Held() {
		text = fmt.Sprintf("held for %s, %s left", human(i.Entries[0].Held), human(i.Left))
	}
	fmt.Fprintf(a.out, "%s: %s, waiting %d\n", plain(i.Name), text, len(waiters))
	if i.Reentry.Count > 0 {
		fmt.Fprintf(a.out, "re-entered %s", often(i.Reentry.Count))
		if i.Reentry.Extended > 0 {
			fmt.Fprintf(a.out, ", extended by %s", human(i.Reentry.Extended))
		}
		fmt.Fprintln(a.out)
	}
	return a.printClaims(i.Entries, waiters, false, most)
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

func (a *app) printQueue(name string, waiters []berth.Waiter, most int) error {
	if a.json {
		waiters, _ = first(waiters, most)
		return printJSON(a.out, queueDocument{a.namespace, name, waiterDocuments(waiters, false)})
	}
	if len(waiters) == 0 {
		_, err := fmt.Fprintf(a.out, "Nobody waits for lock %s in namespace %s.\n", plain(name), plain(a.namespace))
		return err
	}
	return waiterTable(a.out, waiters, false, most)
}

func (a *app) printExtended(name string, by, left time.Duration, fence int64) error {
	if a.json {
		return printJSON(a.out, extendDocument{a.namespace, name, fence, by.Milliseconds(), millis(left)})
	}
	_, err := fmt.Fprintf(a.out, "%s: extended by %s, %s left\n", plain(name), human(by), human(left))
	return err
}
