package browser

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/test/browser/chrome"
	"github.com/berth-go/berth/test/browser/jam"
)

// jamStage is a console of the jam, where all may be done.
func jamStage(t *testing.T) (*stage, []jam.View) {
	t.Helper()
	made := jamOf(t)
	s := newStage(t, console.Config{Namespace: jammed, AllowActions: true})
	views, err := made.Views(s.Within(patience))
	require.NoError(t, err)
	return s, views
}

// clean is an expression that is true of a page on which nothing was injected: each script is the console's, and nothing
// else on it can run, load or lead away.
const clean = `(() => {
	const own = e => e.src && new URL(e.src).origin == location.origin && new URL(e.src).pathname.startsWith("/static/");
	const wrong = [...document.querySelectorAll("img, iframe, object, embed, base, meta[http-equiv], style, svg script, video, audio")].map(e => e.outerHTML);
	for (const e of document.scripts) if (!own(e)) wrong.push(e.outerHTML);
	for (const e of document.querySelectorAll("*")) for (const a of e.attributes) if (/^on|^style$|^srcdoc$/i.test(a.name)) wrong.push(e.outerHTML);
	for (const e of document.querySelectorAll("a[href], form[action], [*|href]")) {
		const to = e.href && e.href.baseVal !== undefined ? e.href.baseVal : e.href || e.action;
		if (new URL(to, location).origin != location.origin) wrong.push(e.outerHTML);
	}
	return wrong;
})()`

// Every page opens, is live, has its landmarks, and runs nothing but what is the console's: also where strangers have
// written all that is shown. axe finds nothing. On a telephone nothing has to be moved sideways.
func TestEveryView(t *testing.T) {
	s, views := jamStage(t)
	axe := axe(t)
	l := s.tab()
	for _, v := range views {
		l.run(v.Name, func() {
			require.NoError(l, l.Look(l.step(), chrome.Looks{Width: 1280, Height: 800}))
			l.goes(v.Path)
			l.until(`!document.getElementById("live") || document.querySelector(".live.on")`)
			code := is[int](l, `performance.getEntriesByType("navigation")[0].responseStatus`)
			require.Equal(l, cmp.Or(v.Code, 200), code)
			if code != 200 {
				l.right(answered(code))
			}
			require.Empty(l, is[[]string](l, clean))
			require.Equal(l, 1, is[int](l, `document.querySelectorAll("h1").length`))
			require.NotEmpty(l, is[string](l, `document.title`))
			require.Empty(l, is[[]string](l, `[...document.querySelectorAll("[id]")].map(e => e.id).filter((id, i, all) => all.indexOf(id) != i)`), "ids twice")

			require.NoError(l, l.Look(l.step(), chrome.Looks{Width: 390, Height: 844}))
			require.LessOrEqual(l, is[int](l, `document.documentElement.scrollWidth`), 390)
			parts, err := l.Parts(l.step())
			require.NoError(l, err)
			roles := map[string][]string{}
			for _, p := range parts {
				roles[p.Role] = append(roles[p.Role], p.Name)
			}
			for _, role := range []string{"banner", "navigation", "main", "contentinfo", "search"} {
				require.Len(l, roles[role], 1, role)
			}
			require.NotEmpty(l, roles["navigation"][0])
			for _, named := range []string{"link", "button", "textbox", "searchbox", "combobox", "heading", "image", "checkbox", "spinbutton"} {
				for _, name := range roles[named] {
					require.NotEmpty(l, strings.TrimSpace(name), "a %s without a name", named)
				}
			}
			// What is a table to the eye at 1280 pixels is one to a screen reader at 390.
			tables := is[int](l, `document.querySelectorAll("table").length`)
			require.Len(l, roles["table"], tables)
			if !v.Hostile {
				l.accessible(axe)
			}
			l.right()
		})
	}
	l.goes(views[2].Path)
	l.until(`document.querySelector(".live.on")`)
	require.NoError(t, l.Eval(l.step(), `document.body.className = "old"; new MutationObserver(() => document.body.matches(".old") || document.body.classList.add("old")).observe(document.body, { attributeFilter: ["class"] })`, nil))
	l.accessible(axe) // what is old and dim can be read, too
	l.finds("color-contrast", `document.querySelector("h1").style.color = "#999"`)
	l.finds("link-name", `document.querySelector("main a").textContent = ""`)
}

