package inspect

import (
	"context"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Runs reads what is kept of the runs of a name of package once. Its Runs is nil where nothing is.
func (r *Reader) Runs(ctx context.Context, name string) (berth.Name, error) {
	if err := keyspace.CheckName(name); err != nil {
		return berth.Name{}, err
	}
	row, err := r.read.Name(ctx, keyspace.Once, name)
	if err != nil {
		return berth.Name{}, err
	}
	rows := []reader.Row{row}
	err = r.goOn(ctx, rows)
	return rows[0].Name, err
}

// goOn says of the runs that have begun whether they go on: they hold their lock then. An outcome is kept before the lock is
// released. So the runs of a name whose lock is not held are read again.
func (r *Reader) goOn(ctx context.Context, rows []reader.Row) error {
	begun := map[berth.Ref]*reader.Row{} // by their lock
	var locks, unheld []berth.Ref
	for i := range rows {
		if runs := rows[i].Runs; runs != nil && runs.Outcome == state.RunBegun {
			lock := berth.Ref{Kind: keyspace.Lock, Name: rows[i].Name.Name}
			begun[lock], locks = &rows[i], append(locks, lock)
		}
	}
	if len(locks) == 0 {
		return nil
	}
	cost := func(berth.Ref) int { return 10 }
	held, err := r.rowsOf(ctx, 1, locks, cost)
	for lock, row := range begun {
		h := held[lock].Longest
		if row.Runs.GoesOn = h != nil && h.Fence == row.Runs.Fence; !row.Runs.GoesOn {
			unheld = append(unheld, berth.Ref{Kind: keyspace.Once, Name: lock.Name})
		}
	}
	if len(unheld) == 0 || err != nil {
		return err
	}
	again, err := r.rowsOf(ctx, 1, unheld, cost)
	for ref, now := range again {
		row := begun[berth.Ref{Kind: keyspace.Lock, Name: ref.Name}]
		if now.Runs != nil {
			now.Runs.GoesOn = now.Runs.Outcome == state.RunBegun && now.Runs.Fence != row.Runs.Fence // it has begun since
		}
		*row = now
	}
	return err
}
