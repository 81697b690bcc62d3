package console_test

import (
	"encoding/xml"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
)

// deed is a form that asks whether an action is to be done.
type deed struct {
	s       *site
	address string
	values  url.Values
	cookie  *http.Cookie
	body    string
}

// ask asks for the form of an action.
func (s *site) ask(address string) *deed {
	s.w.T.Helper()
	a := s.get(address)
	require.Equal(s.w.T, http.StatusOK, a.code, a.body)
	cookies := (&http.Response{Header: a.head}).Cookies()
	require.Len(s.w.T, cookies, 1)
	d := &deed{s: s, cookie: cookies[0]}
	d.read(a.body)
	return d
}

// ready is the form of an action with a reason.
func (s *site) ready(address string) *deed {
	s.w.T.Helper()
	d := s.ask(address)
	d.values.Set("reason", "x")
	return d
}

// read takes the form of a page.
func (d *deed) read(page string) {
	d.s.w.T.Helper()
	d.body, d.values = page, url.Values{}
	for _, e := range elementsOf(d.s.w.T, page) {
		switch {
		case e.Name.Local == "form" && attr(e, "method") == "post":
			d.address = attr(e, "action")
		case e.Name.Local == "input" && d.address != "" && attr(e, "type") != "checkbox":
			d.values.Set(attr(e, "name"), attr(e, "value"))
		}
	}
	require.NotEmpty(d.s.w.T, d.address)
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// post sends the form, as a browser does; what are changes of the request.
func (d *deed) post(what ...func(*http.Request)) answer {
	d.s.w.T.Helper()
	r := testkit.Must(http.NewRequest(http.MethodPost, d.s.base+"/"+d.address, strings.NewReader(d.values.Encode()))).In(d.s.w.T)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://console.test")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.AddCookie(d.cookie)
	for _, change := range what {
		change(r)
	}
	return d.s.do(r)
}

// do confirms an action with a reason, and returns where that leads.
func (d *deed) do(changes ...string) string {
	d.s.w.T.Helper()
	d.values.Set("reason", "because <b>")
	for i := 0; i < len(changes); i += 2 {
		d.values.Set(changes[i], changes[i+1])
	}
	a := d.post()
	if a.code == http.StatusOK { // it says what it will do now
		d.read(a.body)
		require.Equal(d.s.w.T, "because <b>", d.values.Get("reason"))
		a = d.post()
	}
	require.Equal(d.s.w.T, http.StatusSeeOther, a.code, a.body)
	return a.head.Get("Location")
}

// acting is a console for somebody who may act.
func (w *world) acting(told *testkit.Process) *site {
	return w.serve("/berth", console.Config{
		AllowActions: true, Observer: told.Observer(nil),
		Access: func(r *http.Request) console.Access {
			return console.Access{User: r.Header.Get("User"), Look: true, Act: r.Header.Get("Guest") == ""}
		},
	})
}

func TestActionsOfAName(t *testing.T) {
	inWorld(t, func(w *world) {
		told := w.Process()
		s, look := w.acting(told), testkit.Patient{T: w.T}.Reader(w.Redis, "")
		p := w.process("worker")
		held := p.permit("anna", "gpu", 1)
		waits := p.awaitPermit("bert", "gpu", 1)

		d := s.ask("act?verb=pause&kind=sem&name=gpu")
		require.Contains(t, d.body, "for 10m00s", "it says what it will do")
		to := d.do("for", "1h")
		require.Equal(t, time.Hour, look.Look(keyspace.Sem, "gpu").Pause.Left)
		page := s.see(to)
		require.Contains(t, page, "because &lt;b&gt;")
		require.Contains(t, page, "Reason: <q>because &lt;b&gt;</q>")
		require.Contains(t, page, "pause for 1h00m of semaphore &#34;gpu&#34;: paused for 1h00m")
		_, query, _ := strings.Cut(to, "?")
		for _, other := range []string{"name?kind=sem&name=other&done=1", "name?kind=lock&name=gpu&done=1", "node?id=gpu&done=1", "search?by=label&q=gpu&done=1"} {
			require.NotContains(t, s.see(other), ": paused for 1h", other)
		}
		guest := func(r *http.Request) { r.Header.Set("Guest", "yes") }
		require.NotContains(t, s.get("name?"+query, guest).body, ": paused for 1h00m", "who may only look does not see what others do")
		require.Equal(t, http.StatusForbidden, s.get("actions", guest).code)
		require.Equal(t, http.StatusForbidden, s.get("events?page=actions", guest).code)
		require.Empty(t, linksOf(t, s.get("", guest).body, "actions"))
		require.Contains(t, linksOf(t, page, "act?"), "act?kind=sem&name=gpu&verb=unpause")

		s.ask("act?verb=unpause&kind=sem&name=gpu").do()
		require.Nil(t, look.Look(keyspace.Sem, "gpu").Pause)
		s.ask("act?verb=resize&kind=sem&name=gpu&capacity=1").do("capacity", "2")
		require.Equal(t, 2, look.Look(keyspace.Sem, "gpu").Capacity)
		waits.Granted(w.Now())
		s.ask("act?verb=release&kind=sem&name=gpu&claim=" + held.ID()).do()
		<-held.Done()
		require.ErrorIs(t, held.Err(), berth.ErrReleased)

		var details []string
		for _, e := range told.Told(observe.Acted) {
			details = append(details, e.Detail)
		}
		require.Equal(t, []string{
			`pause for 1h00m: "because <b>"`, `unpause: "because <b>"`, `resize to 2: "because <b>"`, `release: "because <b>"`,
		}, details)
		page = s.see("actions")
		requireHarmless(t, page)
		require.Equal(t, 4, strings.Count(page, ">done<"))
	})
}

func TestThePageAfterAnActionWasReadAfterIt(t *testing.T) {
	inWorld(t, func(w *world) {
		way := w.Process()
		s := w.serve("", console.Config{AllowActions: true, Redis: way.Redis})
		w.process("worker").permit("anna", "gpu", 1)
		live := s.open("page=name&kind=sem&name=gpu")
		w.Advance(1500 * time.Millisecond) // between two readings
		to := s.ask("act?verb=pause&kind=sem&name=gpu").do()
		require.Contains(t, s.see(to), ">paused<")
		synctest.Wait()
		html, _ := live.region("state")
		require.Contains(t, html, ">paused<", "and so does a page that was open")

		before := sent(way)
		for range 10 {
			s.see(to)
			s.see("name?kind=sem&name=gpu&done=99")
			s.see("name?kind=sem&name=gpu&done=-1")
		}
		require.Equal(t, before, sent(way), "it is read anew once for an action, and for no other address")
	})
}

func TestAResourceOfAnyBytesRests(t *testing.T) {
	inWorld(t, func(w *world) {
		told := w.Process()
		s, p := w.acting(told), w.process("worker")
		pool := allocator.New(p.Node, "proxies", allocator.Config[string]{})
		const key = "\xff\n<i>\"&"
		testkit.Must(pool.Add(ctx, []string{key}, nil)).In(t)
		held := testkit.Must(pool.Allocate(ctx, nil)).In(t)

		page := s.see("name?kind=pool&name=proxies")
		requireHarmless(t, page)
		s.ask(linksOf(t, page, "act?kind=pool&name=proxies&resource=")[0]).do("for", "forever")
		require.NoError(t, held.Release(ctx))
		w.Advance(2 * time.Second)
		page = s.see("name?kind=pool&name=proxies")
		require.Contains(t, page, "because &lt;b&gt;")
		s.ask(linksOf(t, page, "act?for=0&kind=pool&name=proxies&resource=")[0]).do()
		testkit.Must(pool.TryAllocate(ctx, nil)).In(t)
	})
}

func TestItIsReadOnly(t *testing.T) {
	onSite(t, func(w *world, s *site) {
		w.process("worker").permit("anna", "gpu", 1)
		require.Empty(t, linksOf(t, s.see("name?kind=sem&name=gpu"), "act?"))
		for _, verb := range []string{"release", "pause", "unpause", "resize", "rest", "drain", "undrain"} {
			address := "act?verb=" + verb + "&kind=sem&name=gpu&claim=x&node=y"
			a := s.get(address)
			require.Equal(t, http.StatusForbidden, a.code)
			require.Contains(t, a.body, "read-only")
			d := &deed{s: s, address: address, values: url.Values{"reason": {"x"}}, cookie: &http.Cookie{Name: "x", Value: "y"}}
			require.Equal(t, http.StatusForbidden, d.post().code)
		}
	})
}

func TestWhatIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		told := w.Process()
		s := w.acting(told)
		w.process("worker").permit("anna", "gpu", 1)
		const address = "act?verb=pause&kind=sem&name=gpu"
		head := func(name, value string) func(*http.Request) {
			return func(r *http.Request) { r.Header.Set(name, value) }
		}
		for what, refused := range map[string]struct {
			change func(*http.Request)
			says   string
		}{
			"another site":          {head("Sec-Fetch-Site", "cross-site"), ""},
			"another host":          {head("Sec-Fetch-Site", "same-site"), ""},
			"by itself":             {head("Sec-Fetch-Site", "none"), ""},
			"another origin":        {head("Origin", "http://evil.test"), "its Origin is not this page"},
			"an origin of no name":  {head("Origin", "null"), ""},
			"no origin":             {func(r *http.Request) { r.Header.Del("Origin") }, "a form needs the header Origin of this page"},
			"an old browser's":      {func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "http://evil.test") }, ""},
			"text":                  {head("Content-Type", "text/plain"), "it is no form"},
			"without a session":     {head("Cookie", ""), ""},
			"of another session":    {head("Cookie", "berth-console="+strings.Repeat("0", 64)), ""},
			"of another user":       {head("User", "bert"), ""},
			"of a guest":            {head("Guest", "yes"), ""},
			"about something else":  {func(r *http.Request) { r.URL.RawQuery = "verb=pause&kind=sem&name=other" }, ""},
			"without what it is of": {func(r *http.Request) { r.URL.RawQuery = "" }, ""},
		} {
			a := s.ready(address).post(refused.change)
			require.Equal(t, http.StatusForbidden, a.code, what)
			require.Contains(t, a.body, "refused: "+refused.says, what)
		}
		d := s.ask(address)
		d.values.Set("reason", strings.Repeat("x", 20<<10))
		require.Equal(t, http.StatusForbidden, d.post().code)
		d = s.ask(address)
		d.values.Set("token", strings.Repeat("0", 64))
		require.Equal(t, http.StatusForbidden, d.post().code)
		require.Empty(t, told.Told(observe.Acted))

		d = s.ask(address)
		d.do()
		d.values.Set("form", d.values.Get("form")+"0")
		require.Equal(t, http.StatusForbidden, d.post().code, "no other number makes it a new one")
	})
}

func TestWhatIsMissingIsAskedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		told := w.Process()
		s := w.acting(told)
		for _, wrong := range []struct{ address, field, value, says string }{
			{"act?verb=pause&kind=sem&name=gpu", "reason", " ", "say why"},
			{"act?verb=pause&kind=sem&name=gpu", "for", "soon", "is no time"},
			{"act?verb=pause&kind=sem&name=gpu", "for", "-1m", "not above 0"},
			{"act?verb=resize&kind=sem&name=gpu", "capacity", "many", "no whole number"},
			{"act?verb=resize&kind=sem&name=gpu", "capacity", "0", "below 1"},
			{"act?verb=drain&node=x", "for", "-5m", "is negative"},
			{"act?verb=drain&node=x", "force-after", "5m", "needs"},
			{"act?verb=drain&node=x", "force", "1", "above 0"},
		} {
			d := s.ready(wrong.address)
			d.values.Set(wrong.field, wrong.value)
			a := d.post()
			require.Equal(t, http.StatusBadRequest, a.code, wrong)
			require.Contains(t, a.body, wrong.says)
		}
		require.Equal(t, http.StatusBadRequest, s.get("act?verb=release&kind=sem&name=gpu").code)
		require.Equal(t, http.StatusBadRequest, s.get("act?verb=jump").code)
		require.NotEmpty(t, linksOf(t, s.see("search?by=label&q=w*"), "act?"))
		require.Empty(t, linksOf(t, s.see("search?by=label&q=*"), "act?"), "a label of all is not drained from a page")

		d := s.ready("act?verb=pause&kind=sem&name=gpu")
		d.values.Set("for", "2h")
		a := d.post()
		require.Equal(t, http.StatusOK, a.code)
		require.Contains(t, a.body, "for 2h00m", "what it will do is read before it is done")
		require.Empty(t, told.Told(observe.Acted))
		d.read(a.body)
		require.Equal(t, http.StatusSeeOther, d.post().code)
		require.Len(t, told.Told(observe.Acted), 1)
	})
}

