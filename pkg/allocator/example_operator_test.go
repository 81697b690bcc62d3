package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// survey prints all pools, and what each resource of a pool does.
func survey(ctx context.Context, reader *inspect.Reader, ops *allocator.Operator) error {
	var all []berth.Name
	for from, more := "", true; more; { // a page of a slow server may be empty, and others follow
		page, err := reader.Names(ctx, inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Pool}}, from, 0)
		if err != nil {
			return err
		}
		all = append(all, page.Items...)
		from, more = page.Next, page.Next != ""
	}
	for _, n := range all {
		fmt.Printf("%s: %d free, %d leased, %d resting\n", n.Name, n.Pool.Free, n.Held, n.Pool.Resting)
		for info, err := range ops.Resources(ctx, n.Name) { // in no order
			if err != nil {
				return err
			}
			fmt.Printf("%s is %s %q\n", info.Resource, info.State, info.Reason)
			for _, holder := range info.Holders {
				fmt.Println("by", holder.Label, "for job", holder.Meta["job"])
			}
		}
	}
	return nil
}

// An Operator tells what the resources of a pool do, whoever holds them, and changes the pool's settings. It needs no Pool, only
// the name. The node's operator ends what is held; an inspect.Reader shows the pools.
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
	n, err := node.New(redis, node.Config{Label: "host-1/crawler/4711"})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	proxies := allocator.New(n, "proxies", allocator.Config[string]{})
	if _, err := proxies.Add(ctx, []string{"a", "b", "c"}, nil); err != nil {
		panic(err)
	}
	proxy, err := proxies.Allocate(ctx, &allocator.AllocateOptions{Meta: map[string]string{"job": "42"}})
	if err != nil {
		panic(err)
	}
	if err := proxies.Rest(ctx, "b", time.Hour, "blocked", nil); err != nil {
		panic(err)
	}

	reader, err := inspect.New(redis, inspect.Config{})
	if err != nil {
		panic(err)
	}
	ops := allocator.NewOperator(n)
	fmt.Println(survey(ctx, reader, ops))
	found, err := ops.Inspect(ctx, "proxies") // does what is stored fit together?
	fmt.Println(len(found.Problems), "problems", err)
	ended, err := n.Operator().Release(ctx, berth.Target{Kind: keyspace.Pool, Name: "proxies", Node: proxy.Node()})
	fmt.Println(ended, "ended", err)

	// The holder's process hears of it, at the latest by its next call.
	fmt.Println(errors.Is(proxy.Release(ctx), berth.ErrReleased))
	// Unordered output:
	// proxies: 1 free, 1 leased, 1 resting
	// a is leased ""
	// by host-1/crawler/4711 for job 42
	// b is resting "blocked"
	// c is free ""
	// <nil>
	// 0 problems <nil>
	// 1 ended <nil>
	// true
}
