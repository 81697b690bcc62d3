package line_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// noticeKey is where the notice of locks is.
const noticeKey = "ns:notice:{all}:state"

// notice sends notice_set.
func (a *process) notice(field, lasts, what, seen, by string) *scriptkit.Reply {
	a.t.Helper()
	run := scriptkit.NewRunner(a.redis, scriptkit.Options{})
	r, err := run.Run(context.Background(), composed.Library().Script("notice_set"), scriptkit.Once,
		[]string{noticeKey}, []string{lasts, what, by, field, seen})
	require.NoError(a.t, err)
	return &r
}

func TestEachNoticeHasAGreaterNumber(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		r := a.notice("pause:sem", "60000", "moving\nhouse", "0", "one")
		require.Equal(t, "set", r.Status())
		first := r.Int(1)
		require.Equal(t, time.Now().UnixMilli(), first)
		require.EqualValues(t, 60000, r.Int(2))
		r = a.notice("l:w*", "0", "drain", "0", "two")
		require.Equal(t, first+1, r.Int(1), "of all fields")
		time.Sleep(time.Second)
		r = a.notice("pause:sem", "60000", "moving\nhouse", "0", "one")
		require.Equal(t, []int64{first, 59000}, []int64{r.Int(1), r.Int(2)}, "the same call is answered again")
		r = a.notice("pause:sem", "0", "", strconv.FormatInt(first, 10), "three")
		require.Equal(t, []int64{first + 1000, 0}, []int64{r.Int(1), r.Int(2)})
		r = a.notice("pause:sem", "60000", "moving\nhouse", "0", "one")
		require.Equal(t, "stale", r.Status(), "a late copy")
		require.Equal(t, first+1000, r.Int(1))
		fields, err := a.do("HGETALL", noticeKey).AsStrMap()
		require.NoError(t, err)
		require.Equal(t, strconv.FormatInt(first+1000, 10)+" three 0 ", fields["pause:sem"])
		require.True(t, strings.HasSuffix(fields["l:w*"], " two 0 drain"))
	})
}

func TestANoticeLastsADayLongerThanThePause(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		left := func() time.Duration {
			n, err := a.do("PTTL", noticeKey).AsInt64()
			require.NoError(t, err)
			return time.Duration(n) * time.Millisecond
		}
		a.notice("n:a", "0", "drain", "0", "one")
		require.Equal(t, 30*24*time.Hour, left(), "a drain without an end is seen for so long")
		a.notice("n:a", "0", "stop", "9999999999999", "stop")
		require.Equal(t, 24*time.Hour, left())
		a.notice("pause:sem", "7200000", "", "0", "two")
		require.Equal(t, 26*time.Hour, left())
		a.notice("n:b", "10800000", "drain for a while", "0", "b")
		require.Equal(t, 27*time.Hour, left())
		time.Sleep(time.Hour)
		a.notice("n:a", "0", "stop", "9999999999999", "three")
		require.Equal(t, 26*time.Hour, left(), "the drain and the pause go on")
	})
}

// Whoever may write the key may forge what he likes; what operators say is said all the same.
func TestAForgedNoticeIsWrittenOver(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		now := time.Now().UnixMilli()
		for _, text := range []string{"99999999999999999999 x 0 drain", "x", "1 x 99999999999999999999 y"} {
			a.do("HSET", noticeKey, "pause:sem", text)
			r := a.notice("pause:sem", "60000", "", strconv.FormatInt(notice.Read(text).Number, 10), "one"+text)
			require.Equal(t, []any{"set", int64(60000)}, []any{r.Status(), r.Int(2)}, text)
			require.Less(t, r.Int(1), now+10)
		}
		for i := range 10_001 {
			a.do("HSET", noticeKey, "l:"+strconv.Itoa(i)+"*", "1 x 0 drain")
		}
		require.Equal(t, "crowded", a.notice("l:x", "0", "drain", "0", "two").Status())
		require.Equal(t, "set", a.notice("l:7*", "0", "stop", "1", "three").Status(), "one that is there")
		require.Equal(t, "set", a.notice("pause:sem", "0", "", strconv.FormatInt(now+10, 10), "four").Status())
	})
}

func TestAHundredDrainsAreEnough(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		for i := range 100 {
			require.Equal(t, "set", a.notice("n:"+strconv.Itoa(i), "0", "drain", "0", strconv.Itoa(i)).Status())
		}
		require.Equal(t, "crowded", a.notice("l:x", "0", "drain", "0", "x").Status())
		require.Equal(t, "set", a.notice("n:7", "0", "stop", "9999999999999", "s").Status())
		require.Equal(t, "set", a.notice("pause:sem", "1000", "", "0", "p").Status())
		size := func() int64 {
			n, err := a.do("HLEN", noticeKey).AsInt64()
			require.NoError(t, err)
			return n
		}
		time.Sleep(25 * time.Hour)
		require.Equal(t, "set", a.notice("l:x", "0", "drain", "0", "x").Status())
		require.EqualValues(t, 101, size(), "what was stopped has gone; what goes on is seen, and the pause")
		time.Sleep(time.Millisecond)
		require.Equal(t, "set", a.notice("l:y", "0", "drain", "0", "y").Status())
		require.EqualValues(t, 101, size())
		gone, err := a.do("HMGET", noticeKey, "n:0", "n:1", "l:x").AsStrSlice()
		require.NoError(t, err)
		require.Equal(t, []bool{true, false, false}, []bool{gone[0] == "", gone[1] == "", gone[2] == ""}, "the oldest gives way")
		left, err := a.do("PTTL", noticeKey).AsInt64()
		require.NoError(t, err)
		require.Equal(t, (30 * 24 * time.Hour).Milliseconds(), left, "then the key expires")
	})
}
