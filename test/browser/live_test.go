package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/test/browser/chrome"
	"github.com/berth-go/berth/test/harness"
)

const (
	holders = `[data-live="holders"]`
	line    = `[data-live="line"]`
	names   = `[data-live="names"]`
)

// A hold is released, and the page that is open shows who has it now; nobody loads it again. What a person has reached with
// the keyboard stays where it is meanwhile.
func TestAHandOffAppears(t *testing.T) {
	s := newStage(t, console.Config{})
	held, waits := s.turns("gpu", "alpha", "beta", "gamma")
	l := s.open("name?kind=sem&name=gpu")
	l.shows(holders, "alpha")
	l.shows(line, "beta")
	l.shows(line, "gamma")
	loads := l.Loads()
	const focus = `[...document.querySelectorAll('[data-live="line"] a')].find(a => a.textContent == "gamma")`
	require.NoError(t, l.Eval(l.step(), focus+`.focus()`, nil))

	require.NoError(t, held.Release(s.Within(patience)))
	l.shows(holders, "beta")
	require.True(t, is[bool](l, `document.activeElement == `+focus))
	l.hides(holders, "alpha")
	l.hides(line, "beta has waited")
	l.shows(line, "gamma")
	next := waits[0].Wait(s)
	require.NoError(t, next.Release(s.Within(patience)))
	l.shows(holders, "gamma")
	l.shows(line, "Nobody waits")
	require.NoError(t, waits[1].Wait(s).Release(s.Within(patience)))
	l.shows(holders, "Nobody holds it")
	require.Equal(t, loads, l.Loads(), "it is the same document")
	l.right()
}

// Two pages of one name, in browsers of their own, and one of the claim that waits, show the same.
func TestAllWhoLookSeeTheHandOff(t *testing.T) {
	s := newStage(t, console.Config{})
	held, waits := s.turns("gpu", "alpha", "beta")
	waiting := s.read.Waiters("sem", "gpu")[0]
	pages := []*look{s.open("name?kind=sem&name=gpu"), s.open("name?kind=sem&name=gpu"), s.open("claim?kind=sem&name=gpu&id=" + waiting.ID)}
	pages[2].shows("main", "beta-label has waited")
	require.NoError(t, held.Release(s.Within(patience)))
	for _, l := range pages[:2] {
		l.shows(holders, "beta")
	}
	pages[2].shows(".tiles", "holds")
	require.NoError(t, waits[0].Wait(s).Err())
}

// A name that comes to be waited for appears in the overview, and stays there, where there are few, when nobody waits any
// more.
func TestTheOverviewMoves(t *testing.T) {
	s := newStage(t, console.Config{})
	l := s.open("")
	l.shows(names, "Nobody waits")
	loads := l.Loads()
	held, waits := s.turns("gpu", "alpha", "beta")
	l.shows(names, "gpu")
	l.shows(names, "alpha")
	waiting := func(n string) {
		t.Helper()
		l.until(`(r => r && r.querySelector('[data-label="Waiting"]').textContent.trim() == ` + quoted(n) + `)` +
			`([...document.querySelectorAll('[data-live="names"] tr')].find(r => r.textContent.includes("gpu")))`)
	}
	waiting("1")
	require.NoError(t, held.Release(s.Within(patience)))
	require.NoError(t, waits[0].Wait(s).Err())
	waiting("0")
	l.shows(names, "beta")
	require.Equal(t, loads, l.Loads())
	l.right()
}

// As many pages are live as may be; one more says so, and shows how things stand all the same.
func TestMorePagesThanMayBeLive(t *testing.T) {
	s := newStage(t, console.Config{MaxStreams: 1})
	s.turns("gpu", "alpha", "beta")
	s.open("name?kind=sem&name=gpu")
	l := s.tab()
	l.goes("name?kind=sem&name=gpu")
	l.until(`document.querySelector(".live.off")`)
	l.shows(holders, "alpha")
	l.shows("#live", "as many pages are live as may be")
	l.right(answered(503))
}

