package main

import (
	"context"
	"database/sql"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/fence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, ids ...string) accounts {
	t.Helper()
	db := sql.OpenDB(newDatabase(ids...))
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return accounts{db}
}

func TestTheProgram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		book := open(t, "alice")
		require.NoError(t, run(t.Context(), berthtest.Redis(t), book, "alice"))
		balance, err := book.balance(t.Context(), "alice")
		require.NoError(t, err)
		require.Equal(t, int64(110), balance, "no payment is lost, and none comes late")
	})
}

func TestTheStatements(t *testing.T) {
	t.Parallel()
	book := open(t, "alice", "bob")
	ctx := t.Context()
	enter := func(number int64) error { return book.enter(ctx, "alice", number) }
	set := func(balance int64) func(int64) error {
		return func(number int64) error { return book.set(ctx, "alice", balance, number) }
	}
	for _, step := range []struct {
		what    string
		run     func(number int64) error
		fence   int64
		stale   bool
		balance int64
	}{
		{"nobody enters without a hold", enter, 0, true, 0},
		{"nor writes", set(1), 0, true, 0},
		{"the first hold enters", enter, 7, false, 0},
		{"and enters again", enter, 7, false, 0},
		{"it writes", set(10), 7, false, 10},
		{"and writes often", set(20), 7, false, 20},
		{"also the same", set(20), 7, false, 20},
		{"the next hold enters", enter, 9, false, 20},
		{"the first does not write any more", set(30), 7, true, 20},
		{"nor enters", enter, 7, true, 20},
		{"the next one writes", set(40), 9, false, 40},
		{"a hold may write without having entered", set(50), 10, false, 50},
		{"and is the latest then", set(60), 9, true, 50},
	} {
		err := step.run(step.fence)
		if step.stale {
			require.ErrorIs(t, err, fence.ErrStale, step.what)
		} else {
			require.NoError(t, err, step.what)
		}
		requireBalance(t, book, "alice", step.balance)
	}
	requireBalance(t, book, "bob", 0)
	require.EqualError(t, enter(3), `berth: stale fence for "alice": 3, after 10 was admitted`)
}

func requireBalance(t *testing.T, book accounts, id string, want int64) {
	t.Helper()
	balance, err := book.balance(context.Background(), id)
	require.NoError(t, err)
	require.Equal(t, want, balance)
}

func TestAnAccountThatIsNotThere(t *testing.T) {
	t.Parallel()
	book := open(t, "alice")
	require.ErrorIs(t, book.enter(t.Context(), "eve", 7), sql.ErrNoRows)
	require.ErrorIs(t, book.set(t.Context(), "eve", 1, 7), sql.ErrNoRows)
	_, err := book.balance(t.Context(), "eve")
	require.ErrorIs(t, err, sql.ErrNoRows)
	require.NotErrorIs(t, err, fence.ErrStale)
}
