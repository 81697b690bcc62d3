package chrome

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Tab is a page that is open. Its methods are called by one goroutine at a time.
type Tab struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	wrong []string // guarded by mu
	loads int      // guarded by mu: how many documents there were
}

// refused is what a page tells what its policy has refused.
const refused = "berthRefused"

const listen = `document.addEventListener("securitypolicyviolation", e => ` + refused +
	`(e.effectiveDirective + " refused " + e.blockedURI + " " + e.sample), true)`

// Tab opens an empty page. It ends with ctx, or with Close.
func (b *Browser) Tab() (*Tab, error) {
	t := &Tab{}
	t.ctx, t.cancel = chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(t.hear))
	err := chromedp.Do(t.ctx)
	if err == nil {
		_, err = chromedp.Call(t.ctx, runtime.AddBinding, runtime.AddBindingParams{Name: refused})
	}
	if err == nil {
		_, err = chromedp.Call(t.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: listen})
	}
	if err != nil {
		t.cancel()
		return nil, err
	}
	return t, nil
}

// Close closes the tab.
func (t *Tab) Close() { t.cancel() }

// hear notes what is wrong. It is called by what reads the browser's messages, so it calls nothing that waits for one.
func (t *Tab) hear(event any) {
	switch e := event.(type) {
	case *page.EventFrameNavigated:
		if e.Frame.ParentID == "" {
			t.mu.Lock()
			t.loads++
			t.mu.Unlock()
		}
	case *page.EventJavascriptDialogOpening:
		t.note("a dialog opened: %s %q", e.Type, e.Message)
		go func() {
			// The page stands still until it is answered.
			_, _ = chromedp.Call(t.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		}()
	case *runtime.EventExceptionThrown:
		t.note("a script failed: %s", (&chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails}).Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			t.note("the console has: %s", said(e.Args))
		}
	case *runtime.EventBindingCalled:
		if e.Name == refused {
			t.note("the policy: %s", e.Payload)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			t.note("the log has: %s (%s)", e.Entry.Text, e.Entry.URL)
		}
	}
}

func said(args []*runtime.RemoteObject) string {
	var all []string
	for _, arg := range args {
		text := string(arg.Value)
		if text == "" {
			text = arg.Description
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func (t *Tab) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
}

// Wrong is what went wrong since it was last asked, and forgets it.
func (t *Tab) Wrong() []string {
	// Whatever happened before this call's answer has been told before it.
	_, _ = chromedp.Call(t.ctx, runtime.Evaluate, runtime.EvaluateParams{Expression: "0"})
	t.mu.Lock()
	defer t.mu.Unlock()
	wrong := t.wrong
	t.wrong = nil
	return wrong
}

// Loads is how many documents the tab has loaded: a page that changes by itself stays the same one.
func (t *Tab) Loads() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.loads
}

// Loaded waits until the tab has loaded more documents than that, and the last one whole.
func (t *Tab) Loaded(ctx context.Context, than int) error {
	for t.Loads() <= than {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("nothing more was loaded: %w", context.Cause(ctx))
		}
	}
	return t.Until(ctx, `document.readyState == "complete"`)
}

// limited bounds a step. The browser and the tab outlive it.
func (t *Tab) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	own, cancel := context.WithCancelCause(t.ctx)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return own, func() { stop(); cancel(nil) }
}

// Do takes steps.
func (t *Tab) Do(ctx context.Context, steps ...chromedp.Action[chromedp.Void]) error {
	own, cancel := t.limited(ctx)
	defer cancel()
	return chromedp.Do(own, steps...)
}

// Open goes to an address, and returns when the page has loaded.
func (t *Tab) Open(ctx context.Context, url string) error {
	if err := t.Do(ctx, chromedp.Navigate(url)); err != nil {
		return fmt.Errorf("opening %s: %w", url, err)
	}
	return nil
}

// Eval is the value of an expression, after the promise that it may be.
func (t *Tab) Eval(ctx context.Context, expression string, into any) error {
	own, cancel := t.limited(ctx)
	defer cancel()
	yes := true
	result, err := chromedp.Call(own, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ReturnByValue: &yes, AwaitPromise: &yes})
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", expression, err)
	case result.ExceptionDetails != nil:
		return fmt.Errorf("%s: %w", expression, &chromedp.ExceptionError{ExceptionDetails: result.ExceptionDetails})
	case into == nil || len(result.Result.Value) == 0:
		return nil
	}
	return json.Unmarshal(result.Result.Value, into)
}

// Until waits until an expression is true. It may be asked of one document after another.
func (t *Tab) Until(ctx context.Context, expression string) error {
	for {
		var is bool
		err := t.Eval(ctx, "!!("+expression+")", &is)
		if is {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			text, _ := t.Text(t.ctx)
			return fmt.Errorf("never true: %s: %w; the page has: %s", expression, errors.Join(context.Cause(ctx), err), text)
		}
	}
}

// Text is what a person reads on the page.
func (t *Tab) Text(ctx context.Context) (text string, err error) {
	err = t.Eval(ctx, `document.body ? document.body.innerText : ""`, &text)
	return text, err
}

// Looks is how a page is looked at.
type Looks struct {
	Width, Height int
	Dark          bool
}

// Look has the page be looked at so.
func (t *Tab) Look(ctx context.Context, as Looks) error {
	scheme := "light"
	if as.Dark {
		scheme = "dark"
	}
	return t.Do(ctx, chromedp.EmulateViewport(int64(as.Width), int64(as.Height)), command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	}))
}

// Scripts says whether scripts are run in the pages that are opened from now on.
func (t *Tab) Scripts(ctx context.Context, run bool) error {
	return t.Do(ctx, command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !run}))
}

// Picture is a PNG of the whole page.
func (t *Tab) Picture(ctx context.Context) ([]byte, error) {
	own, cancel := t.limited(ctx)
	defer cancel()
	return chromedp.Run(own, chromedp.FullScreenshot(100))
}

// Part is one of what a screen reader tells of a page.
type Part struct{ Role, Name string }

// Parts is what a screen reader tells of the page.
func (t *Tab) Parts(ctx context.Context) ([]Part, error) {
	own, cancel := t.limited(ctx)
	defer cancel()
	tree, err := chromedp.Call(own, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		return nil, err
	}
	var parts []Part
	for _, node := range tree.Nodes {
		if !node.Ignored {
			parts = append(parts, Part{valueOf(node.Role), valueOf(node.Name)})
		}
	}
	return slices.DeleteFunc(parts, func(p Part) bool { return p == Part{} }), nil
}

func valueOf(v *accessibility.Value) (text string) {
	if v != nil {
		_ = json.Unmarshal(v.Value, &text) // what is no text has none
	}
	return text
}

// command is a step that gives the browser an order.
func command[P, R any](what cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, what, params)
		return err
	})
}
