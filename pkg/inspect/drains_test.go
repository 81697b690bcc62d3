package inspect_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/inspect"
)

const noticeKey = "berth:notice:{all}:state"

func TestDrainsInForceAreRead(t *testing.T) {
	inWorld(t, func(w *world) {
		now := time.Now().UnixMilli()
		for field, text := range map[string]string{
			"l:worker/*": fmt.Sprintf("%d x 0 drain moving house", now-60_000), "n:abc": fmt.Sprintf("%d x %d drain", now-1000, now+5000),
			"l:stopped": fmt.Sprintf("%d x 0 stop", now), "l:over": fmt.Sprintf("%d x %d drain", now-1000, now), "l:later": fmt.Sprintf("%d x 0 drain", now+9000),
			"l:damaged": "x", "l:long": strings.Repeat("x", 1<<20), "pause:sem": fmt.Sprintf("%d x %d why", now, now+5000),
		} {
			w.Do("HSET", noticeKey, field, text)
		}
		page, err := w.look.Drains(ctx)
		require.NoError(t, err)
		require.Len(t, page.Problems, 2)
		since := func(ms int64) time.Time { return time.UnixMilli(ms) }
		require.Equal(t, []berth.Drain{
			{DrainTarget: berth.DrainTarget{Label: "worker/*"}, Since: since(now - 60_000), Reason: "moving house"},
			{DrainTarget: berth.DrainTarget{Node: "abc"}, Since: since(now - 1000), Left: 5 * time.Second},
			{DrainTarget: berth.DrainTarget{Label: "later"}, Since: since(now)},
		}, page.Items)
		_, err = w.look.Drains(ctx)
		require.ErrorContains(t, err, "damaged", "a text that is too long is not read again at once")
	})
}

func TestDrainsThatMayNotBeReadAreNotNone(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.Process()
		p.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "HSCAN" {
				return link.Refuse("NOPERM User looks has no permissions to run the 'hscan' command")
			}
			return link.Fate{}
		})
		look := testkit.Must(inspect.New(p.Redis, inspect.Config{})).In(t)
		_, err := look.Drains(ctx)
		require.ErrorIs(t, err, inspect.ErrDrainsUnreadable)
		require.ErrorContains(t, err, "drains are not readable (needs +hscan)")
	})
}
