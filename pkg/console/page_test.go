package console_test

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/console"
)

func TestEveryAnswerHasItsPolicy(t *testing.T) {
	onSite(t, func(_ *world, s *site) {
		for _, address := range []string{"", "name?kind=sem&name=gpu", "name?kind=x", "nowhere", "healthz", "static/console.css", "events?page=none"} {
			h := s.get(address).head
			require.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self';", address)
			require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), address)
			require.Equal(t, "same-origin", h.Get("Cross-Origin-Opener-Policy"), address)
			require.Equal(t, "no-store", h.Get("Cache-Control"), address)
		}
	})
}

// elementsOf are the elements of a page, each with its attributes.
func elementsOf(t *testing.T, page string) (all []xml.StartElement) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err, page)
		if e, ok := token.(xml.StartElement); ok {
			all = append(all, e.Copy())
		}
	}
}

// linksOf are the links of a page that begin so.
func linksOf(t *testing.T, page, begin string) (links []string) {
	t.Helper()
	for _, e := range elementsOf(t, page) {
		for _, a := range e.Attr {
			if a.Name.Local == "href" && strings.HasPrefix(a.Value, begin) {
				links = append(links, a.Value)
			}
		}
	}
	return links
}

// requireHarmless fails for what a policy would have to keep off.
func requireHarmless(t *testing.T, page string) {
	t.Helper()
	for _, e := range elementsOf(t, page) {
		require.NotContains(t, []string{"style", "img", "iframe", "object", "base", "b"}, e.Name.Local)
		for _, a := range e.Attr {
			require.NotEqual(t, "style", a.Name.Local)
			require.False(t, strings.HasPrefix(a.Name.Local, "on"), a.Name.Local)
			if a.Name.Local == "href" || a.Name.Local == "src" || a.Name.Local == "action" {
				require.NotRegexp(t, `^(/|[a-zA-Z]+:)`, a.Value, "it is relative")
			}
		}
		require.True(t, e.Name.Local != "script" || len(e.Attr) > 0, "an inline script")
	}
}

func TestStrangersTextIsText(t *testing.T) {
	onSite(t, func(w *world, s *site) {
		p := w.process(`"><img src=x onerror=alert(1)>`)
		for _, name := range []string{`<script>alert(1)</script>`, `a"b'c&d`, "javascript:alert(1)", "a b/../c?d#e%2f", "größe 日本"} {
			held := p.permit("<b>\xff\u202e</b>\n", name, 1)
			waits := p.awaitPermit("' onclick='x", name, 1)
			w.Advance(3 * time.Second)
			list := s.see("")
			requireHarmless(t, list)

			link := "name?" + url.Values{"kind": {"sem"}, "name": {name}}.Encode()
			require.Contains(t, linksOf(t, list, "name?"), link)
			page := s.see(link)
			requireHarmless(t, page)
			require.Contains(t, page, `&#34;&lt;b&gt;\xff\u202e&lt;/b&gt;\n&#34;`)

			page = s.see(linksOf(t, page, "claim?")[0])
			requireHarmless(t, page)
			require.Contains(t, page, `\xff\u202e`)
			require.NoError(t, held.Release(ctx))
			require.NoError(t, waits.Granted(w.Now()).Release(ctx))
		}
	})
}

func TestItIsMountedAnywhereAndOfTheFilesOnlyEachIsServed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.process("first").permit("", "gpu", 1)
		for _, prefix := range []string{"", "/berth", "/a/b"} {
			s := w.serve(prefix, console.Config{})
			page := s.see("name?kind=sem&name=gpu")
			requireHarmless(t, page)
			file := s.get(linksOf(t, page, "static/console.css")[0])
			require.Equal(t, "public, max-age=31536000, immutable", file.head.Get("Cache-Control"))
			require.Equal(t, http.StatusOK, s.get("static/console.css").code)
			for _, address := range []string{
				"static", "static/", "static/x", "static/index.html", "static/console.css/", "static/..%2ftemplates%2flayout.html",
			} {
				a := s.get(address)
				require.Equal(t, http.StatusNotFound, a.code, address)
				require.NotContains(t, a.body, "{{", address)
			}
			for _, address := range []string{"/static/.", "/static//console.css", "//names", "/.."} {
				out := httptest.NewRecorder() // no mux before it
				s.page.ServeHTTP(out, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+address, nil))
				require.Equal(t, http.StatusNotFound, out.Code, "%s leads to %s", address, out.Header().Get("Location"))
			}
		}
	})
}

