package berthhttp_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	berthhttp "github.com/berth-go/berth/contrib/http"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestProcessesTogetherServeNoMoreThanTheCapacity(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		done, opts := make(chan struct{}), &berthhttp.Options{MaxWait: time.Minute}
		here, there := w.limit(w.web(2), opts, until(done)), w.limit(w.web(2), opts, until(done))
		begun := time.Now()
		first, second := begin(here), begin(there)
		third := begin(there)
		require.Empty(t, first)
		require.Empty(t, second)

		time.Sleep(30 * time.Second) // more than a lease: permits are renewed
		require.Empty(t, third)
		close(done)
		require.Equal(t, http.StatusOK, (<-first).Code)
		require.Equal(t, http.StatusOK, (<-second).Code)
		require.Equal(t, http.StatusOK, (<-third).Code)
		require.Less(t, time.Since(begun), 31*time.Second)
	})
}

func TestAfterMaxWaitTheAnswerIs503(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		done := make(chan struct{})
		opts := &berthhttp.Options{MaxWait: 5 * time.Second, RetryAfter: 30 * time.Second, FailOpen: true} // a long line is no failure
		handler := w.limit(w.web(1), opts, until(done))
		first := begin(handler)
		begun := time.Now()
		answer := get(handler)
		require.Equal(t, 5*time.Second, time.Since(begun))
		require.Equal(t, http.StatusServiceUnavailable, answer.Code)
		require.Equal(t, "30", answer.Header().Get("Retry-After"))
		require.Equal(t, "too many requests are served at the moment\n", answer.Body.String())
		close(done)
		require.Equal(t, http.StatusOK, (<-first).Code)
		require.Equal(t, http.StatusOK, get(handler).Code)
	})
}

func TestWhereManyWaitTheNextIsRefusedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var refused error
		opts := &berthhttp.Options{
			MaxWait: time.Hour, MaxWaiting: 2,
			Refuse: func(w http.ResponseWriter, _ *http.Request, err error) {
				refused = err
				w.WriteHeader(http.StatusTooManyRequests)
			},
		}
		done := make(chan struct{})
		handler := w.limit(w.web(1), opts, until(done))
		served, waits, too := begin(handler), begin(handler), begin(handler)
		begun := time.Now()
		answer := get(handler)
		require.Zero(t, time.Since(begun))
		require.Equal(t, http.StatusTooManyRequests, answer.Code)
		require.Equal(t, "1", answer.Header().Get("Retry-After"))
		require.ErrorIs(t, refused, berth.ErrBusy)
		require.EqualError(t, refused, `berth: "web" not acquired: queued ahead (held 0, waiting 2)`)

		close(done)
		for _, answer := range []<-chan *httptest.ResponseRecorder{served, waits, too} {
			require.Equal(t, http.StatusOK, (<-answer).Code)
		}
		require.Equal(t, http.StatusOK, get(handler).Code, "nobody waits any more")
	})
}

func TestTheContextOfARequestEndsWithItsPermit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var cause error
		handler := w.limit(w.web(1), nil, func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			cause = context.Cause(r.Context())
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		answer := begin(handler)
		w.server.LoseAll("web")
		require.Equal(t, http.StatusServiceUnavailable, (<-answer).Code)
		require.ErrorIs(t, cause, berth.ErrLost)
	})
}

func TestAHandlerRunsUnderItsPermit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sem := w.web(1)
		var fence int64
		var under context.Context
		var ended error
		var seen http.ResponseWriter
		answer := get(w.limit(sem, nil, func(w http.ResponseWriter, r *http.Request) {
			seen, fence, under, ended = w, sem.Fence(r.Context()), r.Context(), r.Context().Err()
		}))
		require.Same(t, answer, seen, "it is passed on as it is")
		require.NoError(t, ended)
		require.Equal(t, http.StatusOK, answer.Code)
		require.Positive(t, fence)
		require.Error(t, under.Err(), "what outlives the request learns that its permit has gone")
	})
}

func TestAPanicGivesThePermitBackAndPassesThrough(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		panics := true
		handler := w.limit(w.web(1), &berthhttp.Options{MaxWaiting: -1}, func(http.ResponseWriter, *http.Request) {
			if panics {
				panic(http.ErrAbortHandler)
			}
		})
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { get(handler) })
		panics = false
		require.Equal(t, http.StatusOK, get(handler).Code)
	})
}

