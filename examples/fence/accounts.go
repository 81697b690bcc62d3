package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/berth-go/berth/pkg/fence"
)

// accounts are rows of a table: id, balance, and the fence of the hold that was
// here last, 0 at first.
type accounts struct{ db *sql.DB }

// The condition is <= and not <: one hold writes often, under the same fence.
const (
	enterStatement   = `UPDATE accounts SET fence = $1 WHERE id = $2 AND fence <= $1`
	setStatement     = `UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2`
	balanceStatement = `SELECT balance FROM accounts WHERE id = $1`
	fenceStatement   = `SELECT fence FROM accounts WHERE id = $1`
)

// enter leaves a fence in the row: no older hold changes it from then on.
func (a accounts) enter(ctx context.Context, id string, number int64) error {
	return a.update(ctx, id, number, enterStatement, number, id)
}

// set changes the balance, in the one step that also checks the fence.
func (a accounts) set(ctx context.Context, id string, balance, number int64) error {
	return a.update(ctx, id, number, setStatement, balance, number, id)
}

func (a accounts) balance(ctx context.Context, id string) (balance int64, err error) {
	if err := a.db.QueryRowContext(ctx, balanceStatement, id).Scan(&balance); err != nil {
		return 0, fmt.Errorf("account %q: %w", id, err)
	}
	return balance, nil
}

// update runs a statement that changes the account's row if no greater fence is
// in it. A statement that changed nothing is no error for a database: the number
// of rows says whether the fence was admitted.
func (a accounts) update(ctx context.Context, id string, number int64, statement string, args ...any) error {
	if number <= 0 { // what a context has outside of a hold; a new row has 0 as well
		return &fence.StaleError{Name: id, Fence: number}
	}
	result, err := a.db.ExecContext(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("account %q: %w", id, err)
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("account %q: %w", id, err)
	}
	if rows == 1 {
		return nil
	}
	return a.refusal(ctx, id, number)
}

// refusal says why no row was changed. It decides nothing: it reads in a step of
// its own, when all is over.
func (a accounts) refusal(ctx context.Context, id string, number int64) error {
	var greatest int64
	err := a.db.QueryRowContext(ctx, fenceStatement, id).Scan(&greatest)
	switch {
	case err != nil: // sql.ErrNoRows: there is no such account
		return fmt.Errorf("account %q: %w", id, err)
	case greatest > number:
		return &fence.StaleError{Name: id, Fence: number, Greatest: greatest}
	}
	return fmt.Errorf("account %q: no row was changed", id)
}
