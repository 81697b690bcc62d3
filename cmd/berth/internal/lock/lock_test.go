package lock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestLockExtend(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	locks := apptest.LocksOf(t, s, node.Config{})
	apptest.Got(locks.Lock(t.Context(), "gpu", &qlock.LockOptions{MaxHold: time.Hour}))(t)
	apptest.Got(locks.Lock(t.Context(), "disk 2", &qlock.LockOptions{Lease: berth.Forever}))(t)
	got := apptest.Call(t, s.URL(), "lock", "extend", "gpu", "--by", "10m", "--force").Ends(t, 0)
	require.Regexp(t, `^gpu: extended by 10m00s, 10m\d\ds left\n$`, got.Out)

	extended := apptest.Read[extendDocument](t, apptest.Call(t, s.URL(), "lock", "extend", "gpu", "--by", "2h", "--force", "--json").Out)
	require.Equal(t, 2*time.Hour, extended.By)
	require.InDelta(t, time.Hour, extended.Left, float64(apptest.Patience), "the maximum hold bounds it")

	got = apptest.Call(t, s.URL(), "lock", "extend", "disk 2", "--by", "1s", "--force")
	require.Equal(t, apptest.Outcome(0, "disk 2: extended by 1s, forever left\n", ""), got)
}
