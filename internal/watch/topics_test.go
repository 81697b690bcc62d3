package watch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// pages are so many, with one claim each.
func pages(n int, fails *error) func(context.Context, string, int) (inspect.Page[inspect.Claim], error) {
	return func(_ context.Context, cursor string, most int) (page inspect.Page[inspect.Claim], err error) {
		if *fails != nil {
			return page, *fails
		}
		at, _ := strconv.Atoi(cursor)
		page.At = noon.Add(time.Duration(at) * time.Second)
		page.Items = []inspect.Claim{{Name: cursor, Hold: &berth.Holder{}}}[:min(1, most)]
		if at+1 < n {
			page.Next = strconv.Itoa(at + 1)
		}
		return page, nil
	}
}

func TestAWalkOverManyNamesTellsWhatItHasFoundUntilItHasComeToItsEnd(t *testing.T) {
	var fails error
	k := walk[inspect.Claim]{page: pages(3*claimsPages-1, &fails)}
	for n := 1; n <= 2; n++ {
		c := testkit.Must(k.next(t.Context())).In(t)
		require.True(t, c.Partial)
		require.Len(t, c.Items, n*claimsPages)
		require.Equal(t, noon, c.At, "as old as the first page")
	}
	for range 3 { // and while the next walk is under way
		c := testkit.Must(k.next(t.Context())).In(t)
		require.False(t, c.Partial)
		require.Len(t, c.Items, 3*claimsPages-1)
	}
}

func TestAWalkThatFailsBeginsAnew(t *testing.T) {
	var fails error
	k := walk[inspect.Claim]{page: pages(2*claimsPages, &fails)}
	testkit.Must(k.next(t.Context())).In(t)
	fails = errors.New("it is away")
	require.ErrorIs(t, testkit.Second(k.next(t.Context())), fails)
	fails = nil
	c := testkit.Must(k.next(t.Context())).In(t)
	require.True(t, c.Partial, "what the cursor meant may be gone")
	c = testkit.Must(k.next(t.Context())).In(t)
	require.Len(t, c.Items, 2*claimsPages)
	require.False(t, c.Partial)
}

func TestAWalkEndsWhereItHasFoundEnough(t *testing.T) {
	var fails error
	k := walk[inspect.Claim]{page: pages(10*claimsMost, &fails)}
	var c Claims
	for range claimsMost / claimsPages {
		c, _ = k.next(t.Context())
	}
	require.Len(t, c.Items, claimsMost)
	require.True(t, c.Partial, "there are more")
	require.NotNil(t, k.whole)
}

// Owners and labels are any bytes.
func TestTopicsAreApartWhereTheirBytesAre(t *testing.T) {
	filter := func(owner string) inspect.ClaimFilter { return inspect.ClaimFilter{Owner: owner} }
	require.NotEqual(t, keyOf("claims", filter("\xff")), keyOf("claims", filter("\xfe")))
	require.NotEqual(t, keyOf("name", `a" "b`, ""), keyOf("name", "a", `b" "`))
}

func TestANameIsReadOnceHoweverManyOfItsClaimsAreLookedAt(t *testing.T) {
	testkit.In(t, "nightly", "berth:lock:{nightly}:state", "berth:lock:{nightly}:line", func(t *testing.T, base *testkit.World) {
		ctx := context.Background()
		p := base.Process()
		n := testkit.Must(node.New(p.Redis, node.Config{Lease: time.Minute})).In(t)
		defer func() { require.NoError(t, n.Close(ctx)) }()
		l := testkit.Must(qlock.New(n, qlock.Config{Lease: time.Minute}).Lock(ctx, "nightly", nil)).In(t)

		reads := base.Process()
		look := testkit.Must(inspect.New(reads.Redis, inspect.Config{})).In(t)
		w := New(look, nil)
		defer w.Close()

		var feeds []*Feed[Name]
		claims := []string{"", "", l.ID(), l.ID(), "n.1", "n.2", "n.3"}
		for _, claim := range claims {
			feeds = append(feeds, w.Name(keyspace.Lock, "nightly", claim))
		}
		advance(9500 * time.Millisecond)
		require.Equal(t, 10, reads.Count("MGET"), "once a second")
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
		last = testkit.Must(late.First(ctx)).In(t)
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

		base.Do("HSET", "berth:lock:{newer}:state", "v", "9 words of a release to come")
		newer := w.Name(keyspace.Lock, "newer", "n.1")
		defer newer.Close()
		last = testkit.Must(newer.First(ctx)).In(t)
		require.NoError(t, last.Err, "what cannot be read is shown as that")
		require.Error(t, last.Value.Err)
		require.Equal(t, inspect.Incompatible, last.Value.Asked["n.1"].Reasons[0].Code)
	})
}

