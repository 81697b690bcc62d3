package chrome_test

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/test/browser/chrome"
)

// patience bounds what must happen. It is far above what anything takes.
const patience = 3 * time.Minute

// opened is a tab with a page of that body, under a policy that allows scripts of its own origin alone.
func opened(t *testing.T, body string) (*chrome.Tab, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Security-Policy", "default-src 'self'")
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte("<!doctype html><html lang=en><title>t</title><link rel=icon href=/icon>" + body))
		case "/script.js":
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(r.URL.Query().Get("is")))
		case "/icon":
			w.WriteHeader(http.StatusNoContent)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	tab, err := browser.Tab()
	require.NoError(t, err)
	t.Cleanup(tab.Close)
	require.NoError(t, tab.Open(ctx, server.URL))
	return tab, ctx
}

func TestWhatAPageMustNotDoIsNoted(t *testing.T) {
	for name, c := range map[string]struct{ body, noted string }{
		"a dialog":             {`<script src="/script.js?is=alert('hello')"></script>`, `a dialog opened: alert "hello"`},
		"a script that fails":  {`<script src="/script.js?is=undefinedName()"></script>`, `undefinedName is not defined`},
		"an error it tells":    {`<script src="/script.js?is=console.error('oh')"></script>`, `the console has: "oh"`},
		"what is not there":    {`<img src="/nothing">`, `404`},
		"a script in the page": {`<script>document.title = "mine"</script>`, `the policy: script-src-elem refused inline`},
		"a script in a tag":    {`<img src="/script.js" onerror="alert(1)">`, `the policy: script-src-attr refused inline`},
		"style in the page":    {`<p style="color: red">x`, `the policy: style-src-attr refused inline`},
		"another host":         {`<img src="http://127.0.0.1:1/">`, `the policy: img-src refused http://127.0.0.1:1/`},
	} {
		t.Run(name, func(t *testing.T) {
			tab, ctx := opened(t, c.body)
			require.NoError(t, tab.Until(ctx, `document.readyState == "complete"`))
			require.Contains(t, strings.Join(tab.Wrong(), "\n"), c.noted)
			require.Empty(t, tab.Wrong(), "it is told once")
		})
	}
}

func TestAPageThatDoesNothingWrong(t *testing.T) {
	tab, ctx := opened(t, `<h1>Hello</h1><script src="/script.js?is=document.title='mine'"></script>`)
	require.NoError(t, tab.Until(ctx, `document.title == "mine"`))
	require.Empty(t, tab.Wrong())
	text, err := tab.Text(ctx)
	require.NoError(t, err)
	require.Equal(t, "Hello", text)
}

func TestEachTabHasCookiesOfItsOwn(t *testing.T) {
	first, ctx := opened(t, "")
	require.NoError(t, first.Eval(ctx, `document.cookie = "a=1"`, nil))
	var url, cookie string
	require.NoError(t, first.Eval(ctx, `location.href`, &url))
	second, err := browser.Tab()
	require.NoError(t, err)
	defer second.Close()
	require.NoError(t, second.Open(ctx, url))
	require.NoError(t, second.Eval(ctx, `document.cookie`, &cookie))
	require.Empty(t, cookie)
	require.NoError(t, first.Eval(ctx, `document.cookie`, &cookie))
	require.Equal(t, "a=1", cookie)
}

func TestAWaitThatIsInVainEndsWithWhatThePageHas(t *testing.T) {
	tab, ctx := opened(t, "<p>what it has")
	soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	err := tab.Until(soon, "false")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "what it has")
	require.NoError(t, tab.Until(ctx, "true"), "the tab goes on")
	require.Error(t, tab.Eval(ctx, "no()", nil))
	require.Error(t, tab.Open(ctx, "http://127.0.0.1:1/"))
}

func TestADocumentIsCounted(t *testing.T) {
	tab, ctx := opened(t, "")
	before := tab.Loads()
	require.NoError(t, tab.Eval(ctx, `document.body.append("more")`, nil))
	require.Equal(t, before, tab.Loads())
	require.NoError(t, tab.Do(ctx, chromedp.Reload()))
	require.Equal(t, before+1, tab.Loads())
}

func TestScriptsCanBeTurnedOff(t *testing.T) {
	tab, ctx := opened(t, `<p>bare<script src="/script.js?is=document.body.append('run')"></script>`)
	text, err := tab.Text(ctx)
	require.NoError(t, err)
	require.Equal(t, "bare\n\nrun", text)
	require.NoError(t, tab.Scripts(ctx, false))
	require.NoError(t, tab.Do(ctx, chromedp.Reload()))
	text, err = tab.Text(ctx)
	require.NoError(t, err)
	require.Equal(t, "bare", text)
}

func TestAPictureIsOfTheWholePageAsItIsLookedAt(t *testing.T) {
	tab, ctx := opened(t, `<p>x`)
	require.NoError(t, tab.Eval(ctx, `document.body.style.height = "3000px"`, nil))
	require.NoError(t, tab.Look(ctx, chrome.Looks{Width: 390, Height: 500, Dark: true}))
	var dark bool
	require.NoError(t, tab.Eval(ctx, `matchMedia("(prefers-color-scheme: dark)").matches`, &dark))
	require.True(t, dark)
	picture, err := tab.Picture(ctx)
	require.NoError(t, err)
	size, err := png.DecodeConfig(bytes.NewReader(picture))
	require.NoError(t, err)
	require.Equal(t, 390, size.Width)
	require.GreaterOrEqual(t, size.Height, 3000)
}

func TestWhatAScreenReaderTells(t *testing.T) {
	tab, ctx := opened(t, `<main><a href="/">home</a></main>`)
	parts, err := tab.Parts(ctx)
	require.NoError(t, err)
	require.Contains(t, parts, chrome.Part{Role: "main"})
	require.Contains(t, parts, chrome.Part{Role: "link", Name: "home"})
}

var browser *chrome.Browser

func TestMain(m *testing.M) {
	var err error
	if browser, err = chrome.Start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	browser.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
