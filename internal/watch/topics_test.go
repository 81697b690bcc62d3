package watch

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
)

// pages are so many, with one claim each.
func pages(n int, fails *error) func(context.Context, string, int) (inspect.Page[inspect.Claim], error) {
	return func(_ context.Context, cursor string, most int) (page inspect.Page[inspect.Claim], err error) {
		if *fails != nil {
			return page, *fails
		}
		at, _ := strconv.Atoi(cursor)
		page.At = noon.Add(time.Duration(at) * time.Second)
		page.Items = []inspect.Claim{{Name: cursor, Holder: &berth.Holder{}}}[:min(1, most)]
		if at+1 < n {
			page.Next = strconv.Itoa(at + 1)
		}
		return page, nil
	}
}

func TestAWalkOverManyNamesTellsWhatItHasFoundUntilItHasComeToItsEnd(t *testing.T) {
	var fails error
	k := walk{page: pages(3*claimsPages-1, &fails)}
	for n := 1; n <= 2; n++ {
		c, err := k.next(t.Context())
		require.NoError(t, err)
		require.True(t, c.Partial)
		require.Len(t, c.Items, n*claimsPages)
		require.Equal(t, noon, c.At, "as old as the first page")
	}
	for range 3 { // and while the next walk is under way
		c, err := k.next(t.Context())
		require.NoError(t, err)
		require.False(t, c.Partial)
		require.Len(t, c.Items, 3*claimsPages-1)
	}
}

func TestAWalkThatFailsBeginsAnew(t *testing.T) {
	var fails error
	k := walk{page: pages(2*claimsPages, &fails)}
	_, err := k.next(t.Context())
	require.NoError(t, err)
	fails = errors.New("it is away")
	_, err = k.next(t.Context())
	require.ErrorIs(t, err, fails)
	fails = nil
	c, err := k.next(t.Context())
	require.NoError(t, err)
	require.True(t, c.Partial, "what the cursor meant may be gone")
	c, err = k.next(t.Context())
	require.NoError(t, err)
	require.Len(t, c.Items, 2*claimsPages)
	require.False(t, c.Partial)
}

func TestAWalkEndsWhereItHasFoundEnough(t *testing.T) {
	var fails error
	k := walk{page: pages(10*claimsMost, &fails)}
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
