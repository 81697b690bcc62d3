package browser

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/test/browser/chrome"
	"github.com/berth-go/berth/test/browser/jam"
	"github.com/berth-go/berth/test/harness"
)

const patience = testkit.Patience

func TestMain(m *testing.M) {
	jam.Dies()
	os.Exit(harness.Main(m, shared.end))
}

// common is what all tests share: the browser, and a jam at which they only look.
type common struct {
	once    sync.Once
	browser *chrome.Browser
	err     error

	jammed  sync.Once
	jam     *jam.Jam
	failure error
}

var shared common

func (c *common) end() error {
	if c.browser != nil {
		c.browser.Close()
	}
	if c.jam == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.jam.Close(ctx)
}

// chromium is the browser.
func chromium(t *testing.T) *chrome.Browser {
	t.Helper()
	shared.once.Do(func() { shared.browser, shared.err = chrome.Start(context.Background()) })
	require.NoError(t, shared.err)
	return shared.browser
}

const jammed = "jam"

// jamOf is the jam, on the server that tests share.
func jamOf(t *testing.T) *jam.Jam {
	t.Helper()
	shared.jammed.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		shared.jam, shared.failure = jam.Make(ctx, jam.Config{URL: harness.Shared(t).URL(), Namespace: jammed})
	})
	require.NoError(t, shared.failure)
	return shared.jam
}
