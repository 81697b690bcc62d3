package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/browser/chrome"
)

// look is a page that is open.
type look struct {
	*stage
	*chrome.Tab
	base string // the console's address
}

// tab opens an empty page.
func (s *stage) tab() *look {
	s.Helper()
	tab, err := chromium(s.T).Tab()
	require.NoError(s, err)
	s.Cleanup(tab.Close)
	return &look{s, tab, s.console.URL + "/"}
}

// open opens a page of the console, and returns when it is live.
func (s *stage) open(path string) *look {
	s.Helper()
	l := s.tab()
	l.goes(path)
	l.until(`document.querySelector(".live.on")`)
	return l
}

// step bounds one step.
func (l *look) step() context.Context { return l.Within(patience) }

// run runs a part of the test on the page.
func (l *look) run(name string, part func()) {
	l.Helper()
	whole := l.T
	defer func() { l.T = whole }()
	whole.Run(name, func(t *testing.T) {
		l.T = t
		part()
	})
}

// goes goes to a page of the console.
func (l *look) goes(path string) {
	l.Helper()
	require.NoError(l, l.Open(l.step(), l.base+path))
}

// until waits until an expression is true.
func (l *look) until(expression string) {
	l.Helper()
	require.NoError(l, l.Until(l.step(), expression))
}

// shows waits until a part of the page has a text, in whatever case: a style may change that.
func (l *look) shows(selector, text string) {
	l.Helper()
	l.until(`[...document.querySelectorAll(` + quoted(selector) + `)].some(e => e.textContent.replace(/\s+/g, " ").includes(` + quoted(text) + `))`)
}

// hides waits until no such part has a text.
func (l *look) hides(selector, text string) {
	l.Helper()
	l.until(`![...document.querySelectorAll(` + quoted(selector) + `)].some(e => e.textContent.replace(/\s+/g, " ").includes(` + quoted(text) + `))`)
}

// is is the value of an expression.
func is[T any](l *look, expression string) (value T) {
	l.Helper()
	require.NoError(l, l.Eval(l.step(), expression, &value))
	return value
}

// presses presses keys.
func (l *look) presses(keys string) {
	l.Helper()
	require.NoError(l, l.Do(l.step(), chromedp.KeyEvent(keys)))
}

// clicks clicks what a person sees.
func (l *look) clicks(selector string) {
	l.Helper()
	require.NoError(l, l.Do(l.step(), chromedp.Click(chromedp.CSS(selector))))
}

// types types into a field.
func (l *look) types(selector, text string) {
	l.Helper()
	require.NoError(l, l.Do(l.step(), chromedp.Clear(chromedp.CSS(selector)), chromedp.SendKeys(chromedp.CSS(selector), text)))
}

// right fails if anything went wrong on the page but what is expected.
func (l *look) right(but ...string) {
	l.Helper()
	wrong := slices.DeleteFunc(l.Wrong(), func(s string) bool {
		return slices.ContainsFunc(but, func(b string) bool { return strings.Contains(s, b) })
	})
	require.Empty(l, wrong)
}

func quoted(s string) string {
	text, _ := json.Marshal(s) // it is a text
	return string(text)
}

// answered is what the browser says of a page that is answered with a code.
func answered(code int) string { return fmt.Sprintf("status of %d", code) }
