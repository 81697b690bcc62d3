package main

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		books := &ledger{balances: map[string]int{"account:anna": 1000, "account:ben": 1000}}
		require.NoError(t, run(t.Context(), berthtest.Redis(t), books))
		// 100 + 102 + ... + 108 one way, 101 + 103 + ... + 109 the other.
		require.Equal(t, map[string]int{"account:anna": 1005, "account:ben": 995}, books.balances)
	})
}

func TestABookingWithoutATransferTakesItsLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bank{qlock.New(berthtest.Node(t), qlock.Config{}), &ledger{balances: map[string]int{"account:anna": 0}}}
		require.NoError(t, b.book(t.Context(), "anna", 7))
		require.Equal(t, 7, b.books.balances["account:anna"])
		require.ErrorIs(t, b.books.add(t.Context(), "account:anna", 1, 1), fence.ErrStale, "of an older hold")
		require.EqualError(t, b.book(t.Context(), "eve", 7), "there is no account:eve")
	})
}
