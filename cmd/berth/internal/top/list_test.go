package top

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestTheListHasTheMostContendedFirst(t *testing.T) {
	p := begin(t, 80, 24)
	require.Equal(t, []subject{{topic: overview}}, p.fake.looks)
	p.shows("Reading ...")
	paused := contended("paused", 3)
	paused.Pause = &berth.Pause{Left: time.Minute}
	p.names(contended("few", 2), paused, of(keyspace.Lock, contended("most", 7)))
	require.Equal(t, []int{1}, p.fake.nexts)
	require.Regexp(t, `(?s)most .*paused .*few `, p.screen())
	p.shows("The most contended names, the worst first", "namespace berth", "1 of 3")
	p.shows("> lock most held 2/2 7 1m00s host-7/1 0s", " sem paused paused 2/2 3 1m00s host-7/1 0s")
	p.names()
	p.shows("Nobody waits for anything.")
}

// bad is a name in a state.
func bad(name string, waiting int, level berth.Level, why inspect.Code) berth.Name {
	n := contended(name, waiting)
	n.Trouble = berth.Trouble{Level: level, Why: string(why)}
	return n
}

func TestWhatIsBadStandsFirstIsCountedAndCanBeSeenAlone(t *testing.T) {
	p := begin(t, 80, 24)
	p.paper.colors = true
	names := []berth.Name{
		bad("late", 2, berth.LevelOverdue, inspect.Silent), bad("busy", 9, berth.LevelBusy, ""), bad("asked", 8, berth.LevelMeant, inspect.Asked),
		bad("pool", 1, berth.LevelStuck, inspect.NothingBack), bad("knot", 0, berth.LevelStuck, inspect.InCycle),
		bad("free", 0, berth.LevelFree, ""),
	}
	p.reads(inspect.Page[berth.Name]{Items: names, At: p.now, Stuck: 5, Unread: 40})
	p.shows("5 stuck, 1 overdue, 1 meant; 40 not looked at", " pool stuck: nothing back ", " knot stuck: cycle ")
	require.Regexp(t, `(?s)pool .*knot .*late .*asked .*busy .*free `, p.screen())
	lines := strings.Join(p.lines(), "\n")
	for text, style := range map[string]string{"5 stuck": "31", "  sem  knot": "31", "  sem  late": "31", "  sem  asked": "33"} {
		require.Contains(t, lines, "\x1b["+style+"m"+text)
	}
	require.Contains(t, lines, "\n  sem  busy")
	p.keys("!")
	p.shows("only what is stuck: ! shows all; 1 of 2", "> sem pool", " knot ")
	p.showsNot("late ", "busy ")
	p.keys("down")
	p.names(names[4], bad("free", 0, berth.LevelBusy, ""))
	p.shows("> sem knot", "1 stuck, 0 overdue, 0 meant ")
	p.keys("!")
	p.shows(" free ", "1 of 2")
}

func TestNarrowWindowsShowTheStateAndSayWhatTheyHide(t *testing.T) {
	for width := 40; width < 150; width++ {
		p := begin(t, width, 24)
		p.names(bad("mailboxes", 1, berth.LevelStuck, inspect.NothingBack))
		p.shows("mailboxes stuck: nothing back")
		require.Equal(t, width >= 80, !strings.Contains(p.screen(), "hidden: "), width)
		if width == 60 {
			p.shows("hidden: WAITED, HELD BY, FOR")
		}
		p = atName(t, width, 24)
		require.Equal(t, width >= 80, !strings.Contains(p.screen(), "hidden: "), width)
		if width == 60 {
			p.shows("hidden: WEIGHT, PROCESS, FENCE, CLAIM; enter shows them")
		}
		p.keys("down n")
		p.reads(watch.Claims{At: noon})
		require.Equal(t, width >= 80, !strings.Contains(p.screen(), "hidden: "), width)
		if width == 60 {
			p.shows("0 claims, 0s ago; hidden: OWNER, LABEL, CLAIM")
		}
	}
}

