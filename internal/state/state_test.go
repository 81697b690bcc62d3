package state_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
)

const (
	fat   = "3 1795470968951844 1795471035000 1795470973951 1795470969635 1795470969636 1000000000000002 1000001 1000000000000003 0 -1 0 7 4 1795470969637"
	terms = "- 1 r 5000 4000 0 0 0:13:vm/sleep/97680:"
	held  = "1795470968951844 1795470968952 0dc75ddcdb807d7c.dc2bcu1ksdueb94vlr80 " + terms
)

func TestValuesAreReadInTheOrderOfTheirText(t *testing.T) {
	t.Parallel()
	v, _, ok := state.ParseValues(fat)
	require.True(t, ok)
	require.Equal(t, state.Values{
		Format: 3, Fence: 1795470968951844, Expiry: 1795471035000, Due: 1795470973951, Ticket: 1795470969635, Busy: 1795470969636,
		Capacity: 3, Used: 2, Waiting: 1, Forever: -1, Pause: 7, Look: 4, Revision: 1795470969637,
	}, v)
	v, _, ok = state.ParseValues(strings.Replace(fat, "1795470973951", "9999999999999", 1))
	require.True(t, ok)
	require.Zero(t, v.Due, "no hold has an end")
}

func TestOfANewerOrAForeignStateNothingIsRead(t *testing.T) {
	t.Parallel()
	for text, number := range map[string]int64{
		"4" + fat[1:]: 4,
		"4 new words": 4,
		"2" + fat[1:]: 2,
		"1" + fat[1:]: 1,
		"0" + fat[1:]: 0,
		"":            0,
		"3":           0,
		fat + " 0":    0,
		strings.TrimSuffix(fat, " 1795470969637"): 0,
		"-" + fat:                              0,
		strings.Replace(fat, " 17", " -17", 1): 0,
		strings.Replace(fat, " 1000000000000002", " -2", 1):            0,
		strings.Replace(fat, " 1000001 ", "  1000001 ", 1):             0,
		strings.Replace(fat, " 1000001 ", " 99999999999999999999 ", 1): 0,
	} {
		v, got, ok := state.ParseValues(text)
		require.False(t, ok, text)
		require.Equal(t, number, got, text)
		require.Zero(t, v, text)
	}
	for text, number := range map[string]int64{
		"f4 new words": 4,
		strings.Replace(held, " - 1 ", " 1 - ", 1): 2,
		"":                                      0,
		"179547096895184":                       0,
		held[:len(held)-1] + "\n" + held[16:17]: -1, // a text may have any bytes
		held[1:]:                                0,
		strings.Replace(held, " 17", " 7", 1):   0,
		strings.Replace(held, " - 1 ", " - 2 ", 1): 0,
		strings.Replace(held, " 5000 ", " x ", 1):  0,
		strings.Replace(held, "7c.dc", "7cdc", 1):  0,
		"1795470968951844 ":                        0,
	} {
		_, got, ok := state.ParseThin(text)
		require.Equal(t, number < 0, ok, text)
		require.Equal(t, max(number, 0), got, text)
	}
	require.ErrorIs(t, state.Incompatible("gpu", 4), berth.ErrIncompatible)
	require.ErrorContains(t, state.Incompatible("gpu", 1), "from before its first release")
	require.ErrorIs(t, state.Incompatible("gpu", 0), state.ErrDamaged)
}

