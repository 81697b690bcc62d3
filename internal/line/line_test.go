package line_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	name  = "door"
	lease = 6 * time.Second
)

// process is a process that has no primitive.
type process struct {
	*line.Face
	p      *line.Process
	t      *testing.T
	redis  rueidis.Client
	told   func() // called with each event, where it is set
	mu     sync.Mutex
	events []observe.Event // guarded by mu while a call goes on
}

// onServer runs a test with a node, on keys of the kind lock, in virtual time.
func onServer(t *testing.T, test func(t *testing.T, a *process)) {
	t.Helper()
	through(t, func(redis rueidis.Client) rueidis.Client { return redis }, test)
}

// through is onServer with what stands before the node's client.
func through(t *testing.T, before func(rueidis.Client) rueidis.Client, test func(t *testing.T, a *process)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, err := embedded.Start()
		require.NoError(t, err)
		defer server.Close()
		redis, err := server.Client()
		require.NoError(t, err)
		defer redis.Close()
		space, err := keyspace.New("ns")
		require.NoError(t, err)
		a := &process{t: t, redis: redis}
		client := before(redis)
		p := line.NewProcess(line.Config{
			Redis: client, Runner: scriptkit.NewRunner(client, scriptkit.Options{}), Space: space,
			Settings: settings.Common{Lease: lease, Label: "label", Linger: time.Minute, CallTimeout: time.Second}, Clock: clock.New(),
			Tell: func(ev observe.Event) {
				a.mu.Lock()
				defer a.mu.Unlock()
				if a.events = append(a.events, ev); a.told != nil {
					a.told()
				}
			},
		})
		p.Add(&line.Kind{
			Kind: keyspace.Sem, Scripts: testkit.ScriptsOf("semaphore"),
			AcquireArgs: func(*engine.Claim) (string, string, []string) { return "0", "stored", []string{state.Calm(1)} },
		})
		a.p, a.Face = p, p.Face(keyspace.Sem)
		defer func() { require.NoError(t, a.Engine.Close(t.Context())) }()
		test(t, a)
	})
}

// do sends a command.
func (a *process) do(words ...string) rueidis.RedisResult {
	a.t.Helper()
	r := a.redis.Do(context.Background(), a.redis.B().Arbitrary(words...).Build())
	require.NoError(a.t, r.Error())
	return r
}

// ask acquires for a node, and returns the status.
func (a *process) ask(id string) string { return a.claims(name, 1, id, "") }

// dump is all that the server has of the name.
func (a *process) dump() string {
	a.t.Helper()
	state, err := a.do("HGETALL", "ns:sem:{door}:state").AsStrMap()
	require.NoError(a.t, err)
	line, err := a.do("ZRANGE", "ns:sem:{door}:line", "0", "-1", "WITHSCORES").AsZScores()
	require.NoError(a.t, err)
	return fmt.Sprint(state, line)
}

func TestAForcedReleaseEndsOnlyTheClaimOfTheNodeThatIsMeant(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		ctx := context.Background()
		require.Equal(t, "granted", a.ask("b.1"))
		require.Equal(t, "queued", a.ask("c.1"))
		before := a.dump()
		require.ErrorIs(t, a.ForceRelease(ctx, name, "b.1", "x"), berth.ErrNotHeld)
		require.ErrorIs(t, a.ForceRelease(ctx, name, "c.1", "b"), berth.ErrNotHeld)
		require.Equal(t, before, a.dump(), "nothing is written")
		require.Empty(t, a.events)

		require.NoError(t, a.ForceRelease(ctx, name, "b.1", "b"))
		require.NoError(t, a.ForceRelease(ctx, name, "c.1", ""), "whoever has it")
		n, err := a.Decide.Name(ctx, keyspace.Sem, name)
		require.NoError(t, err)
		require.Equal(t, []int{1, 0, 0, 0}, []int{n.Capacity, n.Holders, n.Waiting, n.Expired})
		for i, id := range []string{"b.1", "c.1"} {
			require.Equal(t, observe.Event{
				Kind: observe.ForceReleased, Primitive: "sem", Context: ctx, Node: a.ID, Name: name, Claim: id, Count: 1, Detail: "released",
			}, a.events[i])
		}
	})
}