func TestNamesInUseThatNobodyWaitsForAreNotCalledContended(t *testing.T) {
	p := begin(t, 80, 24)
	p.names(contended("gpu", 2), of(keyspace.Lock, contended("quiet", 0)))
	p.shows("Names in use, the worst first")
	p.showsNot("contended names")
	p.keys("tab")
	p.shows("The most contended semaphores")
	p.keys("tab s")
	p.shows("Locks in use, by name")
	p.keys("tab tab down")
	p.names(contended("gpu", 0))
	p.shows("Names in use, by name", " left 2/2 0 1m00s host-7/1 0s")
	p.names()
	p.shows("The most contended names")
}

func TestTheHelpIsWholeInTheSmallestUsualWindow(t *testing.T) {
	p := begin(t, 80, 24)
	p.keys("?")
	p.shows("Dead ones may be among who waits until somebody meets them.")
	p.showsNot(" ...")
}

func TestWhatChangesIsToldToTheSecondAndWhatWasNotReadIsNotNone(t *testing.T) {
	p := begin(t, 90, 24)
	apart, held := of(keyspace.Pool, contended("apart", 3)), contended("held", 0)
	apart.First, apart.Oldest, held.First, held.Oldest = nil, 12_345*time.Millisecond, nil, 2_345*time.Millisecond
	p.names(apart, held)
	p.shows("> pool apart full 2/2 3 ? host-7/1 12s 0s", " sem held full 2/2 0 - host-7/1 2.3s 0s")
}

func TestEachRowSaysItsAge(t *testing.T) {
	p := begin(t, 80, 24)
	old := contended("old", 1)
	old.At = noon.Add(-7 * time.Second)
	p.names(contended("new", 2), old)
	p.send(tick(noon.Add(4 * time.Second)))
	require.Regexp(t, `new .*full .* 4s\n`, p.screen())
	require.Regexp(t, `old .*full .* 11s\n`, p.screen())
}

func TestKeysOfTheList(t *testing.T) {
	for _, tt := range []struct{ keys, row, shows string }{
		{"", "> sem a", "1 of 4"},
		{"down", "> lock b", "2 of 4"},
		{"j j", "> pool c", "3 of 4"},
		{"j j k", "> lock b", "2 of 4"},
		{"down up up", "> sem a", "1 of 4"},
		{"G", "> sem d", "4 of 4"},
		{"end home", "> sem a", "1 of 4"},
		{"end g", "> sem a", "1 of 4"},
		{"pgdown", "> sem d", "4 of 4"},
		{"pgdown pgup", "> sem a", "1 of 4"},
		{"tab", "> sem a", "The most contended semaphores"},
		{"tab tab", "> lock b", "The most contended locks"},
		{"tab tab tab", "> pool c", "1 of 1"},
		{"tab tab tab tab", "> sem a", "1 of 4"},
		{"s", "> sem a", "by name"},
		{"s s", "> lock b", "most held first"},
		{"s s s", "> sem a", "largest share first"},
		{"s s s s", "> sem a", "most waiting first"},
		{"s s s s s", "> sem d", "longest wait first"},
		{"s s s s s s", "> lock b", "longest hold first"},
		{"s s s s s s s", "> sem a", "the worst first"},
		{"!", "", "Nothing of it is stuck. ! shows all."},
		{"! !", "> sem a", "1 of 4"},
		{"! esc", "> sem a", "1 of 4"},
		{"! / 'c' enter", "", "None of them matches the filter"},
		{"/ 'c'", "> pool c", "only those with: c_"},
		{"/ 'c' enter", "> pool c", "only those with: c; 1 of 1"},
		{"/ 'q' enter", "", "None of them matches the filter"},
		{"/ 'q' esc", "> sem a", "1 of 4"},
		{"/ 'q' enter esc", "> sem a", "1 of 4"},
		{"/ 'cx' backspace", "> pool c", "only those with: c_"},
		{"/ 'cx' ctrl+u f1 'b'", "> lock b", "only those with: b_"},
		{"/ 'HOST-7' enter", "> sem a", "1 of 4"},
		{"?", "", "r release the selected claim"},
		{"? q", "> sem a", "1 of 4"},
		{">", "> sem a", "all names have pages"},
		{"r", "> sem a", "release: select a claim"},
		{"t", "> sem a", "rest: only a pool has resources"},
		{"d", "> sem a", "drain: select a claim"},
		{"n", "> sem a", "select a claim: n shows the claims of its node"},
		{"c c esc", "> sem a", "the worst first"},
		{"f1", "> sem a", "1 of 4"},
	} {
		t.Run(tt.keys, func(t *testing.T) {
			p := begin(t, 80, 24)
			b, d := of(keyspace.Lock, contended("b", 3)), contended("d", 1)
			b.Oldest, d.First[0].Waited = time.Hour, time.Hour
			p.names(contended("a", 4), b, of(keyspace.Pool, contended("c", 2)), d)
			require.Nil(t, p.keys(tt.keys))
			if tt.row == "" {
				require.Empty(t, p.row())
			} else {
				require.Regexp(t, "^"+tt.row+" ", p.row()+" ")
			}
			p.shows(tt.shows)
		})
	}
}

