package qlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/qlock"
)

// End what an owner or a node holds and has waiting, or all holds of a namespace, as
// before a migration.
func ExampleOperator_Release() {
	locks, done := open(qlock.Config{})
	defer done()

	ctx := context.Background()
	order := berth.WithOwner(ctx, "order 42")
	for _, name := range []string{"stock", "till", "printer"} {
		if _, err := locks.Lock(order, name, nil); err != nil {
			panic(err)
		}
	}
	fmt.Println(locks.Operator().Release(ctx, berth.Target{Name: "printer", Owner: "order 42"}))
	fmt.Println(locks.Operator().Release(ctx, berth.Target{All: true}))

	_, err := locks.Operator().Release(ctx, berth.Target{Name: "stock"})
	fmt.Println(errors.Is(err, berth.ErrNotHeld)) // a name was given, and nobody holds it
	// Output:
	// 1 <nil>
	// 2 <nil>
	// true
}
