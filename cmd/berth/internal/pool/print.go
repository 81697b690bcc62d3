package pool

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
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

		Pause *berth.Pause `json:"pause,omitempty"`
	}
	resourceDocument struct {
		Resource string               `json:"resource"`
		Base64   []byte               `json:"base64,omitempty"` // only of a key that is not UTF-8
		State    string               `json:"state"`
		LeftMs   *int64               `json:"leftMs"` // of the lease or of the rest, 0 if free
		Reason   string               `json:"reason"` // why it rests
		ExpiryMs *int64               `json:"expiryMs"`
		Leaving  bool                 `json:"leaving"`
		Sharers  int                  `json:"maxSharers"`
		Own      *settingsDocument    `json:"own,omitempty"` // settings of its own
		Holders  []app.HolderDocument `json:"holders"`
	}
	showPoolDocument struct {
		Namespace string `json:"namespace"`
		poolDocument
		Settings *settingsDocument  `json:"settings,omitempty"` // where anything is set
		Listed   []resourceDocument `json:"listed"`             // without --all not the free ones
		Waiters  []waiterDocument   `json:"waiters"`
	}
	waiterDocument struct {
		app.WaiterDocument
		Resource   string `json:"resource"`         // the one that it waits for, "" for any
		Base64     []byte `json:"base64,omitempty"` // only of a key that is not UTF-8
		BindWaitMs *int64 `json:"bindWaitMs"`       // how long it takes no other
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

// countsOf counts the pool of a reading.
func countsOf(n berth.Name) poolDocument {
	counts := berth.PoolInfo{}
	if n.Pool != nil {
		counts = *n.Pool
	}
	return poolDocument{n.Name, n.Capacity, counts.Free, n.Held, counts.Resting, n.Holders, n.Waiting, n.Pause}
}

func documentOf(name string, s allocator.Inspection) poolDocument {
	return poolDocument{name, s.Resources, s.Free, s.Leased, s.Resting, s.Holders, s.Waiting, nil}
}

func printPools(a *app.App, all []berth.Name, most int) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(a.Out, "There is no pool in namespace %s.\n", text.Plain(a.Namespace))
		return err
	}
	rows := make([][]string, 0, len(all))
	for _, n := range all {
		s := countsOf(n)
		rows = append(rows, []string{
			text.Plain(s.Name), strconv.Itoa(s.Resources), strconv.Itoa(s.Free), strconv.Itoa(s.Leased), strconv.Itoa(s.Resting), strconv.Itoa(s.Holders), strconv.Itoa(s.Waiting),
		})
	}
	heading, rows := app.PausedColumn(all, []string{"NAME", "RESOURCES", "FREE", "LEASED", "RESTING", "HOLDERS", "WAITING"}, rows)
	return app.Limited(a.Out, heading, rows, most)
}

// summary is a pool in one line.
func summary(s poolDocument) string {
	says := fmt.Sprintf("%s: %s, %d free, %d leased, %d resting", text.Plain(s.Name), app.Count(s.Resources, "resource"), s.Free, s.Leased, s.Resting)
	if s.Holders != s.Leased {
		says += fmt.Sprintf(", %d holders", s.Holders)
	}
	return says + fmt.Sprintf(", waiting %d", s.Waiting)
}

func printPool(a *app.App, s poolDocument, set allocator.Settings, resources []allocator.ResourceInfo, waiters []berth.Waiter, all bool, most int) error {
	if a.JSON {
		resources, _ = app.First(resources, most)
		waiters, _ = app.First(waiters, most)
		document := showPoolDocument{
			Namespace: a.Namespace, poolDocument: s, Settings: settingsDocumentOf(set),
			Listed: make([]resourceDocument, len(resources)), Waiters: waiterDocuments(waiters),
		}
		for i, info := range resources {
			document.Listed[i] = resourceDocumentOf(info)
		}
		return app.PrintDocument(a.Out, document)
	}
	fmt.Fprintln(a.Out, summary(s))
	fmt.Fprint(a.Out, app.PauseText(s.Pause))
	if text := settingsText(set); text != "" {
		by := "by processes"
		if set.ByOperator {
			by = "by an operator"
		}
		fmt.Fprintf(a.Out, "set %s: %s\n", by, text)
	}
	if err := printLeased(a, resources, most); err != nil {
		return err
	}
	if err := printState(a, resources, allocator.Resting, "Resting", true, most); err != nil {
		return err
	}
	if err := printState(a, resources, allocator.Damaged, "Damaged", false, most); err != nil {
		return err
	}
	if all {
		if err := printState(a, resources, allocator.Free, "Free", false, most); err != nil {
			return err
		}
	}
	return a.PrintClaims(nil, waiters, false, most)
}

