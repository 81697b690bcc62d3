// Package check looks at a server before anything rests on it: its version, its
// eviction policy, its latency, and whether this user may do what is needed.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/wake"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// pings is how many round trips the latency is the median of.
const pings = 5

// Options say what to check.
type Options struct {
	// Client is the connection.
	Client rueidis.Client
	// Channel is one that the scripts publish on and this node subscribes to.
	Channel string
	// Trial takes and gives back a claim of a name of its own.
	Trial func(ctx context.Context) error
	// Notices tells why clients do not hear all that operators say to all.
	Notices func(ctx context.Context) []error
	// AllowEviction makes a server that evicts a warning.
	AllowEviction bool
	// Timeout bounds the trial of the subscription, and six times it the whole.
	Timeout time.Duration
}

// Server looks at the server, at every node of a cluster. It returns an error
// that matches berth.ErrIncompatible for a server that is too old, a
// *berth.ConfigError for one that evicts, and the server's error where it cannot
// be reached or the user may not do what the scripts need.
//
// Rueidis repeats what only reads for as long as it may, so the whole is bounded:
// by six times Options.Timeout.
func Server(ctx context.Context, o Options) (berth.Report, error) {
	limited, cancel := scriptkit.Limit(ctx, 6*o.Timeout)
	defer cancel()
	report, err := look(limited, o)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = errors.Join(errSilent, err)
	}
	return report, err
}

// errSilent says that the check was given up.
var errSilent = errors.New("berth: the server does not answer")

// errReplica says that calls were answered by a replica for as long as they were repeated.
var errReplica = errors.New("berth: the address leads to a replica, and has to lead to the master")

func look(ctx context.Context, o Options) (berth.Report, error) {
	var report berth.Report
	var err error
	if report.Latency, err = latency(ctx, o.Client); err != nil {
		return report, err
	}
	nodes := o.Client.Nodes()
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		if err := node(ctx, addr, nodes[addr], o.AllowEviction, &report); err != nil {
			return report, err
		}
	}
	if err := o.Trial(ctx); err != nil {
		if scriptkit.ByReplica(err) {
			err = fmt.Errorf("%w: %w", errReplica, err)
		}
		return report, err
	}
	for _, problem := range o.Notices(ctx) {
		warn(&report, "%v", problem)
	}
	if err := subscription(ctx, o, &report); err != nil {
		return report, err
	}
	return report, nil
}

func warn(report *berth.Report, format string, args ...any) {
	report.Warnings = append(report.Warnings, fmt.Sprintf(format, args...))
}

func latency(ctx context.Context, client rueidis.Client) (time.Duration, error) {
	trips := make([]time.Duration, pings)
	for i := range trips {
		start := time.Now()
		if err := client.Do(ctx, client.B().Ping().Build()).Error(); err != nil {
			return 0, scriptkit.Failure(ctx, "PING", err)
		}
		trips[i] = time.Since(start)
	}
	slices.Sort(trips)
	return trips[pings/2], nil
}

// node looks at one server.
func node(ctx context.Context, addr string, client rueidis.Client, allowEviction bool, report *berth.Report) error {
	server, err := info(ctx, client, "server")
	switch {
	case refused(err):
		warn(report, "%s: the version could not be asked: %v", addr, err)
	case err != nil:
		return scriptkit.Failure(ctx, "INFO", err)
	default:
		if err := version(addr, server, report); err != nil {
			return err
		}
	}
	memory, err := info(ctx, client, "memory")
	switch {
	case refused(err):
		warn(report, "%s: the eviction policy could not be asked: %v", addr, err)
		return nil
	case err != nil:
		return scriptkit.Failure(ctx, "INFO", err)
	}
	return eviction(addr, memory, allowEviction, report)
}

// refused reports whether the server answered with an error.
func refused(err error) bool {
	_, answered := rueidis.IsRedisErr(err)
	return answered
}

func info(ctx context.Context, client rueidis.Client, section string) (map[string]string, error) {
	text, err := client.Do(ctx, client.B().Info().Section(section).Build()).ToString()
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	return fields, nil
}

// version refuses Redis before 7.0 and Valkey before 7.2.
func version(addr string, fields map[string]string, report *berth.Report) error {
	server, found, least := "redis", fields["redis_version"], "7.0"
	if fields["server_name"] == "valkey" {
		server, found, least = "valkey", fields["valkey_version"], "7.2"
	}
	if found == "" {
		warn(report, "%s: the server does not say its version", addr)
		return nil
	}
	if older(found, least) {
		return fmt.Errorf("%w: %s at %s is %s, needs %s", berth.ErrIncompatible, server, addr, found, least)
	}
	if report.Version == "" || older(found, report.Version) {
		report.Server, report.Version = server, found
	}
	report.Mode = cmp.Or(fields["redis_mode"], fields["server_mode"], report.Mode)
	return nil
}

// older compares dotted numbers; what is no number counts as 0.
func older(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		if x, y := part(as, i), part(bs, i); x != y {
			return x < y
		}
	}
	return false
}

func part(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, err := strconv.Atoi(parts[i])
	if err != nil {
		return 0
	}
	return n
}

// eviction refuses a server that may drop keys when it is full: with a hold's
// record the hold would be gone.
func eviction(addr string, fields map[string]string, allowed bool, report *berth.Report) error {
	policy := fields["maxmemory_policy"]
	report.Eviction = policy
	switch {
	case policy == "":
		warn(report, "%s: the server does not say its eviction policy", addr)
	case policy == "noeviction":
	case allowed || fields["maxmemory"] == "0":
		warn(report, "%s: maxmemory-policy is %s: a full server drops keys, and holds with them", addr, policy)
	default:
		return berth.Invalid("maxmemory-policy", "the server at %s has %s and may drop holds when it is full; set noeviction", addr, policy)
	}
	return nil
}

// subscription tries what wake-ups need. Without SUBSCRIBE and PUBLISH a hand-off is
// heard of with the next heartbeat only.
func subscription(ctx context.Context, o Options, report *berth.Report) error {
	trial, cancel := scriptkit.Limit(ctx, o.Timeout)
	defer cancel()
	err := wake.Try(trial, o.Client, o.Channel)
	switch {
	case wake.Forbidden(err):
		warn(report, "SUBSCRIBE is refused, so waiters of this user hear of their grants with their next heartbeat only: %v", err)
	case err != nil:
		return scriptkit.Failure(trial, "subscribing to wake-ups", err)
	}
	err = o.Client.Do(ctx, o.Client.B().Publish().Channel(o.Channel).Message("").Build()).Error()
	if refused(err) {
		warn(report, "PUBLISH is refused, so a waiter hears of its grant with its next heartbeat only: %v", err)
		return nil
	}
	return scriptkit.Failure(ctx, "PUBLISH", err)
}
