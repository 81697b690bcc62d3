package testkit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/state"
)

// countNames are the words of the values of a fat name; see scripts/state/values.lua.
var countNames = []string{
	"fmt", "fence", "exp", "due", "ticket", "busy", "used", "waiting", "cap", "gone", "forever", "keep", "pause", "look", "rev",
}

// countBases are what counts are stored above.
var countBases = map[string]int64{"used": state.Base, "cap": state.Base, "waiting": 1_000_000}

// Counts reads the field "v" of a state: the values of a fat name, of a release to come, too.
func Counts(text string) (map[string]int64, error) {
	words := strings.Fields(text)
	if len(words) != len(countNames) {
		return nil, fmt.Errorf("values are %d words, not %d: %q", len(countNames), len(words), text)
	}
	counts := make(map[string]int64)
	for i, name := range countNames {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("values: %w", err)
		}
		if counts[name] = n; name == "due" && n == state.Forever {
			counts[name] = 0
		}
		counts[name] -= countBases[name]
	}
	return counts, nil
}

// SetCount has a fat name's state keep another number than it does.
func (w *World) SetCount(name string, n int64) {
	w.T.Helper()
	text, err := w.Do("HGET", w.State, "v").ToString()
	require.NoError(w.T, err)
	w.Do("HSET", w.State, "v", WithCount(w.T, text, name, n))
}

// WithCount is the text of values with another number, as wide as the one that was there.
func WithCount(t require.TestingT, text, name string, n int64) string {
	i := slices.Index(countNames, name)
	require.GreaterOrEqual(t, i, 0, name)
	words := strings.Fields(text)
	require.Len(t, words, len(countNames), text)
	if name == "due" && n == 0 {
		n = state.Forever
	}
	n += countBases[name]
	words[i] = fmt.Sprintf("%0*d", len(words[i]), n)
	return strings.Join(words, " ")
}

// ParseThin reads the text of a thin name.
func ParseThin(text string) (state.Thin, error) {
	thin, _, ok := state.ParseThin(text)
	if !ok {
		return thin, fmt.Errorf("not the text of a thin name: %q", text)
	}
	return thin, nil
}

// ThinCounts are the values that a thin name has, were it fat, at a moment (ms by the server's clock).
func ThinCounts(thin state.Thin, now int64) map[string]int64 {
	counts := map[string]int64{"fence": thin.Fence, "cap": 1}
	if thin.Claim != "" && thin.Ends > now {
		counts["used"], counts["due"] = 1, thin.Ends
	}
	return counts
}

// text is that of a thin name.
func (w *World) text() (text string, thin bool) {
	w.T.Helper()
	words, err := w.Do("MGET", w.State).ToArray()
	require.NoError(w.T, err)
	if words[0].IsNil() {
		return "", false
	}
	text, err = words[0].ToString()
	require.NoError(w.T, err)
	return text, true
}

// thin reads the name if it is thin.
func (w *World) thin() (thin state.Thin, is bool) {
	w.T.Helper()
	text, is := w.text()
	if is {
		var err error
		thin, err = ParseThin(text)
		require.NoError(w.T, err)
	}
	return thin, is
}

// fat are the fields of the state of a name that is fat, none of another one.
func (w *World) fat() map[string]string {
	w.T.Helper()
	if w.Thin() {
		return nil
	}
	fields, err := w.Do("HGETALL", w.State).AsStrMap()
	require.NoError(w.T, err)
	return fields
}

// Thin says that the name is thin.
func (w *World) Thin() bool {
	w.T.Helper()
	_, is := w.text()
	return is
}

// Values are the values of the name in whichever form it is, all 0 where it is not there.
func (w *World) Values() map[string]int64 {
	w.T.Helper()
	if thin, is := w.thin(); is {
		return ThinCounts(thin, time.Now().UnixMilli())
	}
	text, ok := w.fat()["v"]
	if !ok {
		return map[string]int64{}
	}
	counts, err := Counts(text)
	require.NoError(w.T, err)
	return counts
}

// Record is the text of a claim's record or tombstone, "" where there is none.
func (w *World) Record(claim string) string {
	w.T.Helper()
	if thin, is := w.thin(); is {
		if thin.Claim == claim {
			return thin.Record
		}
		return ""
	}
	return w.fat()["c:"+claim]
}

// PhaseOf is the phase of a claim's record, 0 where there is none.
func (w *World) PhaseOf(claim string) byte {
	w.T.Helper()
	text := w.Record(claim)
	if text == "" {
		return 0
	}
	record, err := state.ParseRecord(text)
	require.NoError(w.T, err)
	return record.Phase
}
