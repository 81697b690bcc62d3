package top

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/act"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// list shows names: those in the worst state, and that contend most, or, page by page, all that are in use.
type list struct {
	listing[berth.Name]
	kind   keyspace.Kind // "" for all
	filter string        // what a row has, or, of all names, what they begin with
	typing bool          // the filter is being typed
	order  int           // of view.Orders
	stuck  bool          // only what is stuck
	got    inspect.Page[berth.Name]
	drains watch.Drains // of a reading of the most contended

	all     bool // all names
	ask     namesAsk
	waiting bool     // for the answer
	number  int      // of the page that is shown, from 1
	begun   bool     // a part of the page that was asked for has come
	from    string   // the cursor of the page that was asked for
	before  []string // the cursors of the pages before this one
}

func newList(kind keyspace.Kind) *list { return &list{kind: kind} }

func (l *list) subject() subject {
	if l.all {
		return subject{}
	}
	return subject{topic: overview}
}

func (l *list) target() target {
	e, _ := l.rows.selected()
	t := target{kind: e.value.Kind, name: e.value.Name, capacity: e.value.Capacity}
	if len(l.drains.Items) > 0 {
		t.drain = l.drains.Items[0].DrainTarget
	}
	return t
}

func (l *list) read(_ *model, r reading) {
	if page, ok := r.value.(inspect.Page[berth.Name]); ok {
		l.got, l.drains = page, r.drains
		l.arrange(true)
	}
}

// fullPage is how many names a page has at least, unless it is the last.
const fullPage = 100

// page takes in a part of a page of all names, and asks for the next part while it is not full: a part is what was found
// in a fifth of a second.
func (l *list) page(m *model, p namesPage) tea.Cmd {
	if !l.all || p.ask.number != l.ask.number {
		return nil
	}
	l.waiting, l.err = false, p.err
	if p.err != nil {
		return nil
	}
	if !l.begun {
		l.rows, l.got, l.number, l.begun = rows[berth.Name]{}, inspect.Page[berth.Name]{}, len(l.before)+1, true
	}
	l.at = p.now
	p.page.Items = append(l.got.Items, p.page.Items...)
	l.got = p.page
	l.arrange(true)
	if p.page.Next == "" || len(l.got.Items) >= fullPage {
		return nil
	}
	l.ask.cursor = p.page.Next
	return l.send(m)
}

// arrange makes the rows of what was read.
func (l *list) arrange(keep bool) {
	names := slices.DeleteFunc(slices.Clone(l.got.Items), func(n berth.Name) bool { return !l.fits(n) })
	view.Orders[l.order].Sort(names)
	all := entries(names, func(n berth.Name) string { return string(n.Kind) + " " + n.Name }) // a name may be there twice
	e, ok := l.rows.selected()
	l.rows.set(all, keep && ok && l.rows.moved && l.fits(e.value))
}

// fits reports whether to show a name.
func (l *list) fits(n berth.Name) bool {
	if l.kind != "" && n.Kind != l.kind || l.stuck && n.Trouble.Level != berth.LevelStuck {
		return false
	}
	if l.all || l.filter == "" {
		return true
	}
	who := ""
	if h := n.Longest; h != nil {
		who = h.Label + "\n" + h.Owner + "\n" + h.Node
	}
	return strings.Contains(strings.ToLower(n.Name+"\n"+who+"\n"+view.NameState(&n)), strings.ToLower(l.filter))
}

func (l *list) press(m *model, key string) tea.Cmd {
	if l.rows.press(key, m.room()-3-len(l.drained(m.paper))) {
		return nil
	}
	switch key {
	case "enter", "right", "l":
		_, l.rows.moved = l.rows.selected()
		return m.elsewhere(key)
	case "tab":
		kinds := []keyspace.Kind{"", keyspace.Sem, keyspace.Lock, keyspace.Pool}
		l.kind = kinds[(slices.Index(kinds, l.kind)+1)%len(kinds)]
		return l.again(m)
	case "s":
		l.order = (l.order + 1) % len(view.Orders)
		l.arrange(true)
	case "/":
		l.typing = true
	case "!":
		l.stuck = !l.stuck
		l.arrange(false)
	case "esc":
		if l.filter != "" {
			l.filter = ""
			return l.again(m)
		} else if l.stuck {
			return l.press(m, "!")
		}
	case "a":
		l.all, l.filter, l.before, l.waiting = !l.all, "", nil, false
		l.rows, l.got, l.seen, l.number = rows[berth.Name]{}, inspect.Page[berth.Name]{}, seen{}, 1
		if l.all {
			return tea.Batch(m.look(), l.first(m))
		}
		return m.look()
	case ">", "<", ".":
		return l.turn(m, key)
	default:
		return m.elsewhere(key)
	}
	return nil
}