func TestTheCursorStaysWithWhatWasSelected(t *testing.T) {
	p := begin(t, 80, 24)
	p.names(contended("a", 3), contended("b", 2), contended("c", 1))
	p.names(contended("a", 3), contended("b", 2), contended("c", 9))
	require.Contains(t, p.row(), "c ", "nobody has selected anything yet")
	p.keys("down")
	require.Contains(t, p.row(), "a ")
	p.names(contended("a", 3), contended("b", 12), contended("c", 9))
	require.Contains(t, p.row(), "a ")
	p.shows("3 of 3")
	p.names(contended("b", 12), contended("c", 9))
	require.Regexp(t, "^> sem a left ", p.row(), "it is not contended any more, and no other row takes its place")
	p.keys("down")
	require.Contains(t, p.row(), "c ")
	p.names(contended("b", 12))
	p.keys("up")
	require.Contains(t, p.row(), "b ")
	p.names()
	p.names(contended("b", 1))
	require.Contains(t, p.row(), "b ")
	p.showsNot("left")
}

func TestAllNamesComeInPages(t *testing.T) {
	p := begin(t, 80, 24)
	p.names(contended("a", 1))
	p.keys("a")
	p.shows("All names in use, page 1", "Reading ...")
	require.Equal(t, subject{}, p.fake.looks[1], "the overview is read no more")
	var full []berth.Name
	for i := range fullPage {
		full = append(full, contended(fmt.Sprintf("full-%03d", i), 0))
	}
	answer := func(next string, names ...berth.Name) {
		p.send(namesPage{ask: p.fake.asks[len(p.fake.asks)-1], page: inspect.Page[berth.Name]{Items: names, Next: next, At: noon}, now: noon})
	}
	answer("rest")
	p.shows("Reading ...") // it took long, and nothing was found yet
	require.Equal(t, "rest", p.fake.asks[1].cursor)
	answer("more", contended("x", 0), contended("x", 0))
	p.shows("x ", "1 of 1, reading ...")
	p.fake.asks = p.fake.asks[2:]
	answer("second", full...)
	p.shows("full-000 ", "1 of 101, > for more")
	p.keys(">")
	require.Equal(t, "second", p.fake.asks[1].cursor)
	p.keys(">")
	require.Len(t, p.fake.asks, 2, "a page is on its way")
	answer("", contended("y", 0))
	p.shows("page 2", "y ")
	p.keys(">")
	p.shows("this is the last page")
	p.keys(".")
	require.Equal(t, "second", p.fake.asks[2].cursor)
	answer("", contended("y", 0))
	p.keys("<")
	require.Empty(t, p.fake.asks[3].cursor)
	answer("second", full...)
	p.keys("<")
	p.shows("page 1", "this is the first page")
	p.keys("tab / 'pre' enter")
	require.Equal(t, inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Sem}, Prefix: "pre"}, p.fake.asks[5].filter)
	p.send(namesPage{ask: p.fake.asks[4], page: inspect.Page[berth.Name]{Items: []berth.Name{contended("late", 1)}}, now: noon})
	p.showsNot("late")
	p.send(namesPage{ask: p.fake.asks[5], err: errors.New("no such server"), now: noon})
	p.shows("cannot be read anew: no such server")
	p.keys("a")
	require.Equal(t, subject{topic: overview}, p.fake.looks[len(p.fake.looks)-1])
	p.shows("The most contended")
}

