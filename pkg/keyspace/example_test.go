package keyspace_test

import (
	"fmt"

	"github.com/berth-go/berth/pkg/keyspace"
)

func ExampleSpace() {
	space, err := keyspace.New("shop")
	if err != nil {
		panic(err)
	}
	fmt.Println(space.State(keyspace.Sem, "gpu"))
	fmt.Println(space.Wake("5f0c9e6a1b7d2e48"))

	// A listing runs SCAN with the pattern and reads the names off the keys.
	fmt.Println(space.Match(keyspace.Sem))
	name, ok := space.NameOf(keyspace.Sem, "shop:sem:{gpu}:state")
	fmt.Println(name, ok)
	// Output:
	// shop:sem:{gpu}:state
	// shop:wake:5f0c9e6a1b7d2e48
	// shop:sem:{*}:state
	// gpu true
}

func ExampleCheckName() {
	fmt.Println(keyspace.CheckName("invoice:42"))
	fmt.Println(keyspace.CheckName("{invoice}"))
	// Output:
	// <nil>
	// berth: invalid name: must have none of {}, has '{' at byte 0
}
