package rolling

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/lag"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/test/harness"
)

// patience bounds every wait for something that must happen, far above what
// anything takes.
const patience = 5 * testkit.Patience

// site is a name on a server, and the scripts of a release that run on it. A call
// is put together from the header of its script: what the release takes is filled
// in by what it is called there.
type site struct {
	testing.TB
	release release
	redis   rueidis.Client
	run     *scriptkit.Runner
	space   keyspace.Space
	kind    keyspace.Kind
	name    string
}

// newSite is a name of its own on the server that tests share.
func newSite(t testing.TB, r release, redis rueidis.Client, kind keyspace.Kind) *site {
	t.Helper()
	lag.Relies(t, testkit.Safe/3)
	space, err := keyspace.New(harness.Namespace(t))
	require.NoError(t, err)
	return &site{t, r, redis, scriptkit.NewRunner(redis, scriptkit.Options{CallTimeout: testkit.Patience}), space, kind, "rolled"}
}

// parts are the keys of a name by what headers call them.
var parts = map[string]string{
	"state": keyspace.StatePart, "line": keyspace.LinePart, "probes": keyspace.ProbesPart,
	"items": keyspace.ItemsPart, "free": keyspace.FreePart, "bindings": keyspace.BindingsPart, "guard": keyspace.StatePart, "runs": keyspace.StatePart,
}

// usual is what a call is given where a test says nothing else, by the header's word
// for it. A release that takes something new needs a line here.
var usual = map[string]string{
	"claim id": "b.9", "node": "b", "lane, see line/place": "254", "how": "", "capacity": "3",
	"capacity, if none is stored": "3", "capacity, if none is stored: 1": "1",
	"linger": "60000", "lease + linger": "120000", "tombstone": "60000", "policy": "stored",
	"wait (1) or try (0)": "1", "wait": "1", "the only resource that will do, with try": "",
	"where the last one stands that was seen": "", "its claim": "", "cursor": "0", "how many": "10", "about how many": "10", "way": "n", "resource to begin at": "", "resource before that one": "",
	"by how much": "5000", "id of this call": "call", "fence": "0", "fence that it has": "0",
	"ticket that it has": "0", "node that detached it": "a", "node that takes it up": "c",
	"keep it when idle": "0", "set it of a name that has none, too": "0",
	"how long they stay": "0", "how many may hold one at once": "0", "the Replace that this is part of": "0",
	"1 = the last part of an Add, else 0": "1",
	"name of the binding":                 "bound", "resource": "r1", "for how long": "60000", "why": "because",
	"part": "items", "so many resources are read in one step": "100",
	"id of the turn, <node>.<xid>": "b.1", "how long until the next one": "1000", "still at it (1) or ask for it (0)": "0",
	"rest of the resource": "0", "\"1\" = also where it rests longer": "", "rest of that": "0", "why it rests": "", "step: begin or prune": "begin",
	"the revision that the caller has seen, or for prune that of its Replace": "17592186044415",
	"the revision that the caller has seen":                                   "17592186044415", "id of the call": "b.3",
	"id of the call that begins it, or for prune the cursor": "b.2",
	"run, which rises with each start of the node":           "1", "run that ends": "1", "label": "label", "the node's own zombie limit": "60000", "memory": "60000",
	"fence of the grant that it was asked for": "0", "1 = only if it waits": "",
	"the notice of that pause; of the end of the name's own that which the caller knows": "0",
	"how much of the line to look at": "100", "so many expired holds are weighed": "1000", "so many expired entries of a kind are looked into": "1000",
	"when the resource leaves the pool": "0", "when that leaves the pool": "0", "after how long": "60000",
	"what the process says of the settings, see pool/settings": "", "it stays in the pool (1) or leaves it (0)": "0",
	"words of pool/settings: policy to hold of a pool, cooldown to bindfor of a resource": "5000 . .", "the same for people": "cooldown 5s",
	"fence of the hold": "7", "start of the period": "0", "length of a period": "31622400000000", "so many runs of a period begin at most": "9", "its label": "label",
	"attempt": "1", "when the run began, as once_begin said": "1", "done, failed or stopped": "done", "why it failed": "", "how long nobody begins again": "0",
	"the revision that pool_set has told": "17592186044415", "mode": "beat", "claim id of another entry that was lowered for this": "",
}

