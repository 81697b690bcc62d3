package watch

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestANameIsReadOnceHoweverManyOfItsClaimsAreLookedAt(t *testing.T) {
	testkit.In(t, "nightly", "berth:lock:{nightly}:state", "berth:lock:{nightly}:line", func(t *testing.T, base *testkit.World) {
		ctx := context.Background()
		p := base.Process()
		n, err := node.New(p.Redis, node.Config{Lease: time.Minute})
		require.NoError(t, err)
		defer func() { require.NoError(t, n.Close(ctx)) }()
		l, err := qlock.New(n, &qlock.Config{Lease: time.Minute}).Lock(ctx, "nightly", nil)
		require.NoError(t, err)

		var times atomic.Int64
		reads := base.Process()
		reads.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "MGET" {
				times.Add(1)
			}
			return link.Pass
		})
		look, err := inspect.New(reads.Redis, inspect.Config{})
		require.NoError(t, err)
		w := New(look, nil)
		defer w.Close()

		var feeds []*Feed[Name]
		claims := []string{"", "", l.ID(), l.ID(), "n.1", "n.2", "n.3"}
		for _, claim := range claims {
			feeds = append(feeds, w.Name(keyspace.Lock, "nightly", claim))
		}
		advance(9500 * time.Millisecond)
		require.EqualValues(t, 10, times.Load(), "once a second")
		for i, f := range feeds {
			last, _ := f.Last()
			require.Len(t, last.Value.Asked, 4)
			require.True(t, claims[i] == "" || last.Value.Asked[claims[i]].Claim == claims[i])
		}
		late := w.Name(keyspace.Lock, "nightly", "n.late")
		last, news := late.Last()
		require.Zero(t, last.Seq, "what was read before does not tell of its claim")
		require.True(t, last.At.IsZero())
		<-news
		last, err = late.First(ctx)
		require.NoError(t, err)
		require.Contains(t, last.Value.Asked, "n.late")
		late.Close()
		for _, f := range feeds[1:] {
			f.Close()
		}
		advance(time.Second)
		last, _ = feeds[0].Last()
		require.Len(t, last.Value.Asked, 5, "a page that is opened looks twice")
		advance(unlooked + 2*time.Second)
		last, _ = feeds[0].Last()
		require.Empty(t, last.Value.Asked)
		feeds[0].Close()
	})
}

func TestANameThatCannotBeReadIsShownAsThat(t *testing.T) {
	testkit.In(t, "nightly", "berth:lock:{nightly}:state", "berth:lock:{nightly}:line", func(t *testing.T, base *testkit.World) {
		base.Do("HSET", "berth:lock:{nightly}:state", "v", "9 words of a release to come")
		look, err := inspect.New(base.Redis, inspect.Config{})
		require.NoError(t, err)
		w := New(look, nil)
		defer w.Close()
		f := w.Name(keyspace.Lock, "nightly", "n.1")
		defer f.Close()
		last, err := f.First(context.Background())
		require.NoError(t, err)
		require.NoError(t, last.Err)
		require.Error(t, last.Value.Err)
		require.Equal(t, inspect.Incompatible, last.Value.Asked["n.1"].Reasons[0].Code)
	})
}
