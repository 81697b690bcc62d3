package allocator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/observe"
)

// watchedPool is a pool of a client of its own on an embedded server, whose values
// are their keys in capitals.
type watchedPool struct {
	*Pool[string]
	client *Client
	mu     sync.Mutex
	told   []string // guarded by mu: of the events of refreshing and of health
	closed []string // guarded by mu: the values
}

func (p *watchedPool) lists() (told, closed []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.told), slices.Clone(p.closed)
}

func watchPool(t *testing.T, w *testkit.World, change func(*PoolConfig[string])) *watchedPool {
	t.Helper()
	redis, err := w.Server.Client(testkit.RarePings)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	p := &watchedPool{}
	p.client, err = New(redis, Config{Observer: observe.Func(func(ev observe.Event) {
		switch ev.Kind {
		case observe.Refreshed, observe.RefreshFailed, observe.Unhealthy, observe.HealthChecked, observe.HealthProgress:
			text := fmt.Sprint(ev.Name, ": ", ev.Kind, " ", ev.Resource, ev.Count)
			if ev.Err != nil {
				text += " " + ev.Err.Error()
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.told = append(p.told, text)
		}
	})})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.client.Close(context.Background()) })
	cfg := PoolConfig[string]{
		Open: func(_ context.Context, resource string) (string, error) { return strings.ToUpper(resource), nil },
		Close: func(value string) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.closed = append(p.closed, value)
			return nil
		},
		RefreshEvery: time.Minute,
	}
	change(&cfg)
	p.Pool, err = NewPool(p.client, "proxies", cfg)
	require.NoError(t, err)
	return p
}

func inServer(t *testing.T, test func(t *testing.T, w *testkit.World)) {
	t.Helper()
	testkit.In(t, "proxies", "berth:pool:{proxies}:state", "berth:pool:{proxies}:line", test)
}

// takes allocates resources, which must be these, and returns how to give them back.
func (p *watchedPool) takes(t *testing.T, resources ...string) (giveBack func()) {
	t.Helper()
	var all []*Allocation[string]
	for _, resource := range resources {
		a, err := p.TryAllocate(context.Background(), nil)
		require.NoError(t, err)
		require.Equal(t, resource, a.Resource())
		require.Equal(t, strings.ToUpper(resource), a.Value())
		all = append(all, a)
	}
	return func() {
		for _, a := range all {
			require.NoError(t, a.Release(context.Background()))
		}
	}
}

func TestAPoolIsFilledByOneNodeAndOthersCloseWhatHasLeft(t *testing.T) {
	inServer(t, func(t *testing.T, w *testkit.World) {
		var mu sync.Mutex
		answer, asks := []string{"a", "b", "c", "a"}, 0
		source := func(cfg *PoolConfig[string]) {
			cfg.Source = func(context.Context) ([]string, error) {
				mu.Lock()
				defer mu.Unlock()
				asks++
				return answer, nil
			}
		}
		first := watchPool(t, w, source)
		synctest.Wait()
		second := watchPool(t, w, source)
		third := watchPool(t, w, func(*PoolConfig[string]) {})
		w.Advance(time.Second)
		require.Equal(t, 1, asks)
		told, _ := first.lists()
		require.Equal(t, []string{"proxies: refreshed 3"}, told)
		second.takes(t, "a", "b", "c")()
		third.takes(t, "a", "b")()
		keeps := third.takes(t, "c")

		mu.Lock()
		answer = []string{"b"}
		mu.Unlock()
		w.Advance(2*time.Minute + 10*time.Second)
		mu.Lock()
		require.GreaterOrEqual(t, asks, 2)
		require.LessOrEqual(t, asks, 3, "one of them in a minute")
		mu.Unlock()
		w.Advance(2 * time.Minute)
		_, closed := second.lists()
		require.Contains(t, closed, "A")
		require.NotContains(t, closed, "B")
		_, closed = third.lists()
		require.Equal(t, []string{"A"}, closed, "c is held here")
		keeps()
		_, closed = third.lists()
		require.Equal(t, []string{"A", "C"}, closed)

		// The turn of a node that has gone is another's.
		require.NoError(t, first.client.Close(t.Context()))
		mu.Lock()
		before := asks
		answer = []string{"d"}
		mu.Unlock()
		w.Advance(2*time.Minute + 10*time.Second)
		mu.Lock()
		require.Greater(t, asks, before)
		mu.Unlock()
		has, err := third.Contains(t.Context(), "d")
		require.NoError(t, err)
		require.True(t, has)
	})
}

