package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, patience time.Duration, charge func(ctx context.Context, order string) error) (s *server, pay func(order string) int) {
	t.Helper()
	s, err := newServer(berthtest.Redis(t), charge, patience)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.node.Close(context.Background())) })
	handler := s.handler()
	return s, func(order string) int {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/"+order+"/pay", nil))
		return w.Code
	}
}

func TestOnePaymentAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var inside, paid atomic.Int32
		_, pay := serve(t, time.Minute, func(context.Context, string) error {
			defer inside.Add(-1)
			if inside.Add(1) > 1 {
				return errors.New("two at once")
			}
			paid.Add(1)
			return nil
		})
		var requests sync.WaitGroup
		codes := make([]int, 10)
		for i := range codes {
			requests.Go(func() { codes[i] = pay("42") })
		}
		requests.Wait()
		for _, code := range codes {
			require.Equal(t, http.StatusNoContent, code)
		}
		require.Equal(t, int32(10), paid.Load())
	})
}

func TestTheAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, pay := serve(t, 3*time.Second, func(_ context.Context, order string) error {
			if order == "broke" {
				return errors.New("no money")
			}
			return nil
		})
		require.Equal(t, http.StatusNoContent, pay("7"))
		require.Equal(t, http.StatusServiceUnavailable, pay("broke"))
		require.Equal(t, http.StatusNotFound, pay("{}"))

		// A later hold was here already: what comes with a smaller fence is refused.
		require.NoError(t, s.guard.Admit(t.Context(), "order:8", 1<<62))
		require.Equal(t, http.StatusServiceUnavailable, pay("8"))

		held, err := s.locks.Lock(t.Context(), "order:7", &qlock.LockOptions{})
		require.NoError(t, err)
		require.Equal(t, http.StatusLocked, pay("7"), "after its patience")
		require.NoError(t, held.Release(t.Context()))
	})
}