// At a glance, without a click: the name of each row, and how bad it is.
func TestTheNightIsInTheFirstScreen(t *testing.T) {
	s, _ := jamStage(t)
	l := s.tab()
	require.NoError(l, l.Look(l.step(), chrome.Looks{Width: 1280, Height: 800}))
	l.goes("./")
	l.until(`document.querySelector(".live.on")`)
	night := map[string]string{
		jam.Cycle[0]: "stuck: cycle", jam.Cycle[1]: "stuck: cycle", jam.Cycle[2]: "stuck: cycle", jam.Endless: "stuck: dead holder",
		jam.Left: "stuck: left behind", jam.Newer: "stuck: newer form", jam.Resting: "resting", jam.Paused: "paused", jam.Full: "overdue",
	}
	const rows = `[...document.querySelectorAll("main tr")].filter(e => e.getBoundingClientRect().bottom <= innerHeight).map(e => e.innerText)`
	for name, state := range night {
		l.until(rows + `.some(row => row.includes(` + quoted(name) + `) && row.includes(` + quoted(state) + `))`)
	}
	require.NotRegexp(l, `\d{4,}d`, is[string](l, `document.querySelector("main").innerText`), "ages are of moments that are known")
	l.shows("main, header", `drain of label "`+jam.Drained+`" since`)
	l.right()
}

// facts are what the pages of the jam say.
var facts = map[string][]string{
	"overview": {`gpu/a100`, `8/8`, `\b40\b`, `mail/outbound`, `paused`, `accounts`, `stock/shoes`, `\d stuck`},
	"name":     {`trainer-9@rack-4`, `its process is dead, stopped or cut off`, `overdue`, `queue-runner-1`, `sweep/1\.1`, `ML-1041`},
	"lock":     {`order-1042`, `order-1044`, `checkout-3`},
	"paused":   {`the relay moves to another data centre`, `newsletter-1`},
	"endless":  {`stuck: dead holder`, `reports`, `forever`, `berth node flush`},
	"pool": {
		`all 5 resources rest`, `429: too many requests`, `asks for a captcha`, `its password was changed; Eva asks the owner`, `ana@example\.org`,
		`forever`, `customer-7`, `locked until tomorrow by the provider`,
	},
	"proxies":        {`it wants only 10\.0\.0\.1:3128`},
	"claim-waiting":  {`queue-runner-1 has waited`, `all 8 are held`, `trainer-9@rack-4`},
	"claim-dead":     {`overdue`, `train/resnet-50`, `ML-1040`},
	"claim-resting":  {`all 5 resources rest`},
	"node":           {`queue-runner-1`, `gpu/a100`, `sweep/1\.5`},
	"node-dead":      {`trainer-9@rack-4`, `gpu/a100`, `overdue`, `the process is dead, stopped or cut off`},
	"cycles":         {`order-1042`, `order-1043`, `order-1044`, `stock/shoes`, `invoice/1042`, `card/visa`},
	"names":          {`gpu/a100`, `card/visa`, `proxies`},
	"search-name":    {`accounts`, `a/\.\./b`},
	"search-owner":   {`sweep/1\.1`, `gpu/a100`},
	"search-label":   {`queue-runner-1`, `gpu/a100`},
	"search-node":    {`gpu/a100`},
	"act-release":    {`Release claim "[0-9a-f]+\..*" of semaphore "gpu/a100" by force`, `Reason`},
	"act-pause":      {`Pause semaphore "gpu/a100" for`, `Nothing is granted`},
	"act-resize":     {`Set the capacity of semaphore "gpu/a100" to 9`},
	"act-rest":       {`Let resource "10\.0\.0\.1:3128" of pool "proxies" rest`},
	"act-rest-ends":  {`End the rest of resource "ana@example\.org" of pool "accounts"`},
	"act-drain":      {`Drain node "[0-9a-f]+"`, `new claims are refused`},
	"search-nothing": {`(?i)nothing|no name|nobody`},
}

// Each page says what stands still and why, also where no script runs.
func TestTheViewsNameTheJam(t *testing.T) {
	s, views := jamStage(t)
	read, err := inspect.New(s.redis, inspect.Config{Namespace: jammed})
	require.NoError(t, err)
	s.Await("the swarm counts the node that was killed as dead", func() bool {
		e, err := read.Explain(s.Within(patience), keyspace.Lock, jam.Endless, "")
		return err == nil && len(e.Mend) > 0 && e.Mend[0].Verb == "flush"
	})
	for _, scripts := range []bool{true, false} {
		l := s.tab()
		require.NoError(l, l.Scripts(l.step(), scripts))
		for _, v := range views {
			if len(facts[v.Name]) == 0 {
				continue
			}
			l.run(fmt.Sprintf("%s, scripts %t", v.Name, scripts), func() {
				l.goes(v.Path)
				if scripts {
					l.until(`!document.getElementById("live") || document.querySelector(".live.on")`)
				}
				text := is[string](l, `document.querySelector("main").textContent`)
				for _, fact := range facts[v.Name] {
					require.Regexp(l, fact, text)
				}
				if !scripts && is[bool](l, `!!document.getElementById("live")`) {
					require.True(l, is[bool](l, `[...document.querySelectorAll("noscript")].some(e => e.offsetHeight > 0)`), "says that it does not move")
				}
				l.right()
			})
		}
	}
}
