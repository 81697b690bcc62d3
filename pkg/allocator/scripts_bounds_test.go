package allocator_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/scriptkit"
)

const (
	lingerMS = "2000"
	prefix   = "berth:wake:"
)

// crowd calls the scripts of a pool that has more in it than one run may drop.
type crowd struct {
	*testkit.World
	keys []string
}

func inCrowd(t *testing.T, test func(t *testing.T, m *crowd)) {
	t.Helper()
	testkit.In(t, "many", "berth:pool:{many}:state", "", func(t *testing.T, w *testkit.World) {
		m := &crowd{World: w}
		for _, part := range []string{"state", "line", "items", "free", "bindings"} {
			m.keys = append(m.keys, "berth:pool:{many}:"+part)
		}
		test(t, m)
	})
}

func (m *crowd) add(lasts string, from, to int) {
	for ; from < to; from += 100 {
		args := []string{lingerMS, prefix, "many", lasts, "1", "0", "1", ""}
		for n := from; n < min(from+100, to); n++ {
			args = append(args, "r"+strconv.Itoa(n))
		}
		m.CallOn(m.keys, "pool_add", args...)
	}
}

func (m *crowd) try(n int) scriptkit.Reply {
	wants := "o 0 0 0 0:"
	terms := fmt.Sprintf("1 - r 1000 1000 0 0 0:0:0:%d:%s", len(wants), wants)
	return m.CallOn(m.keys, "pool_acquire", lingerMS, prefix, "many", "a", "a."+strconv.Itoa(n), "0", line.Lane(0), terms)
}

func (m *crowd) whole(t *testing.T) {
	t.Helper()
	r := m.CallOn(m.keys, "pool_inspect", "items", "0", "100", "10000")
	require.Equal(t, 22, r.Len(), "Inspect finds nothing")
}

func TestATryFindsAResourceBehindMoreExpiredLeasesThanOneRunDrops(t *testing.T) {
	inCrowd(t, func(t *testing.T, m *crowd) {
		m.add("0", 0, 120)
		for n := range 120 {
			r := m.try(n)
			require.Equal(t, "granted", r.Status())
		}
		m.Advance(1001 * time.Millisecond)
		r := m.try(1000)
		require.Equal(t, "granted", r.Status())
		require.True(t, line.More(&r, 4), "there is more to sweep")
		m.whole(t)
	})
}

func TestATryIsToldThatThereIsMoreBehindExpiredResources(t *testing.T) {
	inCrowd(t, func(t *testing.T, m *crowd) {
		m.add("500", 0, 350)
		m.add("0", 350, 351)
		m.Advance(501 * time.Millisecond)
		for n := range 5 {
			r := m.try(n)
			m.whole(t)
			if r.Status() == "granted" {
				require.Equal(t, "r350", r.Str(6))
				return
			}
			require.True(t, line.More(&r, 4), "full is not the last word")
		}
		t.Fatal("nothing was granted")
	})
}