// waiterDocuments is never nil, so that JSON has a list.
func waiterDocuments(waiters []berth.Waiter) []waiterDocument {
	documents := make([]waiterDocument, len(waiters))
	for i, w := range app.WaiterDocuments(waiters, false) {
		resource := waiters[i].Resource
		documents[i] = waiterDocument{w, resource, app.Base64Of(resource), app.Millis(waiters[i].BindWait)}
	}
	return documents
}

// stays is how long a resource stays in the pool.
func stays(info allocator.ResourceInfo) string {
	switch {
	case info.Leaving:
		return "leaves"
	case info.Expiry == 0:
		return "-"
	}
	return text.Human(info.Expiry)
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
func printLeased(a *app.App, resources []allocator.ResourceInfo, most int) error {
	var rows [][]string
	sharers := sharersOf(resources)
	for _, info := range resources {
		for _, h := range info.Holders {
			rows = append(rows, slices.Concat([]string{app.Key(info.Resource), stays(info)}, sharers.of(info), app.HolderRow(h, false)))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out, "\nLeased to")
	return app.Limited(a.Out, slices.Concat([]string{"RESOURCE", "STAYS"}, sharers.heading(), app.HolderHeading(false)), rows, most)
}

// printState lists the resources in one state.
func printState(a *app.App, resources []allocator.ResourceInfo, state allocator.State, title string, ends bool, most int) error {
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
		row := append([]string{app.Key(info.Resource), stays(info)}, sharers.of(info)...)
		if ends {
			row = append(row, text.Human(info.Left), text.Plain(info.Reason))
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintf(a.Out, "\n%s\n", title)
	return app.Limited(a.Out, heading, rows, most)
}

func resourceDocumentOf(info allocator.ResourceInfo) resourceDocument {
	document := resourceDocument{
		Resource: info.Resource, State: string(info.State), LeftMs: app.Millis(info.Left), Reason: info.Reason,
		Leaving: info.Leaving, Sharers: info.MaxSharers, Holders: app.HolderDocuments(info.Holders, false),
	}
	if info.Expiry != 0 {
		document.ExpiryMs = app.Millis(info.Expiry)
	}
	document.Own = settingsDocumentOf(info.Own)
	document.Base64 = app.Base64Of(info.Resource)
	return document
}

func printChange(a *app.App, name, verb string, sent int, change allocator.Change) error {
	if a.JSON {
		return app.PrintDocument(a.Out, changeDocument{a.Namespace, name, change.Added, change.Kept, change.Removed})
	}
	var says string
	switch verb {
	case "added":
		says = fmt.Sprintf("%d added, %d kept", change.Added, change.Kept)
	case "removed":
		says = fmt.Sprintf("%d removed", change.Removed)
		if missing := sent - change.Removed; missing > 0 {
			says += fmt.Sprintf(", %d not in the pool", missing)
		}
	default:
		says = fmt.Sprintf("%d added, %d kept, %d removed", change.Added, change.Kept, change.Removed)
	}
	_, err := fmt.Fprintf(a.Out, "%s: %s\n", text.Plain(name), says)
	return err
}

// printRest says what became of a rest; what the resource is, was read after it.
func printRest(a *app.App, name string, d time.Duration, info allocator.ResourceInfo) error {
	if a.JSON {
		return app.PrintDocument(a.Out, restDocument{a.Namespace, name, app.Millis(d), resourceDocumentOf(info)})
	}
	longer := d > 0 && info.State == allocator.Resting && info.Left > d
	if longer {
		d = info.Left
	}
	says := "rests for " + text.Human(d)
	switch d {
	case 0:
		says = "rests no more, it is " + string(info.State)
	case berth.Forever:
		says = "rests until somebody ends that"
	}
	if longer {
		says += ", which was asked for before; --exactly shortens it"
	}
	if d != 0 && info.State == allocator.Leased {
		says = "is leased, and " + says + " when it comes back"
	}
	_, err := fmt.Fprintf(a.Out, "%s: %s %s\n", text.Plain(name), app.Key(info.Resource), says)
	return err
}

func printInspection(a *app.App, name string, found allocator.Inspection) error {
	if a.JSON {
		return app.PrintDocument(a.Out, inspectDocument{
			Namespace: a.Namespace, poolDocument: documentOf(name, found), Bindings: found.Bindings, Moving: found.Moving,
			Whole: len(found.Problems) == 0, Problems: append([]string{}, found.Problems...),
		})
	}
	var b strings.Builder
	fmt.Fprintln(&b, summary(documentOf(name, found))+", "+app.Count(found.Bindings, "binding"))
	if found.Moving {
		fmt.Fprintln(&b, "It changed meanwhile: these counts are not those of one moment.")
	}
	for _, problem := range slices.Sorted(slices.Values(found.Problems)) {
		fmt.Fprintln(&b, "problem: "+text.Plain(problem))
	}
	if len(found.Problems) == 0 {
		fmt.Fprintln(&b, "The pool is whole.")
	}
	_, err := a.Out.Write([]byte(b.String()))
	return err
}