func TestOfManyClaimsOneReadingAsksForThoseThatWereReadTheLongestAgo(t *testing.T) {
	testkit.In(t, "nightly", "berth:lock:{nightly}:state", "berth:lock:{nightly}:line", func(t *testing.T, base *testkit.World) {
		w := New(testkit.Must(inspect.New(base.Process().Redis, inspect.Config{})).In(t), nil)
		defer w.Close()
		var feeds []*Feed[Name]
		look := func(claim string) { feeds = append(feeds, w.Name(keyspace.Lock, "nightly", claim)) }
		last := func() Name {
			last, _ := feeds[0].Last()
			return last.Value
		}
		look("")
		for i := range 27 {
			look(fmt.Sprint("n.", i))
		}
		advance(500 * time.Millisecond)
		for n := 1; n <= 6; n++ {
			fresh := 0
			for _, asked := range last().Asked {
				if asked.At.Equal(last().At) {
					fresh++
				}
				require.Less(t, last().At.Sub(asked.At), 3*time.Second)
			}
			if n > 1 { // the first reading may begin before all have come
				require.Equal(t, 10, fresh)
			}
			require.GreaterOrEqual(t, len(last().Asked), min(10*(n-1), 27))
			require.LessOrEqual(t, len(last().Asked), min(10*n, 27))
			advance(time.Second)
		}
		look("n.new")
		advance(time.Second)
		require.Contains(t, last().Asked, "n.new", "of which nothing was read yet")
		require.Len(t, last().Asked, 28)
		for _, f := range feeds[1:] {
			f.Close()
		}
		advance(unlooked + 2*time.Second)
		require.Empty(t, last().Asked, "what nobody looks at is forgotten")
		look("n.0")
		advance(time.Second)
		require.Len(t, last().Asked, 1)
		for _, f := range feeds {
			f.Close()
		}
	})
}

// An overview whose server is far away is not the later by the drains.
func TestDrainsAreReadWhileAnOverviewIs(t *testing.T) {
	testkit.In(t, "a", "berth:lock:{a}:state", "berth:lock:{a}:line", func(t *testing.T, base *testkit.World) {
		reads := base.Process()
		var drains atomic.Pointer[time.Time]
		reads.OnCommand(func(c link.Command) link.Fate {
			if now := time.Now(); c.Name == "HSCAN" {
				drains.Store(&now)
			}
			return link.Slow(100 * time.Millisecond)
		})
		w := New(testkit.Must(inspect.New(reads.Redis, inspect.Config{})).In(t), nil)
		defer w.Close()
		began := time.Now()
		f := w.Overview()
		defer f.Close()
		last := testkit.Must(f.First(t.Context())).In(t)
		require.NoError(t, last.Err)
		require.Greater(t, time.Since(began), 100*time.Millisecond, "it is read in several steps")
		require.NoError(t, w.DrainsSeen().Err)
		require.Equal(t, began, *drains.Load())
	})
}

func TestAPageOfNamesIsReadOnceForAWhileOrAnew(t *testing.T) {
	testkit.In(t, "nightly", "berth:lock:{nightly}:state", "berth:lock:{nightly}:line", func(t *testing.T, base *testkit.World) {
		reads := base.Process()
		w := New(testkit.Must(inspect.New(reads.Redis, inspect.Config{})).In(t), nil)
		defer w.Close()
		turn := func(prefix, cursor string, anew bool) int {
			f := w.Names(inspect.NameFilter{Prefix: prefix}, cursor, anew)
			defer f.Close()
			last := testkit.Must(f.First(t.Context())).In(t)
			require.Equal(t, cursor != "", last.Err != nil)
			return last.Turn
		}
		require.Equal(t, []int{1, 1, 2, 2, 3, 3}, []int{
			turn("", "", false), turn("", "", false), turn("x", "", false), turn("x", "", false), turn("", "no cursor", false), turn("", "no cursor", false),
		})
		advance(NamesEvery / 2)
		require.Equal(t, []int{4, 4, 5}, []int{turn("", "", true), turn("", "", false), turn("", "", true)})
		advance(NamesEvery)
		require.Equal(t, 6, turn("", "", false))

		reads.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f := w.Names(inspect.NameFilter{}, "", true)
		require.ErrorIs(t, testkit.Second(f.First(ctx)), context.DeadlineExceeded)
		f.Close()
		go func() {
			advance(time.Second)
			w.Close()
		}()
		last := testkit.Must(w.Names(inspect.NameFilter{}, "", true).First(t.Context())).In(t)
		require.ErrorIs(t, last.Err, ErrClosed)
		require.Equal(t, 7, last.Turn, "the one that is under way")
	})
}