// A confirmation says whose hold it ends, held for how long, and who gets it: as it is then, and again if that has changed.
func TestAConfirmationSaysWhoseHoldItEndsAndWhoGetsIt(t *testing.T) {
	inWorld(t, func(w *world) {
		told := w.Process()
		s := w.acting(told)
		held := w.process("worker/1").permit("anna <b>", "gpu", 1)
		w.Advance(20 * time.Second)
		w.process("worker/2").awaitPermit("bert", "gpu", 1)
		w.process("worker/3").awaitPermit("carl", "gpu", 1)
		w.Advance(10 * time.Second)
		says := func(page string) string {
			_, page, _ = strings.Cut(page, `id="will">`)
			page, _, _ = strings.Cut(page, "</p>")
			return html.UnescapeString(page)
		}
		of := "&kind=sem&name=gpu&claim="
		waits := testkit.Patient{T: w.T}.Reader(w.Redis, "").Waiters(keyspace.Sem, "gpu")
		require.Equal(t, `Release claim "`+held.ID()+`" of semaphore "gpu" by force: owner "anna <b>" (label "worker/1") has held it for 30s. `+
			`Owner "bert" (label "worker/2"), who has waited for 10s, gets it. The process of the hold is told, and until it has heard, two may be inside.`,
			says(s.ask("act?verb=release"+of+held.ID()).body))
		require.Equal(t, `Release claim "`+waits[1].ID+`" of semaphore "gpu": owner "carl" (label "worker/3") has waited for 10s, and leaves the line.`,
			says(s.ask("act?verb=release"+of+waits[1].ID).body))
		require.Contains(t, s.get("act?verb=want"+of+waits[1].ID).body, "there is nothing to give back")

		s.ask("act?verb=want" + of + held.ID()).do()
		<-held.Wanted()
		require.NoError(t, held.Err())
		require.Regexp(t, `and was asked \S+ ago\. Nothing ends`, says(s.ask("act?verb=want"+of+held.ID()).body))

		d, second := s.ready("act?verb=release"+of+held.ID()), s.ready("act?verb=release"+of+waits[0].ID)
		require.NoError(t, held.Release(ctx))
		a := d.post()
		require.Equal(t, http.StatusGone, a.code)
		require.Contains(t, a.body, "It was not done. the claim has ended by itself")
		require.Equal(t, http.StatusGone, s.get("act?verb=release"+of+held.ID()).code)
		a = second.post() // it waited when it was asked about
		require.Equal(t, http.StatusOK, a.code)
		require.Contains(t, a.body, "Read it, and confirm")
		require.Regexp(t, `owner "bert" \(label "worker/2"\) has held it for \S+\. Owner "carl" \(label "worker/3"\), who has waited for \S+, gets it\.`, says(a.body))
		require.Len(t, told.Told(observe.Acted), 1, "nothing but that it was wanted")
		second.read(a.body)
		require.Equal(t, http.StatusSeeOther, second.post().code)
	})
}