func TestASweepDropsMoreThanOneScriptMay(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		for i := range 250 {
			a.ask(fmt.Sprintf("dead.%d", i))
		}
		time.Sleep(lease)
		_, err := a.Node.Sweep(context.Background(), engine.Line{Kind: keyspace.Sem, Name: name})
		require.NoError(t, err)
		all, err := a.SweepAll(context.Background(), name)
		require.NoError(t, err)
		require.Equal(t, 150, all, "of which the sweep before dropped 100")
		dropped := 0
		for _, ev := range a.events {
			require.Equal(t, observe.Swept, ev.Kind)
			require.LessOrEqual(t, ev.Count, 100)
			dropped += ev.Count
		}
		require.Equal(t, 250, dropped)
	})
}

// Somebody has stored more waits than there are: a sweep that goes by them ends, and corrects them.
func TestASweepEndsWhereMoreWaitsAreCountedThanThereAre(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		for i := range 3 {
			a.ask(fmt.Sprintf("b.%d", i))
		}
		values := func() (text string) {
			text, err := a.do("HGET", "ns:sem:{door}:state", "v").ToString()
			require.NoError(t, err)
			return text
		}
		a.do("HSET", "ns:sem:{door}:state", "v", testkit.WithCount(t, values(), "waiting", 1_000_000_000_000))
		dropped, err := a.SweepAll(t.Context(), name)
		require.NoError(t, err)
		require.Zero(t, dropped)
		counts, err := testkit.Counts(values())
		require.NoError(t, err)
		require.EqualValues(t, 2, counts["waiting"])
	})
}

func TestBeatsOfManyNamesAreThoseOfEach(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		ctx := context.Background()
		require.Equal(t, "granted", a.ask(a.ID+".1"))
		require.Equal(t, "queued", a.ask(a.ID+".2"))
		claim := func(id string) *engine.Claim {
			return &engine.Claim{ID: id, Kind: keyspace.Sem, Record: engine.Record{Weight: 1, Wait: lease, Lease: lease}}
		}
		a.do("RPUSH", "ns:sem:{broken}:state", "a")
		batches := []engine.Batch{
			{Name: name, Claims: []*engine.Claim{claim(a.ID + ".2"), claim(a.ID + ".1")}},
			{Name: "broken", Claims: []*engine.Claim{claim("a.3")}},
			{Name: "other", Claims: []*engine.Claim{claim("a.4")}},
		}
		words := make([][]engine.Word, len(batches))
		a.Node.BeatMany(ctx, batches, func(i int, many engine.Round, err error) {
			one, failure := a.Beat(ctx, batches[i].Name, engine.ModeBeat, batches[i].Claims)
			require.Equal(t, one, many)
			require.Equal(t, failure != nil, err != nil)
			if err != nil {
				require.EqualError(t, err, failure.Error())
			}
			for _, s := range many.Status {
				words[i] = append(words[i], s.Word)
			}
		})
		require.Equal(t, [][]engine.Word{{engine.WordWaiting, engine.WordHeld}, nil, {engine.WordUnknown}}, words)
	})
}

func TestATokenThatCannotBeOfThisClientIsRefusedUnsent(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		good := berth.Token{Kind: "sem", Namespace: "ns", Name: name, Claim: "b.1", Node: "b"}
		_, err := a.Resume(context.Background(), good, nil)
		require.ErrorIs(t, err, berth.ErrNotHeld, "a good one is sent")
		for what, change := range map[string]func(*berth.Token){
			"another kind":      func(token *berth.Token) { token.Kind = "lock" },
			"another namespace": func(token *berth.Token) { token.Namespace = "berth" },
			"no name":           func(token *berth.Token) { token.Name = "" },
			"no claim":          func(token *berth.Token) { token.Claim = "" },
			"no node":           func(token *berth.Token) { token.Node = "" },
		} {
			token := good
			change(&token)
			_, err := a.Resume(context.Background(), token, nil)
			require.ErrorIs(t, err, berth.ErrInvalidConfig, what)
		}
	})
}