// again shows what the filter means now.
func (l *list) again(m *model) tea.Cmd {
	if l.all {
		l.before = nil
		return l.first(m)
	}
	l.arrange(false)
	return nil
}

// first asks for the first page of all names.
func (l *list) first(m *model) tea.Cmd {
	l.ask.filter = inspect.NameFilter{Prefix: l.filter}
	if l.kind != "" {
		l.ask.filter.Kinds = []keyspace.Kind{l.kind}
	}
	return l.begin(m, "")
}

// begin asks for a page.
func (l *list) begin(m *model, cursor string) tea.Cmd {
	l.from, l.begun, l.ask.cursor = cursor, false, cursor
	return l.send(m)
}

func (l *list) send(m *model) tea.Cmd {
	l.ask.number++
	l.waiting, l.since = true, m.now
	return m.world.names(l.ask)
}

// turn turns the pages of all names.
func (l *list) turn(m *model, key string) tea.Cmd {
	switch {
	case !l.all:
		return m.say(false, "all names have pages: a shows them")
	case l.waiting && key != "<":
		return m.say(false, "the page is still being read")
	case key == ".":
	case key == ">" && l.got.Next == "":
		return m.say(false, "this is the last page")
	case key == ">":
		l.before = append(l.before, l.from)
		l.from = l.got.Next
	case len(l.before) == 0:
		return m.say(false, "this is the first page")
	default:
		l.from = l.before[len(l.before)-1]
		l.before = l.before[:len(l.before)-1]
	}
	return l.begin(m, l.from)
}

// edit takes in a key, or what was typed or pasted, while the filter is typed.
func (l *list) edit(m *model, key, typed string) tea.Cmd {
	switch key {
	case "enter":
		l.typing = false
		return l.again(m)
	case "esc":
		l.typing, l.filter = false, ""
		return l.again(m)
	default:
		l.filter = edited(l.filter, key, typed)
	}
	if !l.all {
		l.arrange(false)
	}
	return nil
}

func (l *list) title(*model) string {
	what := "names"
	if l.kind != "" {
		what = act.Nouns[l.kind] + "s"
	}
	title := "The most contended " + what
	quiet := func(e entry[berth.Name]) bool { return e.value.Live() == 0 && !e.gone }
	if slices.ContainsFunc(l.rows.all, quiet) {
		title = strings.ToUpper(what[:1]) + what[1:] + " in use"
	}
	if l.all {
		title = fmt.Sprintf("All %s in use, page %d", what, max(l.number, 1))
	}
	return title + ", " + view.Orders[l.order].Says
}

func (l *list) keys(*model) string {
	switch {
	case l.typing:
		return "enter keeps the filter   esc drops it   ctrl+u empties it"
	case l.all:
		return "enter opens  > < page  . again  tab kind  s order  / filter  a contended  ? help"
	}
	return "enter opens  ! stuck  tab kind  s order  / filter  c cycles  N nodes  ? help"
}

