package sem

import (
	"fmt"
	"strconv"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
)

// The JSON documents. Their field names are promised; durations are whole
// milliseconds, null for one without end, and moments are the server's.
type (
	semDocument struct {
		Name     string `json:"name"`
		Capacity int    `json:"capacity"`
		Held     int    `json:"held"`
		Free     int    `json:"free"`
		Holders  int    `json:"holders"`
		Waiting  int    `json:"waiting"`

		Pause *berth.Pause `json:"pause,omitempty"`
	}
	listDocument struct {
		Namespace  string        `json:"namespace"`
		Semaphores []semDocument `json:"semaphores"`
	}
	showDocument struct {
		Namespace string               `json:"namespace"`
		Name      string               `json:"name"`
		Capacity  int                  `json:"capacity"`
		Held      int                  `json:"held"`
		Free      int                  `json:"free"`
		Pause     *berth.Pause         `json:"pause,omitempty"`
		Holders   []app.HolderDocument `json:"holders"`
		Waiters   []app.WaiterDocument `json:"waiters"`
	}
	resizeDocument struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Capacity  int    `json:"capacity"`
		Before    int    `json:"before"` // 0 where none was stored
		Kept      bool   `json:"kept"`
		IdleMs    *int64 `json:"idleMs"` // how long it stays when the semaphore is idle, null for good
	}
)

func printList(a *app.App, all []berth.Name, most int) error {
	if a.JSON {
		all, _ = app.First(all, most)
		document := listDocument{Namespace: a.Namespace, Semaphores: []semDocument{}}
		for _, s := range all {
			document.Semaphores = append(document.Semaphores,
				semDocument{s.Name, s.Capacity, s.Held, free(s), s.Holders, s.Waiting, s.Pause})
		}
		return app.PrintDocument(a.Out, document)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(a.Out, "No semaphore is in use in namespace %s.\n", text.Plain(a.Namespace))
		return err
	}
	rows := make([][]string, 0, len(all))
	for _, s := range all {
		rows = append(rows, []string{
			text.Plain(s.Name), strconv.Itoa(s.Capacity), strconv.Itoa(s.Held), strconv.Itoa(free(s)), strconv.Itoa(s.Holders), strconv.Itoa(s.Waiting),
		})
	}
	heading, rows := app.PausedColumn(all, []string{"NAME", "CAPACITY", "HELD", "FREE", "HOLDERS", "WAITING"}, rows)
	return app.Limited(a.Out, heading, rows, most)
}

// free is how much of the capacity is free.
func free(n berth.Name) int { return max(0, n.Capacity-n.Held) }

func printSemaphore(a *app.App, s berth.Name, holders []berth.Holder, waiters []berth.Waiter, most int) error {
	if a.JSON {
		holders, _ = app.First(holders, most)
		waiters, _ = app.First(waiters, most)
		return app.PrintDocument(a.Out, showDocumentOf(a, s, holders, waiters))
	}
	fmt.Fprintf(a.Out, "%s: capacity %d, held %d, free %d, waiting %d\n",
		text.Plain(s.Name), s.Capacity, s.Held, free(s), s.Waiting)
	fmt.Fprint(a.Out, app.PauseText(s.Pause))
	return a.PrintClaims(holders, waiters, true, most)
}

func showDocumentOf(a *app.App, s berth.Name, holders []berth.Holder, waiters []berth.Waiter) showDocument {
	return showDocument{
		Namespace: a.Namespace, Name: s.Name, Capacity: s.Capacity, Held: s.Held, Free: free(s), Pause: s.Pause,
		Holders: app.HolderDocuments(holders, true), Waiters: app.WaiterDocuments(waiters, true),
	}
}

func printResized(a *app.App, name string, before, capacity int, kept bool) error {
	idle := resizeLinger
	if kept {
		idle = berth.Forever
	}
	if a.JSON {
		return app.PrintDocument(a.Out, resizeDocument{a.Namespace, name, capacity, before, kept, app.Millis(idle)})
	}
	says := fmt.Sprintf("%s: capacity %d", text.Plain(name), capacity)
	switch {
	case before == 0:
		says += ", created"
	case before != capacity:
		says += fmt.Sprintf(", was %d", before)
	}
	stay := "kept for good"
	if !kept {
		stay = "forgotten when idle for " + text.Human(idle) + ", unless --keep is given"
	}
	_, err := fmt.Fprintf(a.Out, "%s; %s\n", says, stay)
	return err
}
