package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// defaults count for each call of the program that says nothing else.
var defaults = qlock.LockOptions{
	Conflict: qlock.WorkThrough,
	Lease:    30 * time.Second,
	MaxHold:  10 * time.Minute,
	MaxWait:  5 * time.Second,
	Meta:     map[string]string{"release": "2026-11"},
}

// A field that a call leaves zero comes from the defaults. In a call
// berth.Forever takes a bound away, and NoDefaults ignores all defaults.
func ExampleConfig_defaults() {
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
	n, err := node.New(redis, node.Config{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	locks := qlock.New(n, qlock.Config{Defaults: defaults})

	for name, opts := range map[string]*qlock.LockOptions{
		"by the defaults": nil,
		"for the night":   {MaxHold: berth.Forever, Lease: time.Minute},
		"on its own":      {NoDefaults: true},
	} {
		if _, err := locks.Lock(ctx, name, opts); err != nil {
			panic(err)
		}
	}
	reader, err := inspect.New(redis, inspect.Config{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"by the defaults", "for the night", "on its own"} {
		page, err := reader.Holders(ctx, keyspace.Lock, name, "", 0)
		for _, holder := range page.Items {
			fmt.Println(name+":", holder.Lease, holder.MaxHold, holder.Meta, err)
		}
	}

	// Every call refuses defaults that no call could have, and so does Check of the node.
	_, err = qlock.New(n, qlock.Config{Defaults: qlock.LockOptions{MaxWait: -time.Second}}).TryLock(ctx, "door", nil)
	var refused *berth.ConfigError
	if errors.As(err, &refused) {
		fmt.Println(refused.Field, refused.Problem)
	}
	// Output:
	// by the defaults: 30s 10m0s map[release:2026-11] <nil>
	// for the night: 1m0s 0s map[release:2026-11] <nil>
	// on its own: 5s 0s map[] <nil>
	// Defaults.MaxWait -1s is negative
}