// A server that goes away and comes back: the page says so, keeps what it has, and goes on.
func TestAServerThatIsAway(t *testing.T) {
	server := harness.Start(t)
	s := stageOn(t, server, console.Config{})
	s.turns("gpu", "alpha", "beta")
	l := s.open("name?kind=sem&name=gpu")
	loads := l.Loads()
	const colors = `["a.id", ".state"].map(e => getComputedStyle(document.querySelector('[data-live="holders"] ' + e)).color).join()`
	bright := strings.Split(is[string](l, colors), "rgb")
	require.NotEqual(t, bright[1], bright[2]+",")
	server.Kill(t)
	l.until(`document.querySelector(".live.off")`)
	l.until(`/^Not read since \d\d:\d\d:\d\d UTC: the server /.test(document.querySelector("#live").textContent)`)
	l.shows(holders, "alpha")
	dim := strings.Split(is[string](l, colors), "rgb")
	require.Equal(t, dim[1], dim[2]+",", "what is shown is dim")
	l.accessible(axe(t))
	server.Restart(t)
	l.until(`document.querySelector(".live.on")`)
	require.False(t, is[bool](l, `document.body.classList.contains("old")`))
	require.Equal(t, loads, l.Loads())
	l.right()
}

// A server that answers nothing, without an error: the page says how old it is, and shows no hold as renewed whose lease
// has run out by its clock.
func TestAServerThatHangs(t *testing.T) {
	server := harness.Start(t)
	s := stageOn(t, server, console.Config{CallTimeout: patience})
	s.turns("gpu", "alpha", "beta")
	l := s.open("name?kind=sem&name=gpu")
	l.shows(holders+" .state.good", "renewing")
	const mark = `getComputedStyle(document.querySelector('[data-live="holders"] .state.good'), "::after").content`
	require.Equal(t, "none", is[string](l, mark))
	server.Stop(t)
	l.shows("#live.off", "Not read since ")
	require.NoError(t, l.Eval(l.step(), `document.querySelector('[data-live="holders"] time[data-left]').dataset.left = 0`, nil))
	l.until(mark + ` == '"?"'`)
	server.Cont(t)
	l.until(`document.querySelector(".live.on")`)
	l.right()
}

// From the overview to what is done, by Tab and Enter alone: what the keyboard has reached is always seen.
func TestFromTheOverviewToAnActionByTheKeyboardAlone(t *testing.T) {
	s := newStage(t, console.Config{AllowActions: true})
	held, waits := s.turns("gpu", "alpha", "beta")
	l := s.open("")
	l.shows(names, "gpu")
	reaches := func(element string) {
		t.Helper()
		for range 100 {
			l.presses(kb.Tab)
			require.True(t, is[bool](l, `(e => e != document.body && parseFloat(getComputedStyle(e).outlineWidth) > 0)(document.activeElement)`))
			if is[bool](l, `(e => `+element+`)(document.activeElement)`) {
				return
			}
		}
		require.Fail(t, element)
	}
	follows := func(element, shows string) {
		t.Helper()
		reaches(element)
		l.presses(kb.Enter)
		l.until(shows)
	}
	follows(`e.matches("a.name") && e.textContent == "gpu"`, `location.pathname == "/name" && document.querySelector(".live.on")`)
	follows(`e.textContent == "Ask back"`, `document.querySelector("form.act")`)
	reaches(`e.name == "reason"`)
	l.presses("it is late")
	follows(`e.matches("button.do")`, `document.querySelector(".notice.good")`)
	s.Await("its hold is wanted back", func() bool { return s.read.Holders(keyspace.Sem, "gpu")[0].Wanted > 0 })
	follows(`e.textContent == "Release"`, `document.querySelector("form.act")`)
	require.Regexp(t, `^Release claim "`+held.ID()+`" of semaphore "gpu" by force: owner "alpha" \(label "alpha-label"\) has held it for \S+\. `+
		`Owner "beta" \(label "beta-label"\), who has waited for \S+, gets it\.`, is[string](l, `document.querySelector("#will").textContent`))
	reaches(`e.name == "reason"`)
	l.presses("it is too late")
	follows(`e.matches("button.do")`, `document.querySelector(".notice.good")`)
	require.NoError(t, waits[0].Wait(s).Err())
	l.right()
}

// A key leads to the search, and a label is found by its beginning.
func TestASlashLeadsToTheSearch(t *testing.T) {
	s := newStage(t, console.Config{})
	s.turns("gpu", "alpha", "beta")
	l := s.open("")
	l.presses("/")
	require.Equal(t, "find-q", is[string](l, `document.activeElement.id`))
	require.NoError(t, l.Eval(l.step(), `document.activeElement.value = ""`, nil)) // the debugger sends the letter apart from the key
	l.presses("alp/")
	require.Equal(t, "alp/", is[string](l, `document.activeElement.value`), "in a field it is a letter")
	l.presses(kb.Backspace + kb.Tab + "l" + kb.Tab + kb.Enter)
	l.until(`location.pathname == "/search" && document.querySelector(".live.on")`)
	l.shows("h1", "Claims of label alp*")
	l.shows("[data-live=claims]", "alpha-label")
	l.hides("[data-live=claims]", "beta-label")
	l.right()
}