func TestAServerThatIsAwayLeavesTheRowsWithTheirAge(t *testing.T) {
	p := begin(t, 80, 24)
	p.send(tick(noon.Add(8 * time.Second)))
	p.shows("! the server has not answered for 8s")
	p.send(reading{subject: subject{topic: overview}, seq: 1, err: errors.New("redis://u:secret@h: broken\x1b[2J"), now: p.now})
	p.shows(`! nothing could be read: redis://***@h: broken\x1b[2J`)
	p.names(contended("a", 1))
	p.showsNot("! this", "! the server", "! nothing")
	at := p.now
	p.send(tick(at.Add(8 * time.Second)))
	p.shows("! this is 8s old: the server has not answered since")
	p.send(reading{
		subject: subject{topic: overview}, seq: 2, err: errors.New("refused"), at: at, now: p.now,
		value: inspect.Page[berth.Name]{Items: []berth.Name{contended("a", 1)}, At: noon},
	})
	p.shows("! this is 8s old, and cannot be read anew: refused", "> sem a", " 8s\n")
	require.Equal(t, []int{1, 1, 2}, p.fake.nexts)
	p.names(contended("a", 1))
	p.showsNot("! this", "! the server", "! nothing")
}

func TestOnlyRowsThatAreSeenAreDrawn(t *testing.T) {
	var r rows[int]
	all := make([]entry[int], 10_000)
	for i := range all {
		all[i] = entry[int]{key: fmt.Sprint(i), value: i}
	}
	r.set(all, false)
	drawn := 0
	draw := func() []string {
		drawn = 0
		return r.draw(20, func(e entry[int], _ bool) []string {
			drawn++
			return []string{e.key}
		})
	}
	for _, tt := range []struct {
		by          int
		first, last string
	}{{0, "0", "19"}, {19, "0", "19"}, {1, "1", "20"}, {10_000, "9980", "9999"}, {-5, "9980", "9999"}, {-20, "9974", "9993"}, {-10_000, "0", "19"}} {
		r.move(tt.by)
		lines := draw()
		require.Len(t, lines, 20)
		require.Equal(t, tt.first, lines[0])
		require.Equal(t, tt.last, lines[19])
		require.LessOrEqual(t, drawn, 20)
	}
}

func TestQEndsAndSoDoesCtrlC(t *testing.T) {
	for keys, ends := range map[string]bool{"q": true, "ctrl+c": true, "enter q": true, "/ 'q'": false, "/ ctrl+c": true, "? ctrl+c": true, "p 'q'": false, "p ctrl+c": true} {
		p := begin(t, 80, 24)
		p.names(contended("a", 1))
		cmd := p.keys(keys)
		require.Equal(t, ends, cmd != nil, keys)
		if ends {
			require.Equal(t, tea.QuitMsg{}, cmd(), keys)
		}
	}
}

// The page of all names that was asked for is of no use then: nobody waits for it.
func TestWhoLeavesAllNamesBeforeTheirPageHasComeReadsTheOthers(t *testing.T) {
	p := begin(t, 80, 24)
	p.names(contended("gpu", 1))
	p.keys("a a")
	p.names(contended("gpu", 1))
	p.keys("/ n o - enter")
	p.shows("None of them matches the filter")
}
