package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// The JSON documents of pools, by the rules of those of semaphores. JSON has no
// text of any bytes: a key that is not UTF-8 has its bytes in base64 beside it.
type (
	poolDocument struct {
		Name      string `json:"name"`
		Resources int    `json:"resources"`
		Free      int    `json:"free"`
		Leased    int    `json:"leased"`
		Resting   int    `json:"resting"`
		Holders   int    `json:"holders"`
		Waiting   int    `json:"waiting"`
	}
	poolsDocument struct {
		Namespace string         `json:"namespace"`
		Pools     []poolDocument `json:"pools"`
	}
	resourceDocument struct {
		Resource string           `json:"resource"`
		Base64   []byte           `json:"base64,omitempty"` // only of a key that is not UTF-8
		State    string           `json:"state"`
		LeftMs   *int64           `json:"leftMs"` // of the lease or of the rest, 0 if free
		Reason   string           `json:"reason"` // why it rests
		ExpiryMs *int64           `json:"expiryMs"`
		Leaving  bool             `json:"leaving"`
		Sharers  int              `json:"maxSharers"`
		Holders  []holderDocument `json:"holders"`
	}
	showPoolDocument struct {
		Namespace string `json:"namespace"`
		poolDocument
		Listed  []resourceDocument `json:"listed"` // without --all not the free ones
		Waiters []waiterDocument   `json:"waiters"`
	}
	changeDocument struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Added     int    `json:"added"`
		Kept      int    `json:"kept"`
		Removed   int    `json:"removed"`
	}
	restDocument struct {
		Namespace string           `json:"namespace"`
		Name      string           `json:"name"`
		ForMs     *int64           `json:"forMs"`
		Resource  resourceDocument `json:"resource"`
	}
	inspectDocument struct {
		Namespace string `json:"namespace"`
		poolDocument
		Bindings int      `json:"bindings"`
		Moving   bool     `json:"moving"`
		Whole    bool     `json:"whole"`
		Problems []string `json:"problems"`
	}
)

func documentOf(s allocator.Stats) poolDocument {
	return poolDocument{s.Name, s.Resources, s.Free, s.Leased, s.Resting, s.Holders, s.Waiting}
}

func (a *app) printPools(all []allocator.Stats, most int) error {
	if a.json {
		all, _ = first(all, most)
		document := poolsDocument{Namespace: a.namespace, Pools: []poolDocument{}}
		for _, s := range all {
			document.Pools = append(document.Pools, documentOf(s))
		}
		return printJSON(a.out, document)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(a.out, "There is no pool in namespace %s.\n", plain(a.namespace))
		return err
	}
	rows := make([][]string, 0, len(all))
	for _, s := range all {
		rows = append(rows, []string{
			plain(s.Name), strconv.Itoa(s.Resources), strconv.Itoa(s.Free), strconv.Itoa(s.Leased), strconv.Itoa(s.Resting), strconv.Itoa(s.Holders), strconv.Itoa(s.Waiting),
		})
	}
	return limited(a.out, []string{"NAME", "RESOURCES", "FREE", "LEASED", "RESTING", "HOLDERS", "WAITING"}, rows, most)
}

// summary is a pool in one line.
func summary(s allocator.Stats) string {
	text := fmt.Sprintf("%s: %s, %d free, %d leased, %d resting", plain(s.Name), count(s.Resources, "resource"), s.Free, s.Leased, s.Resting)
	if s.Holders != s.Leased {
		text += fmt.Sprintf(", %d holders", s.Holders)
	}
	return text + fmt.Sprintf(", waiting %d", s.Waiting)
}

func (a *app) printPool(s allocator.Stats, resources []allocator.ResourceInfo, waiters []berth.Waiter, all bool, most int) error {
	if a.json {
		resources, _ = first(resources, most)
		waiters, _ = first(waiters, most)
		document := showPoolDocument{
			Namespace: a.namespace, poolDocument: documentOf(s),
			Listed: make([]resourceDocument, len(resources)), Waiters: waiterDocuments(waiters, false),
		}
		for i, info := range resources {
			document.Listed[i] = resourceDocumentOf(info)
		}
		return printJSON(a.out, document)
	}
	fmt.Fprintln(a.out, summary(s))
	if err := a.printLeased(resources, most); err != nil {
		return err
	}
	if err := a.printState(resources, allocator.Resting, "Resting", true, most); err != nil {
		return err
	}
	if err := a.printState(resources, allocator.Damaged, "Damaged", false, most); err != nil {
		return err
	}
	if all {
		if err := a.printState(resources, allocator.Free, "Free", false, most); err != nil {
			return err
		}
	}
	return a.printClaims(nil, waiters, false, most)
}

// stays is how long a resource stays in the pool.
func stays(info allocator.ResourceInfo) string {
	switch {
	case info.Leaving:
		return "leaves"
	case info.Expiry == 0:
		return "-"
	}
	return human(info.Expiry)
}

