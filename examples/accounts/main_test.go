package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/berthtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { http.DefaultClient.CloseIdleConnections() }))
}

// In virtual time: two accounts, of which the service throttles one.
func TestEachMessageWaitsForAnAccountThatHasRested(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		type posting struct {
			account, message string
			after            time.Duration
		}
		var posted []posting
		throttled := 0
		post := func(_ context.Context, account, message string) (time.Duration, error) {
			switch {
			case account == "ben" && throttled == 0:
				throttled++
				return 10 * time.Minute, errThrottled
			case message == "bad":
				return 0, errors.New("the service does not like it")
			}
			posted = append(posted, posting{account, message, time.Since(began).Round(time.Second)})
			return 0, nil
		}
		err := run(t.Context(), berthtest.Redis(t), post, []string{"anna", "ben"}, strings.NewReader("one\nbad\ntwo\nthree\n"))
		require.NoError(t, err, "what could not be posted is told, and does not end the program")
		require.Equal(t, []posting{{"anna", "one", 0}, {"anna", "two", 2 * cooldown}, {"anna", "three", 3 * cooldown}}, posted)
	})
}

func TestAThrottledAccountRestsAsLongAsTheServiceSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pools, err := allocator.New(berthtest.Redis(t), allocator.Config{})
		require.NoError(t, err)
		defer func() { require.NoError(t, pools.Close(context.Background())) }()
		pool, err := allocator.NewPool(pools, "accounts", allocator.PoolConfig[string]{Cooldown: cooldown})
		require.NoError(t, err)
		_, err = pool.Add(t.Context(), []string{"long", "short", "anna"}, nil)
		require.NoError(t, err)
		pauses := map[string]time.Duration{"long": 10 * time.Minute, "short": time.Second}
		err = send(t.Context(), pool, func(_ context.Context, account, _ string) (time.Duration, error) {
			if pause, ok := pauses[account]; ok {
				return pause, errThrottled
			}
			return 0, nil
		}, "hello")
		require.NoError(t, err)
		for account, rest := range map[string]time.Duration{"long": 10 * time.Minute, "short": cooldown, "anna": cooldown} {
			info, err := pools.Operator().Resource(t.Context(), "accounts", account)
			require.NoError(t, err)
			require.Equal(t, allocator.Resting, info.State, account)
			require.Equal(t, rest, info.Left, account)
		}
	})
}

func TestTheProgramEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	post := func(ctx context.Context, _, _ string) (time.Duration, error) {
		cancel()
		<-ctx.Done()
		return 0, ctx.Err()
	}
	require.NoError(t, run(ctx, berthtest.Redis(t), post, []string{"anna"}, strings.NewReader("one\ntwo\n")))
}

func TestWhatTheServiceSays(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		message, err := io.ReadAll(r.Body)
		if err != nil || string(message) != "hello" {
			t.Errorf("%q, %v", message, err)
		}
		switch r.URL.Path {
		case "/throttled":
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/silent":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/banned":
			w.WriteHeader(http.StatusForbidden)
		case "/anna b":
			w.WriteHeader(http.StatusCreated)
		default:
			t.Errorf("%q", r.URL.Path)
		}
	}))
	t.Cleanup(web.Close)
	post := service(web.URL + "/")
	pause, err := post(t.Context(), "throttled", "hello")
	require.ErrorIs(t, err, errThrottled)
	require.Equal(t, 10*time.Minute, pause)
	pause, err = post(t.Context(), "silent", "hello")
	require.ErrorIs(t, err, errThrottled)
	require.Zero(t, pause)
	_, err = post(t.Context(), "banned", "hello")
	require.EqualError(t, err, "the service says 403 Forbidden")
	_, err = post(t.Context(), "anna b", "hello")
	require.NoError(t, err)
}
