package line_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// beaten is a client that notes the scripts that it sends, each with how many names it is for, and may answer
// some with an error.
type beaten struct {
	rueidis.Client
	mode    rueidis.ClientMode
	refuses func(script string, names int) string // the error, "" for none

	mu   sync.Mutex
	sent []string // guarded by mu
}

func (c *beaten) Mode() rueidis.ClientMode { return c.mode }

func (c *beaten) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return c.Client.Do(ctx, c.note(cmd))
}

func (c *beaten) DoMulti(ctx context.Context, all ...rueidis.Completed) []rueidis.RedisResult {
	for i, cmd := range all {
		all[i] = c.note(cmd)
	}
	return c.Client.DoMulti(ctx, all...)
}

// note returns what is sent in the place of a command.
func (c *beaten) note(cmd rueidis.Completed) rueidis.Completed {
	words, scripts := cmd.Commands(), composed.Library().Scripts()
	at := slices.IndexFunc(scripts, func(s *scriptkit.Script) bool { return len(words) > 2 && s.SHA == words[1] })
	if at < 0 {
		return cmd
	}
	script := scripts[at]
	keys, _ := strconv.Atoi(words[2])
	names := keys / len(script.Keys)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = append(c.sent, fmt.Sprint(script.Name, " ", names))
	if c.refuses != nil {
		if text := c.refuses(script.Name, names); text != "" {
			return c.B().Eval().Script("return redis.error_reply('" + text + "')").Numkeys(0).Build()
		}
	}
	return cmd
}

// beating is a node whose claims hold names.
type beating struct {
	*process
	*beaten
	batches []engine.Batch
}

// onBeats runs a test with a node.
func onBeats(t *testing.T, test func(t *testing.T, b *beating)) {
	t.Helper()
	client := &beaten{mode: rueidis.ClientModeStandalone}
	through(t, func(redis rueidis.Client) rueidis.Client {
		client.Client = redis
		return client
	}, func(t *testing.T, a *process) {
		require.NoError(t, a.Node.Load(t.Context()))
		test(t, &beating{process: a, beaten: client})
	})
}

// thin has the node hold so many more thin names.
func (b *beating) thin(n int) {
	for range n {
		c := &engine.Claim{
			ID: fmt.Sprintf("%s.%d", b.ID, len(b.batches)), Kind: keyspace.Sem, Name: fmt.Sprint("thin ", len(b.batches)), Capacity: 1,
			Record: engine.Record{Weight: 1, Wait: lease, Lease: lease},
		}
		_, err := b.Acquire(b.t.Context(), c)
		require.NoError(b.t, err)
		require.True(b.t, c.Thin.Load())
		b.batches = append(b.batches, engine.Batch{Name: c.Name, Claims: []*engine.Claim{c}})
	}
}

// fat has the node hold so many more fat names, of which it takes that they are plain.
func (b *beating) fat(n int) {
	for range n {
		c := &engine.Claim{ID: fmt.Sprintf("%s.%d", b.ID, len(b.batches)), Kind: keyspace.Sem, Name: fmt.Sprint("fat ", len(b.batches))}
		require.Equal(b.t, "granted", b.claims(c.Name, 2, c.ID, ""))
		c.Plain.Store(true)
		b.batches = append(b.batches, engine.Batch{Name: c.Name, Claims: []*engine.Claim{c}})
	}
}

// beat beats for all after a second. It returns what is said of each, and which scripts were sent.
func (b *beating) beat() (said []string, sent []string) {
	b.t.Helper()
	time.Sleep(time.Second)
	b.sent, said = nil, make([]string, len(b.batches))
	var mu sync.Mutex
	b.Node.BeatMany(b.t.Context(), b.batches, func(i int, r engine.Round, err error) {
		mu.Lock()
		defer mu.Unlock()
		require.Empty(b.t, said[i], "each is answered once")
		if err != nil {
			said[i] = err.Error()
			return
		}
		require.Len(b.t, r.Status, len(b.batches[i].Claims))
		said[i] = fmt.Sprint(r.Status[0].Word, " ", r.Status[0].Left)
	})
	return said, b.sent
}

const held = "held 6s"

// all is a text so many times.
func all(text string, n int) []string { return slices.Repeat([]string{text}, n) }

