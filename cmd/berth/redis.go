package main

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/semaphore"
)

const (
	defaultURL = "redis://127.0.0.1:6379"
	// closing bounds how long a command cleans up behind itself.
	closing = 5 * time.Second
)

// connection is a server, and the semaphores of the namespace on it.
type connection struct {
	address string
	redis   rueidis.Client
	sems    *semaphore.Client
}

// connect reaches the server within ctx. The caller closes the connection. What
// is wrong with the URL or the namespace is an error of usage; all others have
// the exit code for a server that cannot be reached.
func (a *app) connect(ctx context.Context, cfg semaphore.Config) (*connection, error) {
	if err := keyspace.CheckNamespace(a.namespace); err != nil {
		return nil, inFlags(err, "Namespace", "--namespace")
	}
	option, err := a.option()
	if err != nil {
		return nil, err
	}
	address := strings.Join(option.InitAddress, ", ")
	redis, err := dial(ctx, option)
	if err != nil {
		return nil, unreachable(address, err)
	}
	cfg.Namespace = a.namespace
	sems, err := semaphore.New(redis, cfg)
	if err != nil {
		redis.Close()
		return nil, err
	}
	return &connection{address: address, redis: redis, sems: sems}, nil
}

// close gives back what is held, and ends the connection.
func (c *connection) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = c.sems.Close(ctx) // whoever holds something has released it and looked
	c.redis.Close()
}

// option reads the URL. No part of a URL that cannot be read is repeated: any
// may be the password.
func (a *app) option() (rueidis.ClientOption, error) {
	url, source := a.url, "--redis"
	if url == "" {
		url, source = os.Getenv("BERTH_REDIS"), "BERTH_REDIS"
	}
	if url == "" {
		url = defaultURL
	}
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return option, usage("%s is not a URL such as redis://host:6379/0; see 'berth --help' for the forms", source)
	}
	// One connection is enough for one command, and caching needs RESP3.
	option.DisableCache, option.PipelineMultiplex = true, -1
	return option, nil
}

// dial is rueidis.NewClient, which knows no ctx: where ctx ends first, it is
// left behind for the end of the program.
func dial(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, error) {
	type result struct {
		client rueidis.Client
		err    error
	}
	dialed := make(chan result, 1)
	go func() {
		client, err := rueidis.NewClient(option)
		dialed <- result{client, err}
	}()
	select {
	case r := <-dialed:
		return r.client, r.err
	case <-ctx.Done():
		go func() {
			if r := <-dialed; r.err == nil {
				r.client.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// unreachable is the error for a server that does not answer, or that refuses.
func unreachable(address string, err error) error {
	what := "cannot reach the server at "
	var answer *rueidis.RedisError
	var dial *net.OpError
	switch {
	case errors.As(err, &answer):
		what = "refused by the server at "
	case errors.As(err, &dial):
		err = dial.Err // the address need not be said twice
	}
	return &exitError{code: exitUnavailable, err: &serverError{what + address, err}}
}

// serverError says which server it is about.
type serverError struct {
	text  string
	cause error
}

func (e *serverError) Error() string { return e.text + ": " + e.cause.Error() }
func (e *serverError) Unwrap() error { return e.cause }