func TestAServerThatDoesNotAnswerAnAction(t *testing.T) {
	inWorld(t, func(w *world) {
		way := w.Process()
		s := w.serve("", console.Config{Redis: way.Redis, CallTimeout: time.Second, AllowActions: true})
		var asked []*deed
		held := w.process("worker").permit("anna", "gpu", 1)
		for _, of := range []string{"verb=pause&kind=sem&name=gpu", "verb=release&kind=sem&name=gpu&claim=" + held.ID(), "verb=undrain&node=x"} {
			asked = append(asked, s.ready("act?"+of))
		}
		way.Cut()
		for _, d := range asked {
			a := d.post()
			require.Equal(t, http.StatusServiceUnavailable, a.code, d.address)
			require.Regexp(t, "the server (is unavailable|does not answer)", a.body, d.address)
		}
		way.Mend()
		require.Equal(t, http.StatusSeeOther, s.ready(asked[0].address).post().code)
	})
}

// gate holds what an action tells until it is opened.
type gate struct{ open chan struct{} }

func (g gate) observer() observe.Observer {
	return observe.Func(func(e observe.Event) {
		if e.Kind == observe.Acted {
			<-g.open
		}
	})
}

func TestCloseWaitsForAnAction(t *testing.T) {
	inWorld(t, func(w *world) {
		g := gate{make(chan struct{})}
		s := w.serve("", console.Config{AllowActions: true, Observer: g.observer()})
		d, late := s.ready("act?verb=pause&kind=sem&name=gpu"), s.ready("act?verb=pause&kind=sem&name=gpu")
		acted, closed := make(chan answer, 1), make(chan error, 1)
		go func() { acted <- d.post() }()
		synctest.Wait()
		go func() { closed <- s.page.Close(ctx) }()
		synctest.Wait()
		require.Empty(t, closed, "it waits")
		require.Equal(t, http.StatusServiceUnavailable, late.post().code)
		close(g.open)
		require.NoError(t, <-closed)
		require.Equal(t, http.StatusSeeOther, (<-acted).code)
	})
}

func TestAFormIsDoneOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		told, g := w.Process(), gate{make(chan struct{})}
		s := w.serve("", console.Config{AllowActions: true, Observer: observe.Multi(told.Observer(nil), g.observer())})
		held := w.process("worker").permit("anna", "gpu", 1)
		d := s.ready("act?verb=release&kind=sem&name=gpu&claim=" + held.ID())
		answers := make(chan answer, 2)
		for range 2 {
			go func() { answers <- d.post() }()
			synctest.Wait()
		}
		require.Empty(t, answers, "the second waits for the first")
		close(g.open)
		one, two := <-answers, <-answers
		require.Equal(t, http.StatusSeeOther, one.code, one.body)
		require.Equal(t, http.StatusSeeOther, two.code, two.body)
		require.Equal(t, one.head.Get("Location"), two.head.Get("Location"))
		require.Len(t, told.Told(observe.Acted), 1)

		// What has failed is told as often, and done again by a form of its own.
		d = s.ready("act?verb=rest&kind=pool&name=none&resource=such&for=0")
		var again deed
		for range 2 {
			a := d.post()
			require.Equal(t, http.StatusConflict, a.code)
			require.Contains(t, a.body, "It was not done.")
			again = *d
			again.read(a.body)
		}
		require.Len(t, told.Told(observe.Acted), 2)
		require.Equal(t, http.StatusConflict, again.post().code)
		require.Len(t, told.Told(observe.Acted), 3)
		require.Contains(t, s.see("actions"), ">failed<")
	})
}

func TestDrainsGoOnBehindThePageAndTheEleventhIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		s, p := w.acting(w.Process()), w.process("worker/1")
		p.permit("anna", "gpu", 1)
		w.Advance(time.Second)
		const label = "worker/1"
		require.Contains(t, s.see(s.ask("act?verb=drain&label="+label).do()), "it goes on")
		for i := range 8 {
			s.ask("act?verb=drain&label=" + label[:i+1] + "*").do()
		}
		s.ask("act?verb=drain&node=" + p.ID()).do()
		w.Advance(10 * time.Second)
		require.Equal(t, 10, strings.Count(s.see("actions"), ">goes on<"), "a hold is left")
		a := s.ready("act?verb=drain&label=worke*").post()
		require.Equal(t, http.StatusConflict, a.code)
		require.Contains(t, a.body, "10 drains go on from here already")
		s.ask("act?verb=undrain&label=" + label).do()
		require.NoError(t, s.page.Close(ctx), "it waits for no drain")
	})
}

func TestACookieOfASecurePageIsSecure(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.acting(w.Process())
		cookie := func(name, value string) *http.Cookie {
			a := s.get("act?verb=pause&kind=sem&name=gpu", func(r *http.Request) { r.Header.Set(name, value) })
			return (&http.Response{Header: a.head}).Cookies()[0]
		}
		require.True(t, cookie("Referer", "https://console.test/name?kind=sem&name=gpu").Secure)
		require.True(t, cookie("X-Forwarded-Proto", "https").Secure)
		require.False(t, cookie("Referer", "http://console.test/").Secure)
	})
}
