package keyspace_test

import (
	"fmt"

	"github.com/berth-go/berth/pkg/keyspace"
)

// shop is the namespace of a program.
var shop, _ = keyspace.New("shop")

// A Space makes the keys of a namespace and reads names off them. A listing runs
// SCAN with the pattern.
func ExampleSpace() {
	fmt.Println(shop.State(keyspace.Sem, "gpu"))
	fmt.Println(shop.Wake("5f0c9e6a1b7d2e48"))
	fmt.Println(shop.Match(keyspace.Sem))
	name, ok := shop.NameOf(keyspace.Sem, "shop:sem:{gpu}:state")
	fmt.Println(name, ok)
	// Output:
	// shop:sem:{gpu}:state
	// shop:wake:5f0c9e6a1b7d2e48
	// shop:sem:{*}:state
	// gpu true
}
