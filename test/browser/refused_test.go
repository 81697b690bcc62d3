package browser

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/keyspace"
)

// scene is what all actions can be tried on.
type scene struct {
	*stage
	actions map[string]string // the address of each, by its verb
	intact  func()            // fails if any of them was done
}

// scene has something for each action.
func (s *stage) scene() *scene {
	s.Helper()
	held, waits := s.turns("gpu", "alpha", "beta")
	alpha := s.node("alpha") // whom a drain would be of
	paused := s.acquire(alpha, "paused", 1, "run").Wait(s)
	require.NoError(s, alpha.Operator().Pause(s.Within(patience), keyspace.Sem, "paused", time.Hour, "it is to stay so"))
	p := s.pool("crawler", "proxies")
	_, err := p.Add(s.Within(patience), []string{"10.0.0.1"}, nil)
	require.NoError(s, err)
	proxy, err := p.Allocate(s.Within(patience), nil)
	require.NoError(s, err)
	address := func(verb string, pairs ...string) string {
		q := url.Values{"verb": {verb}}
		for i := 0; i < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
		return "act?" + q.Encode()
	}
	c := &scene{stage: s, actions: map[string]string{
		"release": address("release", "kind", "sem", "name", "gpu", "claim", held.ID()),
		"pause":   address("pause", "kind", "sem", "name", "gpu"),
		"unpause": address("unpause", "kind", "sem", "name", "paused"),
		"resize":  address("resize", "kind", "sem", "name", "gpu"),
		"rest":    address("rest", "kind", "pool", "name", "proxies", "resource", proxy.Resource()),
		"drain":   address("drain", "node", alpha.ID()),
		"undrain": address("undrain", "node", alpha.ID()),
	}}
	ops := s.poolOperator()
	c.intact = func() {
		s.Helper()
		for _, h := range []berth.Handle{held, paused, proxy} {
			require.NoError(s, h.Renew(s.Within(patience)))
		}
		require.False(s, waits[0].Over())
		gpu := s.read.Look(keyspace.Sem, "gpu")
		require.Nil(s, gpu.Pause)
		require.Equal(s, 1, gpu.Capacity)
		require.NotNil(s, s.read.Look(keyspace.Sem, "paused").Pause)
		info, err := ops.Resource(s.Within(patience), "proxies", proxy.Resource())
		require.NoError(s, err)
		require.Empty(s, info.Reason)
		require.Empty(s, s.told())
	}
	return c
}

// guessed is what a form might bring.
func guessed() url.Values {
	return url.Values{"token": {"x"}, "agreed": {"x"}, "form": {"1"}, "reason": {"mischief"}, "for": {"10m"}, "capacity": {"7"}, "within": {"1s"}, "keep": {"1"}}
}

// entered is all that the form of an action brings, with a reason and another capacity: what is sent with it, is done.
func (l *look) entered() url.Values {
	l.Helper()
	if is[bool](l, `!!document.querySelector("[name=capacity]")`) {
		l.types("[name=capacity]", "7")
		l.types("[name=reason]", "mischief")
		loads := l.Loads()
		l.clicks("form.act button.do") // which asks again
		require.NoError(l, l.Loaded(l.step(), loads))
		l.shows("main", "Read it, and confirm")
	}
	l.types("[name=reason]", "mischief")
	fields := url.Values{}
	for name, value := range is[map[string]string](l, `Object.fromEntries(new FormData(document.querySelector("form.act")))`) {
		fields.Set(name, value)
	}
	require.NotEmpty(l, fields["token"])
	require.NotEmpty(l, fields["agreed"])
	return fields
}

// A page that is read-only offers no action, has no page that asks for one, and refuses what is sent by hand.
func TestReadOnlyRefusesEachAction(t *testing.T) {
	for name, cfg := range map[string]console.Config{
		"to all": {},
		"to whom may not": {AllowActions: true, Access: func(*http.Request) console.Access {
			return console.Access{User: "guest", Look: true}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, cfg).scene()
			l := s.tab()
			for _, path := range []string{"", "name?kind=sem&name=gpu", "name?kind=pool&name=proxies", "name?kind=sem&name=paused", "cycles", "search?by=label&q=alpha"} {
				l.goes(path)
				require.Empty(t, is[[]string](l, `[...document.querySelectorAll("a.act, [href*='act?'], form[method=post], [name=token]")].map(e => e.outerHTML)`), path)
			}
			l.right()
			for verb, address := range s.actions {
				l.goes(address)
				require.Equal(t, http.StatusForbidden, is[int](l, `performance.getEntriesByType("navigation")[0].responseStatus`), verb)
				require.False(t, is[bool](l, `!!document.querySelector("form.act")`), verb)
				require.Equal(t, http.StatusForbidden, is[int](l, fmt.Sprintf(
					`fetch(%s, {method: "POST", body: new URLSearchParams(%s)}).then(r => r.status)`, quoted(address), quoted(guessed().Encode()))), verb)
			}
			l.right(answered(http.StatusForbidden))
			s.intact()
		})
	}
}

