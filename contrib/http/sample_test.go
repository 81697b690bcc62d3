package berthhttp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	berthhttp "github.com/berth-go/berth/contrib/http"
)

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