// with are values in place of the usual ones, and groups behind them.
type with struct {
	of     map[string]string
	groups [][]string
}

// call runs a script, and returns its answer and the words that were sent.
func (s *site) call(script string, w with) scriptkit.Reply {
	s.Helper()
	sc := find(s.release.library, script)
	require.NotNil(s, sc, "%s has no %s", s.release.version, script)
	var keys, args []string
	for _, key := range sc.Keys {
		part, known := parts[key.Name]
		require.True(s, known, "%s of %s takes a key %q, which this test does not know", script, s.release.version, key.Name)
		keys = append(keys, s.space.Key(s.kind, s.name, part))
	}
	for _, arg := range sc.Args {
		value, known := w.of[arg]
		switch {
		case known:
		case arg == "channel prefix":
			value, known = s.space.Wake(""), true
		case arg == "name":
			value, known = s.name, true
		case strings.HasPrefix(arg, "fixed terms of the record"):
			value, known = terms(s.kind, time.Minute), true
		default:
			value, known = usual[arg]
		}
		require.True(s, known, "%s of %s takes %q: give it a usual value here", script, s.release.version, arg)
		args = append(args, value)
	}
	for _, group := range w.groups {
		require.Len(s, group, len(sc.Group), "the group of %s", script)
		args = append(args, group...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	reply, err := s.run.Run(ctx, sc, scriptkit.Once, keys, args)
	require.NoError(s, err, script)
	return reply
}

// terms are the fixed terms of a record, as the nodes write it.
func terms(kind keyspace.Kind, wait time.Duration) string {
	rec := engine.Record{Weight: 1, Wait: wait, Lease: time.Minute, Owner: "o", Label: "label"}
	if kind != keyspace.Pool {
		return state.FixedTerms(&rec)
	}
	const wants = "o 0 0 0 0:"
	return state.FixedTerms(&rec) + fmt.Sprintf("%d:%s", len(wants), wants)
}

// do runs a command.
func (s *site) do(words ...string) rueidis.RedisResult {
	s.Helper()
	r := s.redis.Do(context.Background(), s.redis.B().Arbitrary(words...).Build())
	if err := r.Error(); !rueidis.IsRedisNil(err) {
		require.NoError(s, err, words)
	}
	return r
}

// number runs a command that answers a number.
func (s *site) number(words ...string) int64 {
	s.Helper()
	n, err := s.do(words...).AsInt64()
	require.NoError(s, err, words)
	return n
}

// everything is all bytes of all keys of the namespace, with the instants at which
// they expire.
func (s *site) everything() map[string]string {
	s.Helper()
	all, cursor := map[string]string{}, uint64(0)
	for {
		page, err := s.do("SCAN", strconv.FormatUint(cursor, 10), "MATCH", s.space.Namespace()+":*", "COUNT", "1000").AsScanEntry()
		require.NoError(s, err)
		for _, key := range page.Elements {
			dump, err := s.do("DUMP", key).ToString()
			require.NoError(s, err)
			all[key] = fmt.Sprintf("%d %q", s.number("PEXPIRETIME", key), dump)
		}
		if cursor = page.Cursor; cursor == 0 {
			return all
		}
	}
}

// formatOf is the format number that a release writes.
func formatOf(t testing.TB, r release) int64 {
	t.Helper()
	s := newSite(t, r, harness.Shared(t).Client(t), keyspace.Sem)
	s.call("semaphore_acquire", with{}) // its capacity is not that of a thin name
	values, err := s.do("HGET", s.space.State(s.kind, s.name), "v").ToString()
	require.NoError(t, err)
	number, _, _ := strings.Cut(values, " ")
	n, err := strconv.ParseInt(number, 10, 64)
	require.NoError(t, err)
	return n
}
