package berthhttp

import (
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// lineEvery is how often a line is written at the most.
const lineEvery = 10 * time.Second

// sample logs some of the requests that are refused, and counts the others.
type sample struct {
	mu      sync.Mutex
	refused int       // guarded by mu: since the last line
	next    time.Time // guarded by mu: no line before
}

func (s *sample) log(logger *slog.Logger, r *http.Request, err error) {
	if logger == nil {
		return
	}
	if count := s.take(time.Now()); count > 0 {
		logger.LogAttrs(r.Context(), slog.LevelWarn, "request refused",
			slog.Int("count", count), slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("error", err))
	}
}

// take counts a refusal, and returns how many a line has to tell of: 0 for no line.
func (s *sample) take(now time.Time) (count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused++
	if now.Before(s.next) {
		return 0
	}
	count, s.refused, s.next = s.refused, 0, now.Add(lineEvery)
	return count
}