// sharersColumn is how many hold a resource and how many may, where that is worth a
// column.
type sharersColumn bool

func sharersOf(resources []allocator.ResourceInfo) sharersColumn {
	return sharersColumn(slices.ContainsFunc(resources, func(info allocator.ResourceInfo) bool { return info.MaxSharers > 1 }))
}

func (c sharersColumn) heading() []string {
	if !c {
		return nil
	}
	return []string{"SHARERS"}
}

func (c sharersColumn) of(info allocator.ResourceInfo) []string {
	if !c {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d", len(info.Holders), info.MaxSharers)}
}

// printLeased lists the holders of what is leased, one a line.
func (a *app) printLeased(resources []allocator.ResourceInfo, most int) error {
	var rows [][]string
	sharers := sharersOf(resources)
	for _, info := range resources {
		for _, h := range info.Holders {
			rows = append(rows, slices.Concat([]string{key(info.Resource), stays(info)}, sharers.of(info), holderRow(h, false)))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(a.out, "\nLeased to")
	return limited(a.out, slices.Concat([]string{"RESOURCE", "STAYS"}, sharers.heading(), holderHeading(false)), rows, most)
}

// printState lists the resources in one state.
func (a *app) printState(resources []allocator.ResourceInfo, state allocator.State, title string, ends bool, most int) error {
	var rows [][]string
	sharers := sharersOf(resources)
	heading := append([]string{"RESOURCE", "STAYS"}, sharers.heading()...)
	if ends {
		heading = append(heading, "LEFT", "REASON")
	}
	for _, info := range resources {
		if info.State != state {
			continue
		}
		row := append([]string{key(info.Resource), stays(info)}, sharers.of(info)...)
		if ends {
			row = append(row, human(info.Left), plain(info.Reason))
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintf(a.out, "\n%s\n", title)
	return limited(a.out, heading, rows, most)
}

func resourceDocumentOf(info allocator.ResourceInfo) resourceDocument {
	document := resourceDocument{
		Resource: info.Resource, State: string(info.State), LeftMs: millis(info.Left), Reason: info.Reason,
		Leaving: info.Leaving, Sharers: info.MaxSharers, Holders: holderDocuments(info.Holders, false),
	}
	if info.Expiry != 0 {
		document.ExpiryMs = millis(info.Expiry)
	}
	document.Base64 = base64Of(info.Resource)
	return document
}

func (a *app) printChange(name, verb string, sent int, change allocator.Change) error {
	if a.json {
		return printJSON(a.out, changeDocument{a.namespace, name, change.Added, change.Kept, change.Removed})
	}
	var text string
	switch verb {
	case "added":
		text = fmt.Sprintf("%d added, %d kept", change.Added, change.Kept)
	case "removed":
		text = fmt.Sprintf("%d removed", change.Removed)
		if missing := sent - change.Removed; missing > 0 {
			text += fmt.Sprintf(", %d not in the pool", missing)
		}
	default:
		text = fmt.Sprintf("%d added, %d kept, %d removed", change.Added, change.Kept, change.Removed)
	}
	_, err := fmt.Fprintf(a.out, "%s: %s\n", plain(name), text)
	return err
}

// printRest says what became of a rest; what the resource is, was read after it.
func (a *app) printRest(name string, d time.Duration, info allocator.ResourceInfo) error {
	if a.json {
		return printJSON(a.out, restDocument{a.namespace, name, millis(d), resourceDocumentOf(info)})
	}
	text := "rests for " + human(d)
	switch d {
	case 0:
		text = "rests no more, it is " + string(info.State)
	case berth.Forever:
		text = "rests until somebody ends that"
	}
	if d != 0 && info.State == allocator.Leased {
		text = "is leased, and " + text + " when it comes back"
	}
	_, err := fmt.Fprintf(a.out, "%s: %s %s\n", plain(name), key(info.Resource), text)
	return err
}

func (a *app) printInspection(name string, found allocator.Inspection) error {
	found.Stats.Name = name
	if a.json {
		return printJSON(a.out, inspectDocument{
			Namespace: a.namespace, poolDocument: documentOf(found.Stats), Bindings: found.Bindings, Moving: found.Moving,
			Whole: len(found.Problems) == 0, Problems: append([]string{}, found.Problems...),
		})
	}
	var b strings.Builder
	fmt.Fprintln(&b, summary(found.Stats)+", "+count(found.Bindings, "binding"))
	if found.Moving {
		fmt.Fprintln(&b, "It changed meanwhile: these counts are not those of one moment.")
	}
	for _, problem := range slices.Sorted(slices.Values(found.Problems)) {
		fmt.Fprintln(&b, "problem: "+plain(problem))
	}
	if len(found.Problems) == 0 {
		fmt.Fprintln(&b, "The pool is whole.")
	}
	_, err := a.out.Write([]byte(b.String()))
	return err
}