func TestTheHoldOfAThinNameEndsWithItsLeaseOrItsMaximumHold(t *testing.T) {
	t.Parallel()
	thin, _, ok := state.ParseThin(held)
	require.True(t, ok)
	require.Equal(t, state.Thin{
		Fence: 1795470968951844, Claim: "0dc75ddcdb807d7c.dc2bcu1ksdueb94vlr80", Since: 1795470968952, Ends: 1795470968952 + 4000,
		Record: "h 1795470968951 1795470968951844 1795470968951 0000000000000 0dc75ddcdb807d7c " + terms,
	}, thin)
	thin, _, ok = state.ParseThin(strings.Replace(held, " 4000 0 ", " 4000 3000 ", 1))
	require.True(t, ok)
	require.EqualValues(t, 1795470968951+3000, thin.Ends)
	r := must(state.ParseRecord(thin.Record))(t)
	require.Equal(t, thin.Ends, r.Limit.UnixMilli())
	thin, _, ok = state.ParseThin("1795470968951844")
	require.True(t, ok)
	require.Equal(t, state.Thin{Fence: 1795470968951844}, thin)
}

func TestAGroupIsThatOfItsHoldAlone(t *testing.T) {
	t.Parallel()
	const text = "7 2 11 12 13 14 15 16 9999999999999 - n.1 o 0 11 0 - 0 n.2 e 12 13 0 - 1"
	g := must(state.ParseGroup(text, 7))(t)
	require.Equal(t, &state.Group{
		Fence: 7, Count: 2, WorkedAt: 11, Extended: 12, Last: 13, ExtendedAt: 14, More: 15, Own: 16, Deadline: state.Forever,
		Entries: []state.Entry{{Claim: "n.1"}, {Claim: "n.2", Fresh: true}},
	}, g)
	for _, other := range []string{text, "", "x"} {
		g := must(state.ParseGroup(other, 8))(t)
		require.Nil(t, g)
	}
	for _, bad := range []string{"7", text + " x", "7 2 11 12 13 14 15 16 x -"} {
		require.ErrorIs(t, second(state.ParseGroup(bad, 7)), state.ErrDamaged, bad)
	}
}

func TestWhatAPoolStores(t *testing.T) {
	t.Parallel()
	c := must(state.ParseCounts("1000000000000009 0000000000011 2000000000000001 2000000000000002 1000000000000001 1000000000000002 1 o l 5 2 0 - -", 4))(t)
	require.Equal(t, state.Counts{
		Resources: 9, Free: 4, Leased: 3, Leaving: 2, Generation: 11, Parked: 1, Filled: true, Settings: "o l 5 2 0 - -",
	}, c)
	s := must(state.ParseSettings(c.Settings))(t)
	require.Equal(t, state.Settings{By: 'o', Policy: 'l', Cooldown: 5, Sharers: 2, Lease: state.Unset, Hold: state.Unset}, s)
	own := must(state.ParseOwn("5 - 0"))(t)
	require.Equal(t, state.Settings{By: '-', Policy: '-', Cooldown: 5, Sharers: state.Unset, Lease: state.Unset, Hold: state.Unset}, own)
	_, err := state.ParseCounts("", 0)
	require.NoError(t, err, "a pool that was never used")

	i := must(state.ParseItem("2 0 9999999999999 5 6 3 1 n.1 a reason\n with lines"))(t)
	require.Equal(t, state.Item{
		Max: 2, Ends: state.Forever, Pending: 5, Revision: 6, Leaving: true, Own: true, Claims: []string{"n.1"}, Reason: "a reason\n with lines",
	}, i)
	require.False(t, i.Listed())
	i.Leaving, i.Ends = false, 0
	require.True(t, i.Listed())

	b := must(state.ParseBinding("9999999999999 any bytes\n"))(t)
	require.Equal(t, state.Binding{Ends: state.Forever, Resource: "any bytes\n"}, b)

	ends, resource, err := state.ParseLane("17 a b")
	require.NoError(t, err)
	require.EqualValues(t, 17, ends)
	require.Equal(t, "a b", resource)
	for _, endless := range []string{"- ", "0 "} {
		ends, _, err := state.ParseLane(endless)
		require.NoError(t, err)
		require.EqualValues(t, state.Forever, ends)
	}
	place, claim, ok := state.PlaceOf("1795470969635-n.1-x\n")
	require.True(t, ok)
	require.Equal(t, []string{"1795470969635", "n.1-x\n"}, []string{place, claim})
}

