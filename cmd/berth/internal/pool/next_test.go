package pool

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/allocator"
)

// TestFreeResourcesAreListedInTheirOrder takes the first of four and gives it back, so that it
// is the last; another one rests.
func TestFreeResourcesAreListedInTheirOrder(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	pool := apptest.Filled(t, s, "proxies", "z", "rests", apptest.Wild, "a")
	next := func(args ...string) apptest.Result {
		t.Helper()
		return apptest.Call(t, s.URL(), append([]string{"pool", "next", "proxies"}, args...)...)
	}
	held, err := pool.Allocate(ctx, nil)
	require.NoError(t, err)
	require.NoError(t, held.Release(ctx))
	require.NoError(t, pool.Rest(ctx, "rests", time.Hour, "worn out", nil))
	require.Equal(t, apptest.Outcome(0, strings.TrimLeft(`
RESOURCE         STAYS
"c\x1b[2J\xff"   -
a                -
z                -
`, "\n"), ""), next())
	require.Equal(t, "RESOURCE         STAYS\n\"c\\x1b[2J\\xff\"   -\na                -\n... and more\n", next("--limit", "2").Out)
	require.NotContains(t, next("--limit", "3").Out, "more")
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies", "next": [
		{"resource": "c\u001b[2J\ufffd", "base64": "YxtbMkr/", "state": "free", "leftMs": 0, "reason": "", "expiryMs": null, "leaving": false, "maxSharers": 1, "holders": []}
	]}`, next("--json", "--limit", "1").Out)

	_, err = pool.Add(ctx, []string{"shared"}, &allocator.AddOptions{MaxSharers: 2, Expiry: 10 * time.Hour})
	require.NoError(t, err)
	_, err = pool.Allocate(ctx, &allocator.AllocateOptions{Resource: "shared"})
	require.NoError(t, err)
	_, err = pool.Remove(ctx, []string{"a", "z", apptest.Wild})
	require.NoError(t, err)
	require.Regexp(t, `^RESOURCE +STAYS +SHARERS\nshared +(10h00m|9h59m) +1 of 2\n$`, next().Out)
	_, err = pool.Allocate(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, apptest.Outcome(0, "Nothing is free in pool proxies in namespace berth.\n", ""), next())
	require.JSONEq(t, `{"namespace": "berth", "name": "proxies", "next": []}`, next("--json").Out)
}

func TestAPoolThatHandsOutAtRandomHasNoOrder(t *testing.T) {
	for _, test := range []struct {
		err  error
		code int
		says string
	}{
		{berth.Invalid("Policy", "under Random there is no order"), app.ExitFailed, `pool "proxies" in namespace "berth" hands out at random: there is no order`},
		{errors.New("the server is gone"), app.CodeOf(errors.New("x")), "the server is gone"},
	} {
		var out strings.Builder
		a := app.New(&out, nil)
		a.Namespace = "berth"
		err := printNext(a, "proxies", func(yield func(allocator.ResourceInfo, error) bool) { yield(allocator.ResourceInfo{}, test.err) }, 0)
		require.EqualError(t, err, test.says)
		require.Equal(t, test.code, app.CodeOf(err))
		require.Empty(t, out.String())
	}
}