func TestTheHeartbeatsOfSeveralNamesAreOneScript(t *testing.T) {
	onBeats(t, func(t *testing.T, b *beating) {
		b.thin(45)
		b.fat(41)
		for range 3 {
			said, sent := b.beat()
			require.Equal(t, all(held, 86), said)
			require.Equal(t, []string{"thin_renew 20", "thin_renew 20", "thin_renew 5", "fat_renew 20", "fat_renew 20", "semaphore_renew 1"}, sent)
		}
	})
}

// In a cluster the names have several slots, and where it is not known what the server is they may have.
func TestNoScriptIsForSeveralNamesWhereTheServerMayBeACluster(t *testing.T) {
	for _, mode := range []rueidis.ClientMode{rueidis.ClientModeCluster, "", "proxy"} {
		t.Run("mode "+string(mode), func(t *testing.T) {
			onBeats(t, func(t *testing.T, b *beating) {
				b.thin(3)
				b.fat(3)
				b.mode = mode
				said, sent := b.beat()
				require.Equal(t, all(held, 6), said)
				slices.Sort(sent)
				require.Equal(t, slices.Concat(all("semaphore_renew 1", 3), all("thin_renew 1", 3)), sent)
				b.mode = rueidis.ClientModeSentinel
				_, sent = b.beat()
				require.Equal(t, []string{"thin_renew 3", "fat_renew 3"}, sent)
			})
		})
	}
}

// Each name answers for itself, whatever the others hold.
func TestOneBadNameAmongTwentyIsItsOwn(t *testing.T) {
	key := func(name, part string) string { return fmt.Sprintf("ns:sem:{%s}:%s", name, part) }
	for what, c := range map[string]struct {
		fat  bool
		harm func(b *beating, name string)
		want string // of the name
		sent []string
	}{
		"a thin one is deleted":     {false, func(b *beating, name string) { b.do("DEL", key(name, "state")) }, "unknown 0s", []string{"semaphore_renew 1"}},
		"a thin one is somebody's":  {false, func(b *beating, name string) { b.do("DEL", key(name, "state")); b.do("SADD", key(name, "state"), "x") }, "holds a set", []string{"semaphore_renew 1"}},
		"a thin one is no text":     {false, func(b *beating, name string) { b.do("SET", key(name, "state"), "x") }, "holds a string", []string{"semaphore_renew 1"}},
		"its fence cannot be read":  {false, func(b *beating, name string) { b.do("SETRANGE", key(name, "state"), "0", "x") }, "not a whole number", []string{"thin_renew 1"}},
		"its moment cannot be read": {false, func(b *beating, name string) { b.do("SETRANGE", key(name, "state"), "17", "x") }, "holds a string", []string{"semaphore_renew 1"}},
		"a thin one is fat":         {false, func(b *beating, name string) { b.claims(name, 1, "b.1", "") }, held, []string{"semaphore_renew 1"}},
		"another has a thin one":    {false, func(b *beating, name string) { b.do("DEL", key(name, "state")); b.claims(name, 1, "b.1", "") }, "unknown 0s", []string{"semaphore_renew 1"}},
		"a fat one is deleted":      {true, func(b *beating, name string) { b.do("DEL", key(name, "state"), key(name, "line")) }, "unknown 0s", []string{"semaphore_renew 1"}},
		"a fat one is thin": {true, func(b *beating, name string) {
			b.do("DEL", key(name, "state"), key(name, "line"))
			b.claims(name, 1, "b.1", "")
		}, "unknown 0s", []string{"semaphore_renew 1"}},
		"its state is somebody's":     {true, func(b *beating, name string) { b.do("DEL", key(name, "state")); b.do("SADD", key(name, "state"), "x") }, "holds a set", []string{"semaphore_renew 1"}},
		"its line is somebody's":      {true, func(b *beating, name string) { b.do("DEL", key(name, "line")); b.do("SET", key(name, "line"), "x") }, "holds a string", []string{"semaphore_renew 1"}},
		"its values cannot be read":   {true, func(b *beating, name string) { b.do("HSET", key(name, "state"), "v", "x") }, "damaged", []string{"semaphore_renew 1"}},
		"its expiry cannot be read":   {true, func(b *beating, name string) { b.values(name, 20, "x") }, "script semaphore_renew on", []string{"semaphore_renew 1"}},
		"somebody waits for it":       {true, func(b *beating, name string) { b.claims(name, 2, "b.1", ""); b.claims(name, 2, "b.2", "") }, held, []string{"semaphore_renew 1"}},
		"another holds of it, too":    {true, func(b *beating, name string) { b.claims(name, 2, "b.1", "") }, held, nil},
		"a fat one has lost its line": {true, func(b *beating, name string) { b.do("DEL", key(name, "line")) }, "unknown 0s", []string{"semaphore_renew 1"}},
	} {
		t.Run(what, func(t *testing.T) {
			onBeats(t, func(t *testing.T, b *beating) {
				script := "thin_renew 20"
				if c.fat {
					script = "fat_renew 20"
					b.fat(20)
				} else {
					b.thin(20)
				}
				c.harm(b, b.batches[7].Name)
				said, sent := b.beat()
				require.Contains(t, said[7], c.want)
				require.Equal(t, all(held, 19), slices.Delete(said, 7, 8))
				require.Equal(t, append([]string{script}, c.sent...), sent)
			})
		})
	}
}

