package pool

import (
	"cmp"
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

// infoOf is what is counted of a pool, also of one that is not there.
func infoOf(n berth.Name) berth.PoolInfo { return *cmp.Or(n.Pool, &berth.PoolInfo{}) }

func printPools(a *app.App, all []berth.Name, most int) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(a.Out, "There is no pool in namespace %s.\n", text.Plain(a.Namespace))
		return err
	}
	rows := make([][]string, 0, len(all))
	for _, n := range all {
		info := infoOf(n)
		rows = append(rows, []string{
			text.Plain(n.Name), strconv.Itoa(n.Capacity), strconv.Itoa(info.Free), strconv.Itoa(n.Held), strconv.Itoa(info.Resting), strconv.Itoa(n.Holders), strconv.Itoa(n.Waiting),
		})
	}
	heading, rows := app.PausedColumn(all, []string{"NAME", "RESOURCES", "FREE", "LEASED", "RESTING", "HOLDERS", "WAITING"}, rows)
	return app.Limited(a.Out, heading, rows, most)
}

// summary is a pool in one line.
func summary(n berth.Name) string {
	info := infoOf(n)
	says := fmt.Sprintf("%s: %s, %d free, %d leased, %d resting", text.Plain(n.Name), app.Count(n.Capacity, "resource"), info.Free, n.Held, info.Resting)
	if n.Holders != n.Held {
		says += fmt.Sprintf(", %d holders", n.Holders)
	}
	return says + fmt.Sprintf(", waiting %d", n.Waiting)
}

func printPool(a *app.App, n berth.Name, set allocator.Settings, resources []allocator.ResourceInfo, waiters []berth.Waiter, all bool, most int) error {
	if a.JSON {
		return app.PrintShown(a, app.ShowDocument{Name: n, Settings: set, Resources: resources, Waiters: waiters}, most)
	}
	fmt.Fprintln(a.Out, summary(n))
	fmt.Fprint(a.Out, app.PauseText(n.Pause))
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

func printChange(a *app.App, name, verb string, sent int, change allocator.Change) error {
	if a.JSON {
		return app.PrintJSON(a, name, change)
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
		return app.PrintJSON(a, name, info)
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

// nameOf is what was counted, as a reading of the pool has it.
func nameOf(name string, s allocator.Inspection) berth.Name {
	return berth.Name{
		Name: name, Capacity: s.Resources, Held: s.Leased, Holders: s.Holders, Waiting: s.Waiting,
		Pool: &berth.PoolInfo{Free: s.Free, Resting: s.Resting},
	}
}

func printInspection(a *app.App, name string, found allocator.Inspection) error {
	if a.JSON {
		return app.PrintJSON(a, name, found)
	}
	var b strings.Builder
	fmt.Fprintln(&b, summary(nameOf(name, found))+", "+app.Count(found.Bindings, "binding"))
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
