package world

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
)

// countNames are the words of the field "counts" of a state; see scripts/state/counts.lua.
var countNames = []string{"cap", "used", "waiting", "gone", "forever", "keep"}

// Counts reads the field "counts" of a state.
func Counts(text string) (map[string]int64, error) {
	words := strings.Fields(text)
	if len(words) != len(countNames) {
		return nil, fmt.Errorf("counts are %d words, not %d: %q", len(countNames), len(words), text)
	}
	counts := make(map[string]int64)
	for i, name := range countNames {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("counts: %w", err)
		}
		counts[name] = n
	}
	return counts, nil
}

// SetCount has the state keep another number than it does.
func (w *World) SetCount(name string, n int) {
	w.T.Helper()
	i := slices.Index(countNames, name)
	require.GreaterOrEqual(w.T, i, 0, name)
	text, err := w.Do("HGET", w.State, "counts").ToString()
	require.NoError(w.T, err)
	words := strings.Fields(text)
	require.Len(w.T, words, len(countNames), text)
	words[i] = strconv.Itoa(n)
	w.Do("HSET", w.State, "counts", strings.Join(words, " "))
}