// values has one of the values of a name be another text, from a byte on.
func (b *beating) values(name string, at int, text string) {
	key := fmt.Sprintf("ns:sem:{%s}:state", name)
	v, err := b.do("HGET", key, "v").ToString()
	require.NoError(b.t, err)
	b.do("HSET", key, "v", v[:at-1]+text+v[at-1+len(text):])
}

// A name that was not plain goes alone until a call for it says that it is.
func TestANameThatIsNotPlainGoesAlone(t *testing.T) {
	onBeats(t, func(t *testing.T, b *beating) {
		b.fat(3)
		b.claims("fat 1", 2, "b.1", "")
		b.claims("fat 1", 2, "b.2", "")
		_, sent := b.beat()
		require.Equal(t, []string{"fat_renew 3", "semaphore_renew 1"}, sent)
		_, sent = b.beat()
		require.ElementsMatch(t, []string{"fat_renew 2", "semaphore_renew 1"}, sent)
		for range 6 { // then the others have died
			_, sent = b.beat()
		}
		require.Equal(t, []string{"fat_renew 3"}, sent)
	})
}

// What the server refuses for good is sent for each name alone, and for some time nothing else is tried.
func TestAScriptForSeveralNamesThatIsRefusedIsSentForEach(t *testing.T) {
	onBeats(t, func(t *testing.T, b *beating) {
		b.thin(3)
		b.fat(2)
		b.refuses = func(_ string, names int) string {
			if names > 1 {
				return "CROSSSLOT Keys in request dont hash to the same slot"
			}
			return ""
		}
		said, sent := b.beat()
		require.Equal(t, all(held, 5), said)
		require.Equal(t, []string{"thin_renew 3", "fat_renew 2"}, sent[:2])
		for _, want := range []int{5, 5} {
			require.Len(t, sent[len(sent)-5:], want)
			said, sent = b.beat()
			require.Equal(t, all(held, 5), said)
			require.Len(t, sent, 5)
		}
	})
}

// What it refuses for now, or does not answer, is each name's own error, and is not sent again: the heartbeat does that.
func TestAScriptForSeveralNamesThatFailsFailsForEach(t *testing.T) {
	for text, sentinel := range map[string]error{"LOADING soon": berth.ErrUnavailable, "READONLY a replica": berth.ErrUnavailable} {
		t.Run(text, func(t *testing.T) {
			onBeats(t, func(t *testing.T, b *beating) {
				b.thin(2)
				b.refuses = func(string, int) string { return text }
				var keys []string
				b.Node.BeatMany(t.Context(), b.batches, func(i int, _ engine.Round, err error) {
					require.ErrorIs(t, err, sentinel)
					require.True(t, scriptkit.Repeatable(err))
					keys = append(keys, strings.Split(err.Error(), `"`)[1])
				})
				require.ElementsMatch(t, []string{"ns:sem:{thin 0}:state", "ns:sem:{thin 1}:state"}, keys)
			})
		})
	}
}