func (l *list) draw(m *model, height int) []string {
	p := m.paper
	columns := aged(l.got.At.Add(m.now.Sub(l.at))).Pick(
		"KIND", "NAME", "STATE", "HELD", "WAITING", "WAITED", "HELD BY", "FOR", "SINCE, UTC", "OWNER", "AGE")
	t := tableOf(p, p.width, columns, map[string]int{
		"HELD": 50, "WAITING": 56, "WAITED": 66, "AGE": 70, "HELD BY": 80, "FOR": 90, "SINCE, UTC": 120, "OWNER": 140,
	})
	lines := append(append([]string{l.head(p)}, l.drained(p)...), t.heading())
	foot := l.about(p, t.hides(""))
	drawn := l.rows.draw(height-len(lines)-len(foot), func(e entry[berth.Name], selected bool) []string {
		n := &e.value
		switch {
		case n.Err != nil:
			return t.row(n, selected, e.gone, alarming, map[string]string{"HELD BY": words(n.Err)})
		case view.NameLook(n) == view.Bad:
			return t.row(n, selected, e.gone, alarming, nil)
		case n.Trouble.Level == berth.LevelMeant:
			return t.row(n, selected, e.gone, warning, nil)
		}
		return t.row(n, selected, e.gone, plain, nil)
	})
	if len(drawn) == 0 {
		drawn = p.wrap(l.none(), p.width)
	}
	return append(tall(append(lines, drawn...), height-len(foot)), foot...)
}

// head says how much is bad of all that was read, and how much was not.
func (l *list) head(p paper) string {
	if l.at.IsZero() {
		return ""
	}
	n := map[berth.Level]int{}
	for i := range l.got.Items {
		n[l.got.Items[i].Trouble.Level]++
	}
	stuck := max(n[berth.LevelStuck], l.got.Stuck) // there may be more than items
	look, says := plain, fmt.Sprintf("%d stuck, %d overdue, %d meant", stuck, n[berth.LevelOverdue], n[berth.LevelMeant])
	if stuck > 0 {
		look = alarming
	}
	if l.got.Unread > 0 {
		says += fmt.Sprintf("; %d not looked at", l.got.Unread)
	}
	return p.in(look, p.cut(says, p.width))
}

// drained is a line about the drain that is in force for longest; none without any.
func (l *list) drained(p paper) []string {
	switch n := len(l.drains.Items); {
	case n > 0:
		keys := "; D ends it"
		if n > 1 {
			keys = fmt.Sprintf("; %d more; D ends it", n-1)
		}
		says := view.DrainSays(&l.drains.Items[0], l.drains.At)
		return []string{p.in(warning, p.cut(says, max(p.width-len(keys), 0))+keys)}
	case l.drains.Err != nil:
		return []string{p.in(faint, p.cut(words(l.drains.Err), p.width))}
	case len(l.drains.Problems) > 0:
		return []string{p.in(faint, p.cut(words(l.drains.Problems[0]), p.width))}
	}
	return nil
}

// about says what of it is shown. hidden are the columns that are not.
func (l *list) about(p paper, hidden string) []string {
	var says []string
	if l.stuck {
		says = append(says, "only what is stuck: ! shows all")
	}
	if l.typing || l.filter != "" {
		where, mark := "with", ""
		if l.all {
			where = "that begin with"
		}
		if l.typing {
			mark = "_"
		}
		says = append(says, fmt.Sprintf("only those %s: %s%s", where, text.Escaped(l.filter), mark))
	}
	if n := len(l.rows.all); n > 0 {
		at := fmt.Sprintf("%d of %d", l.rows.cursor+1, n)
		switch {
		case l.all && l.waiting:
			at += ", reading ..."
		case l.got.Next != "" && l.all:
			at += ", > for more"
		case l.got.Partial && !l.all:
			at += ", and more that were not read"
		}
		says = append(says, at)
	}
	if len(l.got.Problems) > 0 {
		says = append(says, words(l.got.Problems[0]))
	}
	if l.got.Replica {
		says = append(says, "from a replica")
	}
	if hidden != "" {
		says = append(says, hidden)
	}
	return []string{p.in(faint, p.cut(strings.Join(says, "; "), p.width))}
}

// none says why there are no rows.
func (l *list) none() string {
	switch {
	case l.at.IsZero() || l.waiting:
		return "Reading ..."
	case l.filter != "":
		return "None of them matches the filter; esc drops it."
	case l.stuck:
		return "Nothing of it is stuck. ! shows all."
	case l.all:
		return "No name is in use here."
	}
	return "Nobody waits for anything. a shows all names in use."
}
