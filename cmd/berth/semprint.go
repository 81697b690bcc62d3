package main

import (
	"fmt"
	"strconv"

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
			plain(s.Name), strconv.Itoa(s.Capacity), strconv.Itoa(s.Held), strconv.Itoa(s.Available()), strconv.Itoa(s.Holders), strconv.Itoa(s.Waiting),
		})
	}
	return limited(a.out, []string{"NAME", "CAPACITY", "HELD", "FREE", "HOLDERS", "WAITING"}, rows, most)
}

func (a *app) printSemaphore(s semaphore.Stats, holders []berth.Holder, waiters []berth.Waiter, most int) error {
	if a.json {
		holders, _ = first(holders, most)
		waiters, _ = first(waiters, most)
		return printJSON(a.out, a.shown(s, holders, waiters))
	}
	fmt.Fprintf(a.out, "%s: capacity %d, held %d, free %d, waiting %d\n",
		plain(s.Name), s.Capacity, s.Held, s.Available(), s.Waiting)
	return a.printClaims(holders, waiters, true, most)
}

func (a *app) shown(s semaphore.Stats, holders []berth.Holder, waiters []berth.Waiter) showDocument {
	return showDocument{
		Namespace: a.namespace, Name: s.Name, Capacity: s.Capacity, Held: s.Held, Free: s.Available(),
		Holders: holderDocuments(holders, true), Waiters: waiterDocuments(waiters, true),
	}
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
