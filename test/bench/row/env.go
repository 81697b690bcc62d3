package row

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/test/bench/contender"
)

// Env is what a measurement works with. One Env serves one row.
type Env struct {
	Scale
	// Addr of the server, "host:port".
	Addr string
	// Redis is for INFO, CONFIG and CLIENT LIST, and never the connection of a contender.
	Redis rueidis.Client

	kept   map[string]any
	closes []func()
}

// NewEnv returns the environment of one row, over a client that stays the caller's.
func NewEnv(redis rueidis.Client, addr string, scale Scale) *Env {
	return &Env{Scale: scale, Addr: addr, Redis: redis, kept: map[string]any{}}
}

// Close gives up what the row kept, the last first.
func (e *Env) Close() {
	for len(e.closes) > 0 {
		last := len(e.closes) - 1
		e.closes[last]()
		e.closes = e.closes[:last]
	}
}

// Kept returns what open returned when it was first asked for under this key. The func
// closes it when the row is over, and may be nil.
func Kept[T any](e *Env, key string, open func() (T, func(), error)) (T, error) {
	if v, ok := e.kept[key]; ok {
		return v.(T), nil
	}
	v, closeIt, err := open()
	if err != nil {
		var zero T
		return zero, err
	}
	e.kept[key] = v
	if closeIt != nil {
		e.closes = append(e.closes, closeIt)
	}
	return v, nil
}

// Locker returns the row's locker of a contender, which is opened once.
func (e *Env) Locker(column string) (contender.Locker, error) {
	return Kept(e, "locker "+column, func() (contender.Locker, func(), error) {
		c, err := contender.Find(column)
		if err != nil {
			return nil, nil, err
		}
		l, err := c.Open(e.Addr)
		if err != nil {
			return nil, nil, fmt.Errorf("open %s: %w", column, err)
		}
		return l, l.Close, nil
	})
}

var names atomic.Int64

// Name returns a name that no other measurement uses, in this process or another.
func (e *Env) Name(what string) string {
	return what + "-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(names.Add(1), 10)
}

// Start starts a child process of this program that runs a Job, and sends it its
// arguments as the first message. It is killed at the end of ctx, and ends by itself
// when this process ends.
func (e *Env) Start(ctx context.Context, job string, args any) (*Child, error) {
	c, err := startChild(ctx, job)
	if err != nil {
		return nil, fmt.Errorf("start a child for %s: %w", job, err)
	}
	if err := c.Send(args); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}