func TestOneSemaphoreForEachTenant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, done := w.server.Node(node.Config{}), make(chan struct{})
		tenant := func(r *http.Request) (*semaphore.Semaphore, error) {
			switch name := r.Header.Get("Tenant"); name {
			case "":
				return nil, nil
			case "unknown":
				return nil, errors.New("no such tenant")
			default:
				return semaphore.New(n, name, 1, semaphore.Config{}), nil
			}
		}
		limit, err := berthhttp.LimitBy(tenant, &berthhttp.Options{MaxWait: time.Hour, MaxWaiting: 1})
		require.NoError(t, err)
		handler := limit(until(done))
		ask := func(tenant string) <-chan *httptest.ResponseRecorder {
			return begin(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("Tenant", tenant)
				handler.ServeHTTP(w, r)
			}))
		}

		require.Equal(t, http.StatusBadRequest, (<-ask("a{b}")).Code)
		require.Empty(t, (<-ask(strings.Repeat("x", 513))).Header().Get("Retry-After"))
		failed := <-ask("unknown")
		require.Equal(t, http.StatusInternalServerError, failed.Code)
		require.Empty(t, failed.Header().Get("Retry-After"), "nobody knows whether it helps")
		require.Equal(t, "the request cannot be served\n", failed.Body.String())

		running := []<-chan *httptest.ResponseRecorder{ask("a"), ask("a"), ask("b"), ask("b"), ask(""), ask("")}
		require.Equal(t, http.StatusServiceUnavailable, (<-ask("a")).Code, "one waits for a already")
		close(done)
		for _, answer := range running {
			require.Equal(t, http.StatusOK, (<-answer).Code)
		}
	})
}

func TestASilentServerRefusesOrLetsThrough(t *testing.T) {
	for _, row := range []struct {
		name string
		opts berthhttp.Options
		code int
	}{
		{"closed", berthhttp.Options{}, http.StatusServiceUnavailable},
		{"open", berthhttp.Options{FailOpen: true}, http.StatusOK},
		{"closed, and nobody waits", berthhttp.Options{MaxWaiting: -1}, http.StatusServiceUnavailable},
		{"open, and nobody waits", berthhttp.Options{MaxWaiting: -1, FailOpen: true}, http.StatusOK},
	} {
		t.Run(row.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				row.opts.MaxWait = 2 * time.Second
				handler := w.limit(w.web(1), &row.opts, func(http.ResponseWriter, *http.Request) {})
				require.Equal(t, http.StatusOK, get(handler).Code)
				w.server.Hang(time.Minute)
				begun := time.Now()
				answer := get(handler)
				require.Equal(t, row.code, answer.Code)
				require.Equal(t, 2*time.Second, time.Since(begun))
				if row.code != http.StatusOK {
					requireUnavailable(t, answer)
				}

				// A call that was held back takes a place for a wait lease.
				time.Sleep(time.Minute + 10*time.Second)
				require.Equal(t, http.StatusOK, get(handler).Code)
			})
		})
	}
}

// requireUnavailable requires an answer that blames no line.
func requireUnavailable(t *testing.T, answer *httptest.ResponseRecorder) {
	t.Helper()
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	require.Equal(t, "1", answer.Header().Get("Retry-After"))
	require.Equal(t, "the request cannot be served at the moment\n", answer.Body.String())
}

func TestAClosedNodeIsNoFullLine(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.server.Node(node.Config{})
		handler := w.limit(semaphore.New(n, "web", 1, semaphore.Config{}), nil, func(http.ResponseWriter, *http.Request) {})
		require.NoError(t, n.Close(t.Context()))
		requireUnavailable(t, get(handler))
	})
}

func TestWhoseTimeIsOverIsNotLetThrough(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		served := false
		handler := w.limit(w.web(1), &berthhttp.Options{FailOpen: true}, func(http.ResponseWriter, *http.Request) { served = true })
		w.server.Hang(time.Minute)
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		require.Equal(t, http.StatusServiceUnavailable, answer.Code)
		require.False(t, served)
	})
}

func TestAServerThatFallsSilentHoldsTheAnswerForCleanupTimeout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		handler := w.limit(w.web(1), nil, func(http.ResponseWriter, *http.Request) { w.server.Hang(5 * time.Second) })
		begun := time.Now()
		require.Equal(t, http.StatusOK, get(handler).Code)
		require.Equal(t, 2*time.Second, time.Since(begun))
	})
}

func TestBadOptionsAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		sem := w.web(1)
		for field, opts := range map[string]berthhttp.Options{
			"MaxWait":    {MaxWait: -time.Second},
			"RetryAfter": {RetryAfter: 1500 * time.Millisecond},
		} {
			_, err := berthhttp.Limit(sem, &opts)
			var refused *berth.ConfigError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, field, refused.Field)
		}
		_, err := berthhttp.Limit(sem, &berthhttp.Options{RetryAfter: -time.Second})
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		_, err = berthhttp.Limit(nil, nil)
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		_, err = berthhttp.LimitBy(nil, nil)
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server of Redis in virtual time.
type world struct {
	t      *testing.T
	server *berthtest.Server
}

// inWorld runs a test in virtual time.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		test(t, &world{t: t, server: berthtest.New(t)})
	})
}

// web is the semaphore of these tests, of another process.
func (w *world) web(capacity int) *semaphore.Semaphore {
	w.t.Helper()
	return semaphore.New(w.server.Node(node.Config{}), "web", capacity, semaphore.Config{})
}

// limit wraps a handler with the middleware of sem.
func (w *world) limit(sem *semaphore.Semaphore, opts *berthhttp.Options, handler http.HandlerFunc) http.Handler {
	w.t.Helper()
	limit, err := berthhttp.Limit(sem, opts)
	require.NoError(w.t, err)
	return limit(handler)
}

// get has a handler serve a request, in this goroutine.
func get(handler http.Handler) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	return answer
}

// begin has a handler serve a request in the background, and lets everything settle.
func begin(handler http.Handler) <-chan *httptest.ResponseRecorder {
	answer := make(chan *httptest.ResponseRecorder, 1)
	go func() { answer <- get(handler) }()
	synctest.Wait()
	return answer
}

// until serves for as long as a channel is open, or the request's context.
func until(done <-chan struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
			http.Error(w, context.Cause(r.Context()).Error(), http.StatusServiceUnavailable)
		}
	}
}

// serve has an HTTP server of its own serve a handler in memory, and returns a way to
// connect to it. Both end with the test.
func (w *world) serve(handler http.Handler) (dial func() net.Conn) {
	w.t.Helper()
	listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	stopped := make(chan error, 1)
	go func() { stopped <- server.Serve(listener) }()
	w.t.Cleanup(func() {
		require.NoError(w.t, server.Close())
		require.ErrorIs(w.t, <-stopped, http.ErrServerClosed)
	})
	return func() net.Conn {
		w.t.Helper()
		near, far := net.Pipe()
		listener.conns <- far
		w.t.Cleanup(func() { require.NoError(w.t, near.Close()) })
		return near
	}
}

// pipes is a listener without a socket: a socket would stop virtual time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func TestBucketsAreFewAndTheSameInEveryProcess(t *testing.T) {
	seen := map[string]int{}
	for i := range 1000 {
		seen[berthhttp.Bucket(strconv.Itoa(i), 8)]++
	}
	require.Len(t, seen, 8)
	for bucket, texts := range seen {
		n, err := strconv.Atoi(bucket)
		require.NoError(t, err)
		require.Less(t, n, 8)
		require.Greater(t, texts, 60, bucket)
	}
	require.Equal(t, "240", berthhttp.Bucket("a{b}\x00", 1024), "never another one: releases run side by side")
	require.Equal(t, "0", berthhttp.Bucket("", 0))
}

func TestRefusalsAreLoggedSampled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var text bytes.Buffer
		done := make(chan struct{})
		handler := w.limit(w.web(1), &berthhttp.Options{MaxWaiting: -1, Logger: slog.New(slog.NewTextHandler(&text, nil))}, until(done))
		served := begin(handler)
		for range 30 { // in 15 s
			require.Equal(t, http.StatusServiceUnavailable, get(handler).Code)
			time.Sleep(500 * time.Millisecond)
		}
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		require.Len(t, lines, 2)
		require.Contains(t, lines[0], `level=WARN msg="request refused" count=1 method=GET path=/ error="berth: \"web\" not acquired: full`)
		require.Contains(t, lines[1], "count=20 ")
		close(done)
		require.Equal(t, http.StatusOK, (<-served).Code)
		require.Equal(t, 2, strings.Count(text.String(), "\n"), "nothing of who was served")
	})
}
