package console

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	// healthEvery is how often the server is asked at the most.
	healthEvery = 2 * time.Second
	// healthWithin is how soon it must answer.
	healthWithin = 2 * time.Second
)

var (
	errSilent = errors.New("the server does not answer")
	errBusy   = errors.New("so much is looked at that this was not read in time: ask again in a moment")
)

// health asks whether the server answers, once for all who want to know.
type health struct {
	redis rueidis.Client

	mu    sync.Mutex
	asked time.Time // guarded by mu
	err   error     // guarded by mu
}

// check asks, unless that was a moment ago.
func (h *health) check() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.asked.IsZero() && time.Since(h.asked) < healthEvery {
		return h.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), healthWithin)
	defer cancel()
	err := h.redis.Do(ctx, h.redis.B().Ping().Build()).Error()
	_, refused := rueidis.IsRedisErr(err) // which is an answer
	if h.err = nil; err != nil && !refused {
		h.err = errSilent // and not where it is
	}
	h.asked = time.Now()
	return h.err
}

// late is why something was not read in time.
func (c *Console) late() error {
	if err := c.answers(); err != nil {
		return err
	}
	return errBusy
}

// answers reports whether the server answers.
func (c *Console) answers() error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.running.Done()
	return c.health.check()
}

func (c *Console) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := c.answers(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, err.Error()+"\n")
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}