func TestAForeignTextIsDamaged(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " ", "x", "1", "1 2", "-1 2 3 4 5 6 7 8 9", "?", "1 0 0 0 0 4 0 ", "0 0 0 0 0 0 0 ", "10000000000000 0 0 0 0 0 0 ", "1 0 0 0 0 0 2 n.1 "} {
		require.ErrorIs(t, second(state.ParseItem(text)), state.ErrDamaged, text)
		require.ErrorIs(t, second(state.ParseSettings(text)), state.ErrDamaged, text)
		require.ErrorIs(t, second(state.ParseOwn(text)), state.ErrDamaged, text)
		require.ErrorIs(t, second(state.ParseRecord(text)), state.ErrDamaged, text)
		if text != "" {
			require.ErrorIs(t, second(state.ParseCounts(text, 0)), state.ErrDamaged, text)
		}
	}
	for _, text := range []string{"", "x", "x y", "99999999999999999999 y"} {
		require.ErrorIs(t, second(state.ParseBinding(text)), state.ErrDamaged, text)
		_, _, err := state.ParseLane(text)
		require.ErrorIs(t, err, state.ErrDamaged, text)
	}
	for _, member := range []string{"", "-", "h:n.1", "17", "17-", "o:-"} {
		_, _, ok := state.PlaceOf(member)
		require.False(t, ok, member)
	}
}

// FuzzParse looks for a text that no reader stands: what cannot be read is damaged, and what can be is read
// whole.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		fat, held, "7 2 11 12 13 14 15 16 17 - n.1 o 0 11 0 - 0", "1000000000000012 1000000000000004 1000000000000009 0000000000011 2000000000000002 1000000000000001 1000000000000002 1 o l 5 2 0 - -", "5 - 0",
		"2 0 0 5 6 3 1 n.1 a reason", "17 x", "1795470969635-n.1", "h 17 18 19 20 n - 2 f 6000 0 60000 -5 1:o0:11:0:1:x1:k1:v", "!gone",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v, number, ok := state.ParseValues(text); ok {
			require.EqualValues(t, 3, v.Format)
		} else if number != 0 {
			require.ErrorIs(t, state.Incompatible("x", number), berth.ErrIncompatible)
		}
		if thin, _, ok := state.ParseThin(text); ok && thin.Claim != "" {
			require.Contains(t, text, thin.Claim)
		}
		if r, err := state.ParseRecord(text); err == nil {
			again := must(state.ParseRecord(state.Text(&r)))(t)
			require.Equal(t, r, again)
		} else {
			require.ErrorIs(t, err, state.ErrDamaged)
		}
		if i, err := state.ParseItem(text); err == nil {
			require.Positive(t, i.Max)
			require.True(t, strings.HasSuffix(text, i.Reason))
		} else {
			require.ErrorIs(t, err, state.ErrDamaged)
		}
		_, _ = state.ParseGroup(text, 7)
		_, _ = state.ParseCounts(text, 0)
		_, _ = state.ParseSettings(text)
		_, _ = state.ParseOwn(text)
		_, _ = state.ParseBinding(text)
		_, _, _ = state.ParseLane(text)
		_, _, _ = state.PlaceOf(text)
	})
}