// A link of a wiki leads here. What another site has a browser load takes no stream, and nothing is read for it.
func TestWhatAnotherSiteLoadsIsRefused(t *testing.T) {
	onSite(t, func(_ *world, s *site) {
		as := func(site, mode, dest string) func(*http.Request) {
			return func(r *http.Request) {
				r.Header.Set("Sec-Fetch-Site", site)
				r.Header.Set("Sec-Fetch-Mode", mode)
				r.Header.Set("Sec-Fetch-Dest", dest)
			}
		}
		for _, address := range []string{
			"", "names", "search?q=gpu", "name?kind=sem&name=gpu", "act?verb=pause&kind=sem&name=gpu", "static/console.css", "healthz",
			"events?page=overview",
		} {
			require.Equal(t, http.StatusForbidden, s.get(address, as("cross-site", "no-cors", "image")).code, address)
			require.Equal(t, http.StatusForbidden, s.get(address, as("same-site", "navigate", "iframe")).code, address)
		}
		for _, address := range []string{"", "names", "static/console.css", "healthz"} {
			require.Equal(t, http.StatusOK, s.get(address, as("cross-site", "navigate", "document")).code, address)
		}
		require.Equal(t, http.StatusForbidden, s.get("events?page=overview", as("cross-site", "navigate", "document")).code, "no page")
	})
}

func TestAMountWithoutItsSlashLeadsToTheFolder(t *testing.T) {
	onSite(t, func(_ *world, s *site) {
		ask := func(prefix, address string) *httptest.ResponseRecorder {
			out := httptest.NewRecorder()
			http.StripPrefix(prefix, s.page).ServeHTTP(out, httptest.NewRequest(http.MethodGet, address, nil))
			return out
		}
		out := ask("/a/berth", "/a/berth?kind=sem")
		require.Equal(t, http.StatusPermanentRedirect, out.Code)
		require.Equal(t, "./berth/", out.Header().Get("Location"), "relative to /a/")
		require.Equal(t, http.StatusOK, ask("/a/berth/", "/a/berth/names").Code)
	})
}

func TestWhatCannotBeAskedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve("", console.Config{Hosts: []string{"console.test"}})
		require.Equal(t, http.StatusBadRequest, s.get("name?kind=sem&name=%ff").code)
		require.Equal(t, http.StatusBadRequest, s.get("name?kind=node&name=x").code)
		require.Equal(t, http.StatusBadRequest, s.get("?kind=x").code)
		require.Equal(t, http.StatusNotFound, s.get("nowhere").code)
		require.Equal(t, http.StatusNotFound, s.get("events?page=names").code, "it is not live")
		deep := s.get("a/b")
		require.Equal(t, http.StatusNotFound, deep.code)
		require.NotEmpty(t, linksOf(t, deep.body, "../static/console.css"))
		require.Empty(t, linksOf(t, deep.body, "static/"))
		require.Len(t, linksOf(t, deep.body, "../"), 10)
		as := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
		require.Equal(t, http.StatusForbidden, s.get("", as("evil.test")).code)
		require.Equal(t, http.StatusForbidden, s.get("healthz", as("evil.test:8080")).code)
		require.Equal(t, http.StatusOK, s.get("", as("[::1]:8080")).code)
		require.Equal(t, http.StatusOK, s.get("", as("CONSOLE.test:80")).code)
	})
}

func TestWhoMayLook(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.serve("", console.Config{Access: func(r *http.Request) console.Access {
			return console.Access{User: r.Header.Get("User"), Look: r.Header.Get("User") != ""}
		}})
		require.Equal(t, http.StatusForbidden, s.get("").code)
		require.Equal(t, http.StatusForbidden, s.get("events?page=overview").code)
		require.Equal(t, http.StatusOK, s.get("healthz").code, "a probe has no user")
		a := s.get("", func(r *http.Request) { r.Header.Set("User", "<anna>") })
		require.Equal(t, http.StatusOK, a.code)
		require.Contains(t, a.body, "&lt;anna&gt;, read-only")
	})
}
