package fence

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// The statuses of the scripts; a test compares them with the headers.
const (
	statusAdmitted     = "admitted"
	statusForgotten    = "forgotten"
	statusStale        = "stale"
	statusIncompatible = "incompatible"
)

// RedisConfig configures a Redis. The zero value is valid.
type RedisConfig struct {
	// Namespace is the first part of every key: a UTF-8 text of up to 512 bytes that
	// keyspace.CheckNamespace allows. Default "berth".
	Namespace string
	// CallTimeout limits one attempt of a call to the server. Default 3 s.
	CallTimeout time.Duration
	// Retry says how a call is repeated that the server did not answer or did not run. Defaults:
	// see berth.Retry.
	Retry berth.Retry
	// KeepConnections leaves the connections of the rueidis client alone if they lead to a
	// replica; see node.Config. Default false.
	KeepConnections bool
}

// Redis is a guard that keeps its fences in Redis, for a resource that several processes write
// and that cannot check fences itself. Redis is safe for concurrent use.
//
// The guard keeps one hash with one field for each name, <namespace>:fence:{<name>}:state. The
// hash never expires, because a guard without its fences admits everything; Forget drops the
// hash. All calls are exact for every positive int64, on Redis, Valkey and the embedded server.
//
// Redis has no Do: a write after an Admit is a second step, and no call to Redis can join the
// two. The package comment says which writes that lets through.
type Redis struct {
	space keyspace.Space
	run   *scriptkit.Runner
}

// NewRedis returns a guard on a rueidis client, which the caller closes. NewRedis does no I/O.
// Its errors are *berth.ConfigError.
func NewRedis(redis rueidis.Client, cfg RedisConfig) (*Redis, error) {
	if redis == nil {
		return nil, berth.Invalid("redis", "a client is needed")
	}
	if cfg.Namespace == "" {
		cfg.Namespace = keyspace.DefaultNamespace
	}
	space, err := keyspace.New(cfg.Namespace)
	if err != nil {
		return nil, err
	}
	options := scriptkit.Options{Retry: cfg.Retry, CallTimeout: cfg.CallTimeout, KeepConnections: cfg.KeepConnections}
	if err := options.Validate(); err != nil {
		return nil, err
	}
	return &Redis{space: space, run: scriptkit.NewRunner(redis, options)}, nil
}

// Admit returns nil if no greater fence was admitted for the name before, and refuses smaller
// fences from then on, in any process. A call without an answer may be repeated safely.
//
// Otherwise Admit returns a *StaleError, which matches ErrStale; a *berth.ConfigError for a
// name that keyspace.CheckName refuses; berth.ErrIncompatible for a key with data that this
// release did not write; or an error of scriptkit.Runner: the server's, the network's, or
// ctx's. After any error, do not write.
func (g *Redis) Admit(ctx context.Context, name string, fence int64) error {
	return g.call(ctx, composed.FenceAdmit, statusAdmitted, name, fence)
}

// Forget drops the name's key, unless a greater fence than the given one was admitted.
// Afterwards every fence is admitted again. Call Forget when the resource is gone for good, or
// when no older hold can still write.
//
// Forget returns the errors of Admit.
func (g *Redis) Forget(ctx context.Context, name string, fence int64) error {
	return g.call(ctx, composed.FenceForget, statusForgotten, name, fence)
}

// Key returns the key of a name, for your own script that begins with [Lua] and shares this
// guard. In Cluster the script's other keys must have the hash tag {<name>}. Key returns a
// *berth.ConfigError for a name that keyspace.CheckName refuses.
func (g *Redis) Key(name string) (string, error) {
	if err := keyspace.CheckName(name); err != nil {
		return "", err
	}
	return g.space.State(keyspace.Fence, name), nil
}

// call runs a script that takes one key and one fence.
func (g *Redis) call(ctx context.Context, s *scriptkit.Script, done, name string, fence int64) error {
	if err := check(name, fence); err != nil {
		return err
	}
	keys := []string{g.space.State(keyspace.Fence, name)}
	r, err := g.run.Run(ctx, s, scriptkit.Bounded, keys, []string{strconv.FormatInt(fence, 10)})
	if err != nil {
		return err
	}
	switch r.Status() {
	case done:
		return nil
	case statusStale:
		stale := &StaleError{Name: name, Fence: fence, Greatest: r.Int(1)}
		if err := r.Err(); err != nil {
			return err
		}
		return stale
	case statusIncompatible:
		return fmt.Errorf("%w: the guard of %q keeps something that is no fence of this release", berth.ErrIncompatible, name)
	}
	return fmt.Errorf("berth: unexpected status %q for %q", r.Status(), name)
}
