package keyspace_test

import (
	"fmt"

	"github.com/berth-go/berth/pkg/keyspace"
)

// lockOf returns the name of a tenant's lock, if a name may have the tenant's text.
func lockOf(tenant string) (string, error) {
	name := "tenant:" + tenant
	return name, keyspace.CheckName(name)
}

// CheckName refuses a text that cannot be a name.
func ExampleCheckName() {
	fmt.Println(lockOf("42"))
	fmt.Println(lockOf("{42}"))
	// Output:
	// tenant:42 <nil>
	// tenant:{42} berth: invalid name: must have none of {}, has '{' at byte 7
}