func TestEachClaimOfAThinNameHasItsOwnTail(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		ctx := context.Background()
		for i, change := range []func(*engine.Record){
			func(*engine.Record) {},
			func(*engine.Record) {},
			func(r *engine.Record) { r.Wait *= 2 },
			func(r *engine.Record) { r.Lease /= 2 },
			func(r *engine.Record) { r.MaxHold = lease },
			func(r *engine.Record) { r.NoRenew = true },
			func(r *engine.Record) { r.Priority = 1 },
			func(r *engine.Record) { r.Owner = "o" },
			func(r *engine.Record) { r.Label = "l" },
			func(r *engine.Record) { r.Meta = map[string]string{"k": "v"} },
			func(*engine.Record) {},
		} {
			c := &engine.Claim{ID: fmt.Sprintf("a.%d", i), Name: fmt.Sprintf("thin %d", i), Capacity: 1}
			c.Record = engine.Record{Weight: 1, Wait: lease, Lease: lease}
			change(&c.Record)
			answer, err := a.Acquire(ctx, c)
			require.NoError(t, err)
			require.True(t, answer.Granted)
			key := a.Node.Key(engine.Line{Kind: keyspace.Sem, Name: c.Name})
			text, err := a.do("GET", key).ToString()
			require.NoError(t, err)
			require.Equal(t, c.ID+" "+state.FixedTerms(&c.Record), strings.SplitN(text, " ", 3)[2])
			left, err := a.do("PTTL", key).AsInt64()
			require.NoError(t, err)
			require.Equal(t, (c.Record.Lease + time.Minute).Milliseconds(), left)
		}
	})
}

// What panics on the answer to a sweep is here the observer that hears what was swept.
func TestAPanicOnAnAnswerIsAnErrorOfACallThatMayHaveRun(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		a.ask("dead.1")
		a.ask("dead.2")
		time.Sleep(lease)
		a.told = func() {
			if a.events[len(a.events)-1].Kind == observe.Swept {
				panic(guard.Meant("no such index"))
			}
		}
		_, err := a.SweepAll(context.Background(), name)
		require.ErrorContains(t, err, "the reading of sweep panicked: no such index")
		require.True(t, scriptkit.MaybeRan(err))
		require.Equal(t, observe.Panicked, a.events[len(a.events)-1].Kind)
		_, err = a.SweepAll(context.Background(), name)
		require.NoError(t, err)
	})
}

// trialled is a client that notes which scripts it is sent, and fails the one that it is
// told to.
type trialled struct {
	rueidis.Client
	t     *testing.T
	sent  []string
	fails string
}

func (c *trialled) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := cmd.Commands()
	scripts := composed.Library().Scripts()
	at := slices.IndexFunc(scripts, func(s *scriptkit.Script) bool { return s.SHA == words[1] || s.Source() == words[1] })
	if at < 0 {
		return c.Client.Do(ctx, cmd)
	}
	script := scripts[at]
	if n := len(c.sent); n > 0 && c.sent[n-1] == script.Name { // EVAL, where the server has the script no more
		return c.Client.Do(ctx, cmd)
	}
	require.Contains(c.t, words[3], "{berth check ", "nobody's name")
	c.sent = append(c.sent, script.Name)
	if script.Name == c.fails {
		return c.Client.Do(ctx, c.B().Arbitrary("NONSENSE").Build())
	}
	return c.Client.Do(ctx, cmd)
}

func TestATrialMakesTheCallsOfTwoHoldsUpToTheFirstThatFails(t *testing.T) {
	all := []string{
		"thin_acquire", "thin_renew", "thin_release",
		"semaphore_acquire", "semaphore_renew", "semaphore_release",
	}
	client := &trialled{t: t}
	through(t, func(redis rueidis.Client) rueidis.Client {
		client.Client = redis
		return client
	}, func(t *testing.T, a *process) {
		ctx := context.Background()
		require.NoError(t, a.p.Trial(ctx))
		require.Equal(t, all, client.sent)
		for i, script := range all {
			time.Sleep(2 * time.Minute) // the name is forgotten, and so thin again
			client.sent, client.fails = nil, script
			require.ErrorIs(t, a.p.Trial(ctx), berth.ErrIncompatible)
			require.Equal(t, all[:i+1], client.sent)
		}
	})
}