func TestATextThatIsLongerThanMayBeWrittenIsDamaged(t *testing.T) {
	long := strings.Repeat("x", state.MaxText+1)
	for what, change := range map[string]func(*state.Record){
		"owner": func(r *state.Record) { r.Owner = long },
		"label": func(r *state.Record) { r.Label = long },
		"meta":  func(r *state.Record) { r.Meta = map[string]string{"k": strings.Repeat("x", state.MaxMeta)} },
	} {
		r := state.Record{Phase: 'h', Node: "n", Weight: 1, Wait: time.Second, Lease: time.Second}
		must(state.ParseRecord(state.Text(&r)))(t)
		change(&r)
		require.ErrorIs(t, second(state.ParseRecord(state.Text(&r))), state.ErrDamaged, what)
	}
	small := state.Record{Phase: 'h', Node: "n", Meta: map[string]string{}}
	for i := range state.MaxMeta / 2 {
		small.Meta[string([]byte{byte(i), byte(i >> 8)})] = ""
	}
	text := state.Text(&small)
	require.Equal(t, text, state.Bounded(text), "the longest that may be")
	must(state.ParseRecord(text))(t)
	require.Equal(t, "w", state.Bounded("w"+strings.Repeat("x", state.MaxStored)))

	_, ok := state.ParseNode("1 2 3 " + long)
	require.False(t, ok)
	_, err := state.ParsePause("1 me 0 1 0 " + strconv.Itoa(len(long)) + " " + long)
	require.ErrorIs(t, err, state.ErrDamaged)
	require.ErrorIs(t, second(state.ParseItem("1 0 0 0 0 0 0 "+long)), state.ErrDamaged)
	_, err = state.ParseBinding("1 " + strings.Repeat("x", state.MaxResource+1))
	require.ErrorIs(t, err, state.ErrDamaged)
	_, err = state.ParseRun("1 2 3 4 5 6 7 8 failed n 0:" + long)
	require.ErrorIs(t, err, state.ErrDamaged)
	require.Less(t, len(err.Error()), state.MaxText)
	_, _, ok = state.PlaceOf("1-" + strings.Repeat("x", state.MaxMember))
	require.False(t, ok)
	require.ErrorIs(t, second(state.Behind("h:"+strings.Repeat("x", state.MaxMember), "h:")), state.ErrDamaged)
}

func TestAPauseIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]state.Pause{
		"":                            {},
		"5 n.1 0 9 0 0 ":              {Revision: 5, By: "n.1", Paused: true},
		"5 all 17 0 9 0 a: b\nc\x00d": {Revision: 5, By: "all", Notice: 17, Paused: true, Reason: "a: b\nc\x00d"},
		"5 all 17 8 9 4 mineall":      {Revision: 5, By: "all", Notice: 17, Paused: true, Reason: "all"},
		"5 all 17 9 8 4 mineall":      {Revision: 5, By: "all", Notice: 17, Paused: true, Reason: "mine"},
		"6 n.2 17 0 0 0 ":             {Revision: 6, By: "n.2", Notice: 17},
	} {
		got, err := state.ParsePause(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"5", "5 n.1 0 9 0", "5 n.1 0 9 0 0", "5 n.1 0 9 x 0 ", "x n.1 0 9 0 0 ", "5 n.1 0 9 0 5 four"} {
		require.ErrorIs(t, second(state.ParsePause(text)), state.ErrDamaged, text)
	}
}

func TestAMemberOfTheRegistryIsAKindAndAName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gpu", "shop:eu", ":"} {
		kind, told, ok := state.ParseMember(state.Member("sem", name))
		require.True(t, ok)
		require.Equal(t, "sem", kind)
		require.Equal(t, name, told)
	}
	_, _, ok := state.ParseMember("gpu")
	require.False(t, ok)
}

// Two releases side by side look for a name in the same place: a change here is a change of form.
func TestTheShardsOfTheRegistryNeverChange(t *testing.T) {
	t.Parallel()
	require.Equal(t, 16, state.Shards)
	for member, shard := range map[string]int{"sem:gpu": 4, "lock:nightly": 13, "pool:proxies": 9} {
		require.Equal(t, shard, state.Shard(member), member)
	}
	filled := map[int]int{}
	for i := range 1600 {
		filled[state.Shard(fmt.Sprintf("sem:%d", i))]++
	}
	require.Len(t, filled, state.Shards)
	for _, n := range filled {
		require.InDelta(t, 100, n, 50)
	}
}
