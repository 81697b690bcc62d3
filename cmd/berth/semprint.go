package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
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
	}
	listDocument struct {
		Namespace  string        `json:"namespace"`
		Semaphores []semDocument `json:"semaphores"`
	}
	showDocument struct {
		Namespace string           `json:"namespace"`
		Name      string           `json:"name"`
		Capacity  int              `json:"capacity"`
		Held      int              `json:"held"`
		Free      int              `json:"free"`
		Holders   []holderDocument `json:"holders"`
		Waiters   []waiterDocument `json:"waiters"`
	}
	holderDocument struct {
		ID        string            `json:"id"`
		Node      string            `json:"node"`
		Label     string            `json:"label"`
		Owner     string            `json:"owner"`
		Weight    int               `json:"weight,omitempty"` // only semaphores have it
		Fence     int64             `json:"fence"`
		LeaseMs   *int64            `json:"leaseMs"`
		LeftMs    *int64            `json:"leftMs"`
		NoRenew   bool              `json:"noRenew"`
		MaxHoldMs int64             `json:"maxHoldMs"`
		Granted   time.Time         `json:"granted"`
		HeldMs    int64             `json:"heldMs"`
		Detached  bool              `json:"detached"`
		Meta      map[string]string `json:"meta"`
	}
	waiterDocument struct {
		ID       string            `json:"id"`
		Node     string            `json:"node"`
		Label    string            `json:"label"`
		Owner    string            `json:"owner"`
		Weight   int               `json:"weight,omitempty"` // only semaphores have it
		Priority int               `json:"priority"`
		Ahead    int               `json:"ahead"`
		Since    time.Time         `json:"since"`
		WaitedMs int64             `json:"waitedMs"`
		AliveMs  int64             `json:"aliveMs"`
		Meta     map[string]string `json:"meta"`
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

func (a *app) printList(all []semaphore.Stats, most int) error {
	if a.json {
		all, _ = first(all, most)
		document := listDocument{Namespace: a.namespace, Semaphores: []semDocument{}}
		for _, s := range all {
			document.Semaphores = append(document.Semaphores,
				semDocument{s.Name, s.Capacity, s.Held, s.Available(), s.Holders, s.Waiting})
		}
		return printJSON(a.out, document)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(a.out, "No semaphore is in use in namespace %s.\n", plain(a.namespace))
		return err
	}
	rows := make([][]string, 0, len(all))
	for _, s := range all {
		rows = append(rows, []string{
			plain(s.Name), itoa(s.Capacity), itoa(s.Held), itoa(s.Available()), itoa(s.Holders), itoa(s.Waiting),
		})
	}
	return limited(a.out, []string{"NAME", "CAPACITY", "HELD", "FREE", "HOLDERS", "WAITING"}, rows, most)
}

func (a *app) printSemaphore(s semaphore.Stats, holders []berth.Holder, waiters []berth.Waiter, most int) error {
	if a.json {
		holders, _ = first(holders, most)
		waiters, _ = first(waiters, most)
		return printJSON(a.out, a.showDocument(s, holders, waiters))
	}
	fmt.Fprintf(a.out, "%s: capacity %d, held %d, free %d, waiting %d\n",
		plain(s.Name), s.Capacity, s.Held, s.Available(), s.Waiting)
	return a.printClaims(holders, waiters, true, most)
}

// printClaims shows who holds and who waits; weights only semaphores have.
func (a *app) printClaims(holders []berth.Holder, waiters []berth.Waiter, weights bool, most int) error {
	if len(holders) > 0 {
		fmt.Fprintln(a.out, "\nHeld by")
		if err := holderTable(a.out, holders, weights, most); err != nil {
			return err
		}
	}
	if len(waiters) > 0 {
		fmt.Fprintln(a.out, "\nWaiting in line")
		return waiterTable(a.out, waiters, weights, most)
	}
	return nil
}

func holderTable(out io.Writer, holders []berth.Holder, weights bool, most int) error {
	rows := make([][]string, 0, len(holders))
	for _, h := range holders {
		rows = append(rows, holderRow(h, weights))
	}
	return limited(out, holderHeading(weights), rows, most)
}

func holderHeading(weights bool) []string {
	return weighed(weights, []string{"FENCE", "WEIGHT", "HELD", "LEASE", "LEFT", "OWNER", "LABEL", "CLAIM"})
}

func holderRow(h berth.Holder, weights bool) []string {
	lease := human(h.Lease)
	switch {
	case h.Detached:
		lease += " detached"
	case h.NoRenew:
		lease += " fixed"
	}
	if h.MaxHold != 0 {
		lease += ", at most " + human(h.MaxHold)
	}
	return weighed(weights, []string{
		strconv.FormatInt(h.Fence, 10), itoa(h.Weight), human(h.Held), lease, human(h.Left),
		plain(h.Owner), plain(h.Label), plain(h.ID),
	})
}

func waiterTable(out io.Writer, waiters []berth.Waiter, weights bool, most int) error {
	rows := make([][]string, 0, len(waiters))
	for _, w := range waiters {
		rows = append(rows, weighed(weights, []string{
			itoa(w.Ahead), itoa(w.Weight), itoa(w.Priority), human(w.Waited), human(w.Alive),
			plain(w.Owner), plain(w.Label), plain(w.ID),
		}))
	}
	return limited(out, weighed(weights, []string{"AHEAD", "WEIGHT", "PRIORITY", "WAITED", "ALIVE", "OWNER", "LABEL", "CLAIM"}), rows, most)
}

// weighed leaves the weight, the second cell, out of a row that is to have none.
func weighed(weights bool, row []string) []string {
	if weights {
		return row
	}
	return slices.Delete(row, 1, 2)
}

func (a *app) showDocument(s semaphore.Stats, holders []berth.Holder, waiters []berth.Waiter) showDocument {
	return showDocument{
		Namespace: a.namespace, Name: s.Name, Capacity: s.Capacity, Held: s.Held, Free: s.Available(),
		Holders: holderDocuments(holders, true), Waiters: waiterDocuments(waiters, true),
	}
}

// holderDocuments is never nil, so that JSON has a list.
func holderDocuments(holders []berth.Holder, weights bool) []holderDocument {
	documents := make([]holderDocument, len(holders))
	for i, h := range holders {
		documents[i] = holderDocument{
			ID: h.ID, Node: h.Node, Label: h.Label, Owner: h.Owner, Weight: h.Weight, Fence: h.Fence,
			LeaseMs: millis(h.Lease), LeftMs: millis(h.Left), NoRenew: h.NoRenew,
			MaxHoldMs: h.MaxHold.Milliseconds(), Granted: h.Granted.UTC(), HeldMs: h.Held.Milliseconds(),
			Detached: h.Detached, Meta: meta(h.Meta),
		}
		if !weights {
			documents[i].Weight = 0
		}
	}
	return documents
}

// waiterDocuments is never nil, so that JSON has a list.
func waiterDocuments(waiters []berth.Waiter, weights bool) []waiterDocument {
	documents := make([]waiterDocument, len(waiters))
	for i, w := range waiters {
		documents[i] = waiterDocument{
			ID: w.ID, Node: w.Node, Label: w.Label, Owner: w.Owner, Weight: w.Weight, Priority: w.Priority,
			Ahead: w.Ahead, Since: w.Since.UTC(), WaitedMs: w.Waited.Milliseconds(),
			AliveMs: w.Alive.Milliseconds(), Meta: meta(w.Meta),
		}
		if !weights {
			documents[i].Weight = 0
		}
	}
	return documents
}

// meta is never null.
func meta(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func (a *app) printResized(name string, before, capacity int, kept bool) error {
	idle := resizeLinger
	if kept {
		idle = berth.Forever
	}
	if a.json {
		return printJSON(a.out, resizeDocument{a.namespace, name, capacity, before, kept, millis(idle)})
	}
	text := fmt.Sprintf("%s: capacity %d", plain(name), capacity)
	switch {
	case before == 0:
		text += ", created"
	case before != capacity:
		text += fmt.Sprintf(", was %d", before)
	}
	stay := "kept for good"
	if !kept {
		stay = "forgotten when idle for " + human(idle) + ", unless --keep is given"
	}
	_, err := fmt.Fprintf(a.out, "%s; %s\n", text, stay)
	return err
}