func TestAFlushedPoolIsFilledAgainByWhoFindsItEmpty(t *testing.T) {
	inServer(t, func(t *testing.T, w *testkit.World) {
		p := watchPool(t, w, func(cfg *PoolConfig[string]) { cfg.Source = returns("a") })
		w.Advance(10 * time.Second)
		w.Do("FLUSHALL")
		began := time.Now()
		a, err := p.Allocate(t.Context(), nil)
		require.NoError(t, err)
		require.Less(t, time.Since(began), 2*time.Second)
		require.NoError(t, a.Release(t.Context()))
	})
}

func TestRefreshOfAPoolReplacesNow(t *testing.T) {
	inServer(t, func(t *testing.T, w *testkit.World) {
		var mu sync.Mutex
		answer := []string{"a"}
		p := watchPool(t, w, func(cfg *PoolConfig[string]) {
			cfg.Source = func(context.Context) ([]string, error) {
				mu.Lock()
				defer mu.Unlock()
				return answer, nil
			}
			cfg.AllowEmpty = true
		})
		synctest.Wait()
		for _, c := range []struct {
			answer []string
			change Change
		}{
			{[]string{"a", "b", "\xff|"}, Change{Added: 2, Kept: 1}},
			{[]string{"b"}, Change{Kept: 1, Removed: 2}},
			{nil, Change{Removed: 1}},
		} {
			mu.Lock()
			answer = c.answer
			mu.Unlock()
			change, err := p.Refresh(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.change, change)
			n, err := p.Len(t.Context())
			require.NoError(t, err)
			require.Equal(t, len(c.answer), n)
		}
	})
}

func TestCheckHealthOfAPoolRestsWhatIsUnwellAndTouchesNothingInUse(t *testing.T) {
	inServer(t, func(t *testing.T, w *testkit.World) {
		var mu sync.Mutex
		var asked []string
		p := watchPool(t, w, func(cfg *PoolConfig[string]) {
			cfg.Cooldown = time.Hour
			cfg.FailureRest = 90 * time.Second
			cfg.Healthy = func(_ context.Context, value string) error {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, value)
				if value == "BAD" {
					return errMyOwn
				}
				return nil
			}
		})
		_, err := p.Add(t.Context(), []string{"leased", "bad", "good", "rests"}, nil)
		require.NoError(t, err)
		p.takes(t, "leased")
		require.NoError(t, p.Rest(t.Context(), "rests", time.Hour, "mine"))
		for _, workers := range []int{1, 4} {
			asked = nil
			began := w.Now()
			report, err := p.CheckHealth(t.Context(), workers)
			require.NoError(t, err)
			require.Equal(t, HealthReport{Checked: 2, Healthy: 1, Unhealthy: 1, Skipped: 2}, report)
			require.ElementsMatch(t, []string{"BAD", "GOOD"}, asked)
			info, err := p.Status(t.Context(), "bad")
			require.NoError(t, err)
			require.Equal(t, Resting, info.State)
			require.Equal(t, errMyOwn.Error(), info.Reason)
			require.Equal(t, 90*time.Second, info.Left+w.Now()-began)
			info, err = p.Status(t.Context(), "good")
			require.NoError(t, err)
			require.Equal(t, Free, info.State, "a check is no use, so it has no cooldown")
			w.Advance(91 * time.Second)
		}
		told, closed := p.lists()
		require.Equal(t, []string{"BAD", "BAD"}, closed)
		require.Contains(t, told, "proxies: unhealthy bad0 my own reason")
		require.Equal(t, "proxies: health_checked 2", told[len(told)-1])
		n, err := p.Stats(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n.Holders, "the one that was taken")
	})
}
