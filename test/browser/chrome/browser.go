package chrome

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/chromedp/chromedp"
)

// Variable names the browser to use, where it is not one of those in PATH.
const Variable = "BERTH_TEST_BROWSER"

// usual are the names that packages give it.
var usual = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// startLimit bounds the start of the browser, far above what it takes on a machine that is busy.
const startLimit = 3 * time.Minute

// Browser is one that runs, with a profile of its own, which ends with it.
type Browser struct {
	ctx context.Context
	end []func()
}

// Start starts a browser. It ends with ctx, or with Close.
func Start(ctx context.Context) (*Browser, error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	b := &Browser{}
	options := append(chromedp.DefaultExecAllocatorOptions[:len(chromedp.DefaultExecAllocatorOptions):len(chromedp.DefaultExecAllocatorOptions)],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // root has none
		chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(startLimit),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("font-render-hinting", "none"), // pictures are the same on all machines with the same fonts
		chromedp.Flag("lang", "en-US"),
	)
	alloc, end := chromedp.NewExecAllocator(ctx, options...)
	b.end = append(b.end, end)
	b.ctx, end = chromedp.NewContext(alloc)
	b.end = append(b.end, end)
	if err := chromedp.Do(b.ctx); err != nil {
		b.Close()
		return nil, fmt.Errorf("starting %s: %w", path, err)
	}
	return b, nil
}

// Close ends the browser and all its tabs, and waits for it.
func (b *Browser) Close() {
	for len(b.end) > 0 {
		last := len(b.end) - 1
		b.end[last]()
		b.end = b.end[:last]
	}
}

// PID is the id of its process.
func (b *Browser) PID() int { return chromedp.FromContext(b.ctx).Browser.Process().Pid }

func find() (string, error) {
	if named := os.Getenv(Variable); named != "" {
		return exec.LookPath(named)
	}
	for _, name := range usual {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no browser: none of %q is in PATH; run tools/setup.sh chromium, or have %s name one", usual, Variable)
}
