package semaphore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// dashboard prints the semaphores in use, the fullest first, and who holds them.
func dashboard(ctx context.Context, reader *inspect.Reader) error {
	var all []berth.Name
	for from, more := "", true; more; { // a page of a slow server may be empty, and others follow
		page, err := reader.Names(ctx, inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Sem}}, from, 0)
		if err != nil {
			return err
		}
		all = append(all, page.Items...)
		from, more = page.Next, page.Next != ""
	}
	slices.SortFunc(all, func(a, b berth.Name) int { return cmp.Compare(b.Share(), a.Share()) })
	for _, n := range all {
		fmt.Printf("%s: %d of %d held\n", n.Name, n.Held, n.Capacity)
		holders, err := reader.Holders(ctx, n.Kind, n.Name, "", 0)
		if err != nil {
			return err
		}
		for _, h := range holders.Items {
			fmt.Printf("  %s holds %d for job %s\n", h.Owner, h.Weight, h.Meta["job"])
		}
	}
	return nil
}

// Operators change the semaphores of a namespace, whoever holds them: that of the node has the calls of all kinds. An
// inspect.Reader shows them.
func ExampleOperator() {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	redis, err := server.Client()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	ctx := context.Background()
	n, err := node.New(redis, node.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	var permits []*semaphore.Permit
	for _, claim := range []struct {
		name, owner, job string
		weight           int
	}{{"cpu", "ann", "41", 1}, {"gpu", "bob", "42", 3}} {
		permit, err := semaphore.New(n, claim.name, 4, semaphore.Config{}).Acquire(berth.WithOwner(ctx, claim.owner), &semaphore.AcquireOptions{
			Weight: claim.weight, Meta: map[string]string{"job": claim.job},
		})
		if err != nil {
			panic(err)
		}
		permits = append(permits, permit)
	}

	reader, err := inspect.New(redis, inspect.Config{})
	if err != nil {
		panic(err)
	}
	fmt.Println(dashboard(ctx, reader))
	fmt.Println(semaphore.NewOperator(n).Resize(ctx, "cpu", 8, nil))   // nobody loses a permit
	fmt.Println(n.Operator().Release(ctx, berth.Target{Owner: "bob"})) // wherever bob holds or waits
	fmt.Println(dashboard(ctx, reader))

	// Bob's process hears of it, at the latest by its next call.
	fmt.Println(errors.Is(permits[1].Release(ctx), berth.ErrReleased))
	// Output:
	// gpu: 3 of 4 held
	//   bob holds 3 for job 42
	// cpu: 1 of 4 held
	//   ann holds 1 for job 41
	// <nil>
	// <nil>
	// 1 <nil>
	// cpu: 1 of 8 held
	//   ann holds 1 for job 41
	// <nil>
	// true
}
