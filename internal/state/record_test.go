package state_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit/amount"
)

// must is what a call has returned, which has not failed.
func must[V any](v V, err error) func(t testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

func second[V any](_ V, err error) error { return err }

// anyBytes draws free bytes, and often some that a record is written with.
func anyBytes() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{"", " ", ":", "0:", "3:ab", "1 2 3", "!gone", "\x00", "\xff", "ü🙂", strings.Repeat("9", 300)}),
	)
}

func anyRecord() *rapid.Generator[state.Record] {
	millis := rapid.Map(rapid.Int64Range(0, 1<<44), func(n int64) time.Duration { return time.Duration(n%(1<<40)) * time.Millisecond })
	instant := rapid.Map(rapid.Int64Range(0, 1<<44), func(n int64) time.Time {
		if n == 0 {
			return time.Time{}
		}
		return time.UnixMilli(n)
	})
	return rapid.Custom(func(t *rapid.T) state.Record {
		r := state.Record{
			Weight:      rapid.IntRange(1, 1<<40).Draw(t, "weight"),
			Wait:        millis.Draw(t, "wait"),
			Lease:       millis.Filter(func(d time.Duration) bool { return d > 0 }).Draw(t, "lease"),
			MaxHold:     millis.Draw(t, "max"),
			NoRenew:     rapid.Bool().Draw(t, "no renew"),
			Phase:       rapid.SampledFrom([]byte("wghd")).Draw(t, "phase"),
			ZombieAfter: millis.Draw(t, "zombie after"),
			Priority:    rapid.IntRange(-128, 127).Draw(t, "priority"),
			Ticket:      rapid.Int64Min(0).Draw(t, "ticket"),
			Fence:       rapid.Int64Min(0).Draw(t, "fence"),
			Granted:     instant.Draw(t, "granted"),
			Limit:       instant.Draw(t, "limit"),
			Wanted:      instant.Draw(t, "wanted"),
			Node:        strings.ReplaceAll(anyBytes().Draw(t, "node"), " ", "_"),
			Owner:       anyBytes().Draw(t, "owner"),
			Label:       anyBytes().Draw(t, "label"),
			Meta:        rapid.MapOfN(anyBytes(), anyBytes(), 0, 4).Draw(t, "meta"),
		}
		if rapid.Bool().Draw(t, "forever") {
			r.Lease = berth.Forever
		} else {
			r.Reach, r.ZombieAfter = r.ZombieAfter, 0
		}
		if len(r.Meta) == 0 {
			r.Meta = nil
		}
		if r.Phase == 'w' {
			r.Limit, r.Wanted, r.ZombieAfter, r.Reach = time.Time{}, time.Time{}, 0, 0
			r.Fence, r.Granted, r.Heard = 0, time.Time{}, r.Granted // there are where it stands, and when it was last heard of
			r.Place = rapid.SampledFrom([]string{fmt.Sprintf("%013d", r.Ticket), "1795470969635", "1795470969635" + strings.Repeat("5", 40)}).Draw(t, "place")
		}
		return r
	})
}

func TestARecordReadsBackAsItWasWritten(t *testing.T) {
	require.NoError(t, amount.Histories(100))
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecord().Draw(t, "record")
		text := state.Text(&r)
		got, err := state.ParseRecord(text)
		require.NoError(t, err, "%q", text)
		require.Equal(t, r, got)
		require.True(t, strings.HasSuffix(text, state.FixedTerms(&r)), "its fixed terms are its end")
		require.Equal(t, text, state.Text(&got), "a replay is equal, whatever the order of the map")
	})
}

func TestARecordThatIsCutShortIsAnError(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecord().Draw(t, "record")
		text := state.Text(&r)
		cut := rapid.IntRange(0, len(text)-1).Draw(t, "cut")
		require.Error(t, second(state.ParseRecord(text[:cut])), "%q of %q", text[:cut], text)
	})
}

func TestARecordIsWrittenAsTheScriptsReadIt(t *testing.T) {
	t.Parallel()
	r := state.Record{
		Weight: 2, Wait: 6 * time.Second, Lease: berth.Forever, MaxHold: time.Minute, NoRenew: true, Phase: 'h',
		Priority: -5, Ticket: 17, Fence: 18, Granted: time.UnixMilli(19), Limit: time.UnixMilli(20),
		Node: "n:1", Owner: "o", Label: "", Meta: map[string]string{"k": "v", "": "x"},
	}
	require.Equal(t, "h 0000000000017 0000000000000018 0000000000019 0000000000020 n:1 - 2 f 6000 0 60000 -5 1:o0:11:0:1:x1:k1:v", state.Text(&r))
	require.EqualValues(t, 0, r.LeaseMillis(), "forever")
	r.Lease, r.NoRenew = time.Second, false
	require.Equal(t, "- 2 r 6000 1000 60000 -5 1:o0:11:0:1:x1:k1:v", state.FixedTerms(&r))
	require.EqualValues(t, 1000, r.LeaseMillis())
}

func TestAMalformedRecordIsAnError(t *testing.T) {
	t.Parallel()
	const good = "p 1 2 3 4 n - 5 r 7 8 9 -1 1:o1:l0:"
	for _, text := range []string{good, good + "3:new", "p 1 2 3 " + strings.Repeat("4", 100) + good[9:], "w 1 2 3 n - 5 r 7 8 9 -1 1:o1:l0:"} {
		require.Equal(t, "o", must(state.ParseRecord(text))(t).Owner, "also with a text of a release to come")
	}
	for name, text := range map[string]string{
		"empty":                   "",
		"a tombstone":             "!gone",
		"no node":                 "w 1 2 3 - 5 r 7 8 9 -1 1:o1:l0:",
		"no phase":                " 1 2 3 4 n - 5 r 7 8 9 -1 1:o1:l0:",
		"a phase of two letters":  "ww 1 2 3 n - 5 r 7 8 9 -1 1:o1:l0:",
		"wanted since never":      "h! 1 2 3 4 n - 5 r 7 8 9 -1 1:o1:l0:",
		"wanted since a word":     "h7!x 1 2 3 4 n - 5 r 7 8 9 -1 1:o1:l0:",
		"a kind of two letters":   "w 1 2 3 n - 5 rr 7 8 9 -1 1:o1:l0:",
		"a word too few":          "w 1 2 3 n - r 7 8 9 -1 1:o1:l0:",
		"no secret":               "w 1 2 3 n  5 r 7 8 9 -1 1:o1:l0:",
		"a ticket that is none":   "w 1 2 x n - 5 r 7 8 9 -1 1:o1:l0:",
		"a fence above 63 bits":   "h 1 9223372036854775808 3 4 n - 5 r 7 8 9 -1 1:o1:l0:",
		"a weight with a point":   "w 1 2 3 n - 5.0 r 7 8 9 -1 1:o1:l0:",
		"a priority that is none": "w 1 2 3 n - 5 r 7 8 9 - 1:o1:l0:",
		"a text too few":          "w 1 2 3 n - 5 r 7 8 9 -1 1:o1:l",
		"a text without its size": "w 1 2 3 n - 5 r 7 8 9 -1 1:o1:l:",
		"rubbish behind":          good + "x",
		"a key without a value":   "w 1 2 3 n - 5 r 7 8 9 -1 1:o1:l3:1:k",
		"metadata that is cut":    "w 1 2 3 n - 5 r 7 8 9 -1 1:o1:l3:2:k",
	} {
		require.Error(t, second(state.ParseRecord(text)), name)
	}
}
