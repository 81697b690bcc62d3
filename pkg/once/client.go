package once

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Client is a node that runs names once in each period, on one Redis. It is safe for concurrent use.
type Client struct {
	locks   *qlock.Client
	space   keyspace.Space
	run     *scriptkit.Runner
	tell    line.Teller
	clock   clock.Clock
	label   string
	cleanup time.Duration

	life  context.Context // ends with Close
	close context.CancelCauseFunc

	mu   sync.Mutex
	runs int           // guarded by mu: those that have begun and not ended
	idle chan struct{} // closed when the client is closed and there are none
	// told is of each name whose settings differ until when that has been told, by the client's clock.
	told map[string]time.Duration // guarded by mu
}

// New returns a client on a rueidis client, with a lock client of its own that has this
// configuration: namespace, label, lease, retries, logger, observer and the like. Of Config.Defaults
// count Priority, Lease, NoRenew, MaxHold, WantAfter, Meta, Attrs and DetailedErrors.
//
// The rueidis client stays the caller's: close it after the returned client. New does no I/O. Its
// errors are *berth.ConfigError: those of qlock.New, and for Defaults.Lease if it is berth.Forever,
// because a process that died would hold its name for good.
func New(redis rueidis.Client, cfg qlock.Config) (*Client, error) {
	if cfg.Defaults.Lease == berth.Forever {
		return nil, berth.Invalid("Defaults.Lease", "it must end")
	}
	common := settings.Common{
		Namespace: cfg.Namespace, Label: cfg.Label, CleanupTimeout: cfg.CleanupTimeout,
		CallTimeout: cfg.CallTimeout, Retry: cfg.Retry, KeepConnections: cfg.KeepConnections,
	}.WithDefaults()
	cfg.Namespace, cfg.Label = common.Namespace, common.Label
	locks, err := qlock.New(redis, cfg)
	if err != nil {
		return nil, err
	}
	space, err := keyspace.New(cfg.Namespace)
	if err != nil {
		return nil, err
	}
	c := &Client{
		locks: locks, space: space, clock: clock.New(), label: cfg.Label, cleanup: common.CleanupTimeout,
		idle: make(chan struct{}), told: map[string]time.Duration{},
	}
	tell, _ := line.NewTeller(cfg.Namespace, locks.Node, cfg.Logger, cfg.Observer) // no claim has events of Once
	c.tell = tell.Of(keyspace.Once)
	c.life, c.close = context.WithCancelCause(context.Background())
	c.run = line.NewRunner(redis, common, c.tell)
	return c, nil
}

// Node is the id of this client's node, as qlock.Client has it.
func (c *Client) Node() string { return c.locks.Node() }

// Check looks at the server, as qlock.Client.Check does: a server that evicts keys may forget that a
// period is done.
func (c *Client) Check(ctx context.Context) (berth.Report, error) { return c.locks.Check(ctx) }

// Fence returns the fence of the run of name that ctx was made under, as qlock.Client.Fence does; 0
// for none.
func (c *Client) Fence(ctx context.Context, name string) int64 { return c.locks.Fence(ctx, name) }

// Close ends the context of every f with berth.ErrClosed, waits until all runs have ended, those of
// Begin too, and then closes the lock client, which ends all waits with berth.ErrClosed. If ctx ends
// first, Close no longer waits for runs, and releases their locks: a run that goes on after that may
// run twice. The rest is as of qlock.Client.Close, whose errors it returns.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	if !c.isClosed() {
		c.close(berth.ErrClosed)
		if c.runs == 0 {
			close(c.idle)
		}
	}
	c.mu.Unlock()
	select {
	case <-c.idle:
	case <-ctx.Done():
	}
	return c.locks.Close(ctx)
}

func (c *Client) isClosed() bool { return c.life.Err() != nil }

// enter counts a run that is about to begin, unless the client is closed.
func (c *Client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return false
	}
	c.runs++
	return true
}

// leave says that a run has ended, or did not begin.
func (c *Client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs--; c.runs == 0 && c.isClosed() {
		close(c.idle)
	}
}

// differs says whether it is to be told that the settings of a name differ. Until the moment it is told then.
func (c *Client) differs(name string, until time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.told, func(_ string, until time.Duration) bool { return until <= c.clock.Now() })
	if _, told := c.told[name]; told {
		return false
	}
	c.told[name] = until
	return true
}

// Last says what is known of the runs of a name: of the one that began last, and of the newest that
// succeeded. The server remembers until the end of the period after the next. Last only reads, also
// for a user that may not write.
//
// Its errors are a *berth.ConfigError for a name that keyspace.CheckName refuses,
// berth.ErrIncompatible for what a newer release keeps, and those of scriptkit.Runner: the server's,
// the network's, and ctx's.
func (c *Client) Last(ctx context.Context, name string) (Last, error) {
	if err := keyspace.CheckName(name); err != nil {
		return Last{}, err
	}
	last, _, err := c.look(ctx, name)
	return last, err
}

// look reads what is known of a name, and the server's time (ms).
func (c *Client) look(ctx context.Context, name string) (last Last, now int64, err error) {
	read := scriptkit.Command{
		Verb: []string{"HMGET"}, Keys: []string{c.key(name)}, Args: state.RunsFields,
	}
	answers, err := c.run.Read(ctx, "once_look", scriptkit.From{Unasked: true}, read)
	if err != nil {
		return Last{}, 0, err
	}
	fields, err := answers.Results[0].ToArray()
	if err != nil {
		return Last{}, 0, scriptkit.Failure(ctx, "HMGET", err)
	}
	texts := make([]string, len(state.RunsFields)) // "" for what is not there
	for i := range fields {
		texts[i], _ = fields[i].ToString()
	}
	runs, err := state.ParseRuns(name, texts)
	return Last{infoOf(runs.Run), infoOf(runs.Success)}, answers.Now, err
}

// unreadable is what the scripts say in the place of a form of what no release has written.
const unreadable = "0"

// key is the Redis key of what is known of a name.
func (c *Client) key(name string) string { return c.space.State(keyspace.Once, name) }
