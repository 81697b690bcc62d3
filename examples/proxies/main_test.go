package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/berthtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// proxy is a proxy that answers by itself. It counts what it was asked for.
type proxy struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // guarded by mu
}

func startProxy(t *testing.T, status int) *proxy {
	t.Helper()
	p := &proxy{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked = append(p.asked, r.URL.String())
		p.mu.Unlock()
		w.WriteHeader(status)
		_, _ = w.Write([]byte(p.URL))
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) pages() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func list(proxies ...*proxy) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) {
		var all []string
		for _, p := range proxies {
			all = append(all, p.URL)
		}
		return all, nil
	}
}

func TestThePagesOfASiteAreFetchedAndEachOnce(t *testing.T) {
	t.Parallel()
	one, two := startProxy(t, http.StatusOK), startProxy(t, http.StatusOK)
	var mu sync.Mutex
	found := map[string]int{}
	pages := []string{"http://a.example/1", "http://a.example/2", "http://b.example/1", "http://b.example/2", "://"}
	err := run(t.Context(), berthtest.Redis(t), list(one, two), pages, func(page string, _ []byte) {
		mu.Lock()
		defer mu.Unlock()
		found[page]++
	})
	require.NoError(t, err)
	require.Equal(t, map[string]int{pages[0]: 1, pages[1]: 1, pages[2]: 1, pages[3]: 1}, found)
	require.ElementsMatch(t, pages[:4], append(one.pages(), two.pages()...))
}

func TestASiteStaysWithItsProxyUntilItRefusesIt(t *testing.T) {
	t.Parallel()
	refuses, works := startProxy(t, http.StatusTooManyRequests), startProxy(t, http.StatusOK)
	pools, err := allocator.New(berthtest.Redis(t), allocator.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pools.Close(context.Background())) })
	proxies, err := allocator.NewPool(pools, "proxies", allocator.PoolConfig[*http.Client]{
		Open: open, Close: func(proxy *http.Client) error { proxy.CloseIdleConnections(); return nil },
	})
	require.NoError(t, err)
	_, err = proxies.Add(t.Context(), []string{refuses.URL, works.URL}, nil)
	require.NoError(t, err)

	for range 3 {
		body, err := fetch(t.Context(), proxies, "http://a.example/")
		require.NoError(t, err)
		require.Equal(t, works.URL, string(body))
	}
	require.Len(t, refuses.pages(), 1)
	info, err := pools.Operator().Resource(t.Context(), "proxies", refuses.URL)
	require.NoError(t, err)
	require.Equal(t, allocator.Resting, info.State)
	require.Contains(t, info.Reason, "429")
	bound, err := proxies.Binding(t.Context(), "a.example")
	require.NoError(t, err)
	require.Equal(t, works.URL, bound.Resource)
}

func TestAProxyThatDoesNotAnswerIsOfNoUse(t *testing.T) {
	t.Parallel()
	gone := startProxy(t, http.StatusOK)
	gone.Close()
	client, err := open(t.Context(), gone.URL)
	require.NoError(t, err)
	_, err = get(t.Context(), client, "http://a.example/")
	require.ErrorIs(t, err, errNoUse)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = get(over, client, "http://a.example/")
	require.NotErrorIs(t, err, errNoUse, "it was not asked")
	require.ErrorIs(t, err, context.Canceled)
}

func TestTheListIsReadFromAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "proxies.txt")
	_, err := fromFile(path)(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(path, []byte("http://10.0.0.1:3128\nhttp://10.0.0.2:3128\n"), 0o600))
	proxies, err := fromFile(path)(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"http://10.0.0.1:3128", "http://10.0.0.2:3128"}, proxies)
}

func TestTheProgramEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{}, 100)
	redis, ended := berthtest.Redis(t), make(chan error)
	go func() {
		noList := func(context.Context) ([]string, error) { asked <- struct{}{}; return nil, errors.New("no list today") }
		ended <- run(ctx, redis, noList, []string{"http://a.example/"}, func(string, []byte) { panic("there is no proxy") })
	}()
	<-asked
	cancel()
	require.NoError(t, <-ended)
}
