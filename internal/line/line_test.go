package line_test

import (
	"context"
	"fmt"
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
		p := line.NewProcess(line.Config{
			Redis: redis, Runner: scriptkit.NewRunner(before(redis), scriptkit.Options{}), Space: space,
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
			AcquireArgs: func(*engine.Claim) (string, []string) { return "0", []string{"1", "stored"} },
		})
		a.p, a.Face = p, p.Face(keyspace.Sem)
		defer func() { require.NoError(t, a.Engine.Close(t.Context())) }()
		test(t, a)
	})
}

// ask acquires for a node, and returns the status.
func (a *process) ask(node, id string) string {
	a.t.Helper()
	r := engine.Record{Weight: 1, Wait: lease, Lease: lease, Phase: 'w', Node: node}
	reply, err := a.Run(context.Background(), composed.Library().Script("semaphore_acquire"), scriptkit.Once, name,
		node, id, "1", line.Lane(0), state.FixedTerms(&r), "1", "stored")
	require.NoError(a.t, err)
	return reply.Status()
}

// dump is all that the server has of the name.
func (a *process) dump() string {
	a.t.Helper()
	ctx := context.Background()
	state, err := a.redis.Do(ctx, a.redis.B().Hgetall().Key("ns:sem:{door}:state").Build()).AsStrMap()
	require.NoError(a.t, err)
	line, err := a.redis.Do(ctx, a.redis.B().Zrange().Key("ns:sem:{door}:line").Min("0").Max("-1").Withscores().Build()).AsZScores()
	require.NoError(a.t, err)
	return fmt.Sprint(state, line)
}

func TestAForcedReleaseEndsOnlyTheClaimOfTheNodeThatIsMeant(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		ctx := context.Background()
		require.Equal(t, "granted", a.ask("b", "b.1"))
		require.Equal(t, "queued", a.ask("c", "c.1"))
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
			a.ask("dead", fmt.Sprintf("dead.%d", i))
		}
		time.Sleep(lease)
		all, err := a.SweepAll(context.Background(), name)
		require.NoError(t, err)
		require.Equal(t, 250, all)
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
			a.ask("b", fmt.Sprintf("b.%d", i))
		}
		values := func() (text string) {
			text, err := a.redis.Do(t.Context(), a.redis.B().Hget().Key("ns:sem:{door}:state").Field("v").Build()).ToString()
			require.NoError(t, err)
			return text
		}
		forged := testkit.WithCount(t, values(), "waiting", 1_000_000_000_000)
		set := a.redis.B().Hset().Key("ns:sem:{door}:state").FieldValue().FieldValue("v", forged).Build()
		require.NoError(t, a.redis.Do(t.Context(), set).Error())
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
		require.Equal(t, "granted", a.ask(a.ID, "a.1"))
		require.Equal(t, "queued", a.ask(a.ID, "a.2"))
		claim := func(id string) *engine.Claim {
			return &engine.Claim{ID: id, Kind: keyspace.Sem, Record: engine.Record{Weight: 1, Wait: lease, Lease: lease}}
		}
		key := "ns:sem:{broken}:state"
		require.NoError(t, a.redis.Do(ctx, a.redis.B().Rpush().Key(key).Element("a").Build()).Error())
		batches := []engine.Batch{
			{Name: name, Claims: []*engine.Claim{claim("a.2"), claim("a.1")}},
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
			text, err := a.redis.Do(ctx, a.redis.B().Get().Key(key).Build()).ToString()
			require.NoError(t, err)
			require.Equal(t, c.ID+" "+state.FixedTerms(&c.Record), strings.SplitN(text, " ", 3)[2])
			left, err := a.redis.Do(ctx, a.redis.B().Pttl().Key(key).Build()).AsInt64()
			require.NoError(t, err)
			require.Equal(t, (c.Record.Lease + time.Minute).Milliseconds(), left)
		}
	})
}