// mischief is a page of another site that sends a form.
var mischief = template.Must(template.New("").Parse(`<!doctype html><title>another site</title><link rel=icon href=/icon>
<form action="{{.Action}}" method=post>{{range $name, $values := .Fields}}<input name="{{$name}}" value="{{index $values 0}}">{{end}}<button>win</button></form>`))

// elsewhere serves pages of another origin, which know all that a page of the console knows.
func (s *stage) elsewhere(host string) func(action string, fields url.Values) string {
	s.Helper()
	var page bytes.Buffer
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Path == "/" {
			_, _ = w.Write(page.Bytes())
		}
	}))
	s.Cleanup(served.Close)
	return func(action string, fields url.Values) string {
		s.Helper()
		page.Reset()
		require.NoError(s, mischief.Execute(&page, struct {
			Action string
			Fields url.Values
		}{action, fields}))
		return strings.Replace(served.URL, "127.0.0.1", host, 1) + "/"
	}
}

// No other origin can have anything done, whether it is another site or another program of the same host, and even where it
// has got hold of what the form has.
func TestAnotherOriginIsRefusedEachAction(t *testing.T) {
	for name, host := range map[string]string{"another port": "127.0.0.1", "another site": "localhost"} {
		t.Run(name, func(t *testing.T) {
			s := acting(t).scene()
			from := s.elsewhere(host)
			l := s.tab()
			for verb, address := range s.actions {
				l.goes(address)
				fields := l.entered()
				l.right()

				require.NoError(t, l.Open(l.step(), from(l.base+address, fields)), verb)
				loads := l.Loads()
				l.clicks("button")
				require.NoError(t, l.Loaded(l.step(), loads))
				require.Equal(t, http.StatusForbidden, is[int](l, `performance.getEntriesByType("navigation")[0].responseStatus`), verb)
				l.shows("main", "refused")

				require.NoError(t, l.Open(l.step(), from(l.base+address, fields)), verb)
				require.Equal(t, "refused", is[string](l, fmt.Sprintf(
					`fetch(%s, {method: "POST", mode: "no-cors", credentials: "include", body: new URLSearchParams(%s)}).then(r => r.type, () => "refused")`,
					quoted(l.base+address), quoted(fields.Encode()))), verb)
				// It can neither read the form nor show it in a frame for somebody to click on.
				require.Equal(t, "refused", is[string](l, fmt.Sprintf(`fetch(%s, {credentials: "include"}).then(r => r.text(), () => "refused")`, quoted(l.base+address))), verb)
				require.NoError(t, l.Eval(l.step(), fmt.Sprintf(
					`new Promise(loaded => { const f = document.createElement("iframe"); f.onload = loaded; f.src = %s; document.body.append(f); })`, quoted(l.base+address)), nil))
				require.Contains(t, strings.Join(l.Wrong(), "\n"), "frame-ancestors", verb)
			}
			s.intact()

			// What was refused is what is done where it comes from the page itself.
			l.goes(s.actions["pause"])
			require.Equal(t, http.StatusOK, is[int](l, fmt.Sprintf(
				`fetch(location.href, {method: "POST", body: new URLSearchParams(%s)}).then(r => r.status)`, quoted(l.entered().Encode()))))
			require.NotNil(t, s.read.Look(keyspace.Sem, "gpu").Pause)
		})
	}
}

// The page of another browser's session has another token.
func TestATokenIsOfItsSession(t *testing.T) {
	s := acting(t).scene()
	one, other := s.tab(), s.tab()
	one.goes(s.actions["pause"])
	token := one.entered().Get("token")
	other.goes(s.actions["pause"])
	fields := other.entered()
	require.NotEqual(t, token, fields.Get("token"))
	for _, token := range []string{token, "", strings.Repeat("0", len(token))} {
		fields.Set("token", token)
		require.Equal(t, http.StatusForbidden, is[int](other, fmt.Sprintf(
			`fetch(location.href, {method: "POST", body: new URLSearchParams(%s)}).then(r => r.status)`, quoted(fields.Encode()))))
	}
	s.intact()
	one.right()
	other.right(answered(http.StatusForbidden))
}
