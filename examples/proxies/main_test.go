package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	crawlers = 20
	each     = 15 // pages of each crawler
)

// web is what all crawlers fetch from. It bans each third proxy.
type web struct {
	mu      sync.Mutex
	busy    map[string]bool      // guarded by mu, by proxy
	ended   map[string]time.Time // guarded by mu, by proxy: its last use
	banned  map[string]bool      // guarded by mu, by proxy
	fetched map[string]int       // guarded by mu, by page
	faults  []string             // guarded by mu
}

func newWeb() *web {
	return &web{busy: map[string]bool{}, ended: map[string]time.Time{}, banned: map[string]bool{}, fetched: map[string]int{}}
}

func (w *web) fetch(ctx context.Context, proxy, page string) error {
	w.begin(proxy)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	return w.end(proxy, page)
}

func (w *web) begin(proxy string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch last, again := w.ended[proxy]; {
	case w.busy[proxy]:
		w.faults = append(w.faults, proxy+" is used by two")
	case w.banned[proxy]:
		w.faults = append(w.faults, proxy+" is used though it is banned")
	case again && time.Since(last) < 5*time.Second-time.Millisecond: // the server counts whole ones
		w.faults = append(w.faults, fmt.Sprintf("%s has rested for %s", proxy, time.Since(last)))
	}
	w.busy[proxy] = true
}

func (w *web) end(proxy, page string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy[proxy], w.ended[proxy] = false, time.Now()
	if number, _ := strconv.Atoi(proxy); number%3 == 0 {
		w.banned[proxy] = true
		return fmt.Errorf("status 403: %w", os.ErrPermission)
	}
	w.fetched[page]++
	return nil
}

// In virtual time, each crawler with a client of its own, as if it were a process. With few proxies
// there is often none to swap to.
func TestTwentyCrawlersShareTheProxies(t *testing.T) {
	t.Parallel()
	for _, proxies := range []int{200, 30} {
		t.Run(strconv.Itoa(proxies), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := berthtest.New(t)
				own := server.Node(node.Config{})
				pool := allocator.New(own, "proxies", allocator.Config[string]{})
				all := make([]string, proxies)
				for i := range all {
					all[i] = strconv.Itoa(i)
				}
				_, err := pool.Add(t.Context(), all, nil)
				require.NoError(t, err)
				web := newWeb()
				var crawling sync.WaitGroup
				for i := range crawlers {
					pages := make([]string, each)
					for j := range pages {
						pages[j] = fmt.Sprintf("https://%d.example/%d", i, j)
					}
					own := server.Node(node.Config{}) // of another process
					crawling.Go(func() {
						if err := crawl(t.Context(), own, pages, web.fetch); err != nil {
							t.Error(err)
						}
					})
				}
				crawling.Wait()
				require.Empty(t, web.faults)
				require.Len(t, web.fetched, crawlers*each, "all work is done")
				for page, times := range web.fetched {
					require.Equal(t, 1, times, page)
				}
				reader, err := inspect.New(server.Client(), inspect.Config{})
				require.NoError(t, err)
				n, err := reader.Name(t.Context(), keyspace.Pool, "proxies")
				require.NoError(t, err)
				require.Zero(t, n.Held+n.Waiting)
				require.NotEmpty(t, web.banned)
				for proxy := range web.banned {
					info, err := allocator.NewOperator(own).Resource(t.Context(), "proxies", proxy)
					require.NoError(t, err)
					require.Equal(t, "banned", info.Reason)
					require.Greater(t, info.Left, 23*time.Hour)
				}
			})
		})
	}
}