// A long line has parts: on a telephone, too, each is reached by a finger.
func TestALongLineHasParts(t *testing.T) {
	s := newStage(t, console.Config{})
	p := s.node("runner")
	s.acquire(p, "gpu", 1, "alpha").Wait(s)
	for i := range 60 {
		s.queue(p, "gpu", 1, fmt.Sprintf("job-%d", i+1), i+1)
	}
	l := s.tab()
	require.NoError(t, l.Look(l.step(), chrome.Looks{Width: 390, Height: 844}))
	l.goes("name?kind=sem&name=gpu")
	const next, shown = `document.querySelector('[data-live="line"] a[rel=next]')`, `[...document.querySelectorAll('[data-live="line"] tbody tr')].length`
	for _, part := range []struct{ first, last string }{{"job-1", "job-25"}, {"job-26", "job-50"}, {"job-51", "job-60"}} {
		l.shows(line, part.first)
		l.until(`document.querySelector(".live.on")`)
		l.shows(line, part.last)
		require.LessOrEqual(t, is[int](l, shown), 25)
		require.LessOrEqual(t, is[int](l, `document.documentElement.scrollWidth`), 390)
		require.Empty(t, is[[]string](l, `[...document.querySelectorAll(".parts a")].filter(e => (r => Math.min(r.width, r.height) < 24)(e.getBoundingClientRect())).map(e => e.outerHTML)`))
		if part.last != "job-60" {
			loads := l.Loads()
			require.NoError(t, l.Eval(l.step(), next+`.click()`, nil))
			require.NoError(t, l.Loaded(l.step(), loads))
			require.True(t, is[bool](l, `scrollY > 0`), "it shows that part")
		}
	}
	require.Equal(t, 10, is[int](l, shown))
	require.True(t, is[bool](l, `!`+next))
	l.right()
}

// Without a mouse: Tab reaches the skip link, which leads to the content, each link, and the search, which Enter sends.
func TestWithoutAMouse(t *testing.T) {
	s := newStage(t, console.Config{AllowActions: true})
	s.turns("gpu", "alpha", "beta")
	l := s.open("name?kind=sem&name=gpu")
	const active = `(e => e.matches(".skip") ? "skip" : e.id || e.textContent.trim() || e.tagName)(document.activeElement)`
	l.presses(kb.Tab)
	require.Equal(t, "skip", is[string](l, active))
	require.True(t, is[bool](l, `(r => r.top >= 0 && r.left >= 0 && r.height > 0)(document.querySelector(".skip").getBoundingClientRect())`), "it is seen")
	l.presses(kb.Enter)
	require.Equal(t, "main", is[string](l, active))
	l.presses(kb.Tab)
	require.True(t, is[bool](l, `document.querySelector("main").contains(document.activeElement)`))

	// All that can be reached with a mouse is reached, in the order of the page, and it is seen where one is.
	l = s.open("name?kind=sem&name=gpu")
	all := is[int](l, `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")].filter(e => e.offsetParent || e.matches(".skip")).length`)
	require.Greater(t, all, 8)
	require.NoError(t, l.Eval(l.step(), `window.reached = new Set()`, nil))
	for i := range all {
		l.presses(kb.Tab)
		require.True(t, is[bool](l, `document.activeElement != document.body`), "after %d of %d", i, all)
		require.True(t, is[bool](l, `(s => s.outlineStyle != "none" && parseFloat(s.outlineWidth) > 0)(getComputedStyle(document.activeElement))`), is[string](l, active))
		require.NoError(t, l.Eval(l.step(), `reached.add(document.activeElement)`, nil))
	}
	require.Empty(t, is[[]string](l, `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")].filter(e => !reached.has(e)).map(e => e.outerHTML)`))

	require.NoError(t, l.Eval(l.step(), `document.querySelector("[role=search] input").focus()`, nil))
	l.presses("gp" + kb.Enter)
	l.until(`location.pathname != "/name"`)
	l.shows("main", "gpu")
	l.right()
}

// A page that is mounted under a prefix has all that it needs.
func TestUnderAPrefix(t *testing.T) {
	s := newStage(t, console.Config{})
	s.turns("gpu", "alpha", "beta")
	l := s.mounted("/ops/berth")
	l.goes("name?kind=sem&name=gpu")
	l.until(`document.querySelector(".live.on")`)
	require.Equal(t, "/ops/berth/name", is[string](l, `location.pathname`))
	for i := range is[int](l, `document.links.length`) {
		require.Regexp(t, "^/ops/berth/", is[string](l, fmt.Sprintf(`document.links[%d].pathname`, i)))
	}
	l.right()
}
