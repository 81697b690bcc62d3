package allocator

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/zap"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
)

// Config is what all pools of a client share.
type Config struct {
	// Namespace is the first part of every key, see package keyspace. Default
	// "berth".
	Namespace string
	// Label is a free text of up to 512 bytes that listings show beside this
	// client's claims. Default "<host>/<program>/<process id>".
	Label string
	// Lease is the lease of waiting claims, and of holds whose call names none;
	// at least 20 ms, whole milliseconds. Default 10 s.
	Lease time.Duration
	// Linger is how long an idle name is remembered. Default 60 s.
	Linger time.Duration
	// CallTimeout is how long one attempt of a call may go unanswered, also
	// where ctx has ended meanwhile. Default 3 s.
	CallTimeout time.Duration
	// CleanupTimeout bounds what goes on after a ctx has ended: removing a
	// cancelled claim, Release, Close. Default 2 s.
	CleanupTimeout time.Duration
	// Retry bounds how calls are repeated. Default as its fields say.
	Retry berth.Retry
	// WarnHeldLongerThan is how long a hold may last before it is reported as
	// perhaps forgotten; negative for never. Default 5 min.
	WarnHeldLongerThan time.Duration
	// AllowEviction makes Check warn, and not fail, where the server may evict
	// keys. Default false.
	AllowEviction bool
	// Logger is told what goes wrong. Default nil, none.
	Logger *zap.Logger
	// Observer is told everything that happens. Default nil, none.
	Observer observe.Observer
}

// Client is a node that uses pools. Its methods may be called by many
// goroutines at once.
type Client struct{}

// New returns a client over redis, which stays the caller's to close. It does
// no I/O. It returns a *berth.ConfigError for a value that is refused.
func New(redis rueidis.Client, cfg Config) (*Client, error) { return nil, errSketch }

// Node is the id of this client.
func (c *Client) Node() string { return "" }

// Check looks at the server. It returns an error that matches ErrIncompatible
// if the server is too old, and one if it may evict keys.
func (c *Client) Check(ctx context.Context) (berth.Report, error) {
	return berth.Report{}, errSketch
}

// Close ends waits with ErrClosed, releases what is held and not detached,
// closes the values of all pools and stops the engine. It works after ctx has
// ended, for at most CleanupTimeout more; what it could not release ends with
// its lease. Later calls return nil.
func (c *Client) Close(ctx context.Context) error { return errSketch }

// ReleaseByID releases a hold of anybody's, by the id of its claim; its handle
// ends with ErrReleased, and the resource is free or rests. It returns
// ErrNotHeld if there is none.
func (c *Client) ReleaseByID(ctx context.Context, name, id string) error { return errSketch }
