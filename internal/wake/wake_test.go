package wake_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/internal/wake"
	"github.com/berth-go/berth/pkg/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pack writes fields as scripts/wake/wake.lua does.
func pack(fields ...string) string {
	var b strings.Builder
	for _, field := range fields {
		fmt.Fprintf(&b, "%d:%s", len(field), field)
	}
	return b.String()
}

func TestAPayloadIsReadFieldByField(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]wake.Message{
		"7:granted3:gpu": {Word: "granted", Name: "gpu", Fields: []string{}},
		"7:granted3:gpu3:a.12:173:950": {
			Word: "granted", Name: "gpu", Fields: []string{"a.1", "17", "950"},
		},
		"0:0:":                       {Word: "", Name: "", Fields: []string{}},
		"4:next5:7:a:b2:50":          {Word: "next", Name: "7:a:b", Fields: []string{"50"}},
		pack("next", "\x00\xff\n"):   {Word: "next", Name: "\x00\xff\n", Fields: []string{}},
		pack("word", "name", "", ""): {Word: "word", Name: "name", Fields: []string{"", ""}},
	} {
		got, err := wake.Parse(payload)
		require.NoError(t, err, "%q", payload)
		require.Equal(t, want, got, "%q", payload)
	}
}

func TestAPayloadThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	for payload, where := range map[string]string{
		"":                         "without word and name",
		"7:granted":                "without word and name",
		"granted":                  "at byte 0",
		"8:granted":                "at byte 0",
		"-1:granted":               "at byte 0",
		":granted":                 "at byte 0",
		"7:granted3":               "at byte 9",
		"7:granted4:gpu":           "at byte 9",
		"7:granted3:gpux":          "at byte 14",
		"99999999999999999999:x":   "at byte 0",
		"7:granted3:gpu1e1:abcdef": "at byte 14",
	} {
		_, err := wake.Parse(payload)
		require.ErrorContains(t, err, where, "%q", payload)
	}
}

func TestAFieldThatIsNotThereIsEmptyAndZero(t *testing.T) {
	t.Parallel()
	m := wake.Message{Fields: []string{"a.1", "17", "9223372036854775808", "-3"}}
	require.Equal(t, "a.1", m.Field(0))
	require.Empty(t, m.Field(4))
	require.EqualValues(t, 0, m.Int(0), "no number")
	require.EqualValues(t, 17, m.Int(1))
	require.EqualValues(t, 0, m.Int(2), "beyond 63 bits")
	require.EqualValues(t, -3, m.Int(3))
	require.EqualValues(t, 0, m.Int(4))
}

func FuzzParseReadsBackWhatItHasRead(f *testing.F) {
	for _, seed := range []string{"", "7:granted3:gpu3:a.12:17", "0:0:", "1:", "3:ab", "-1:x", "+1:a01:b", pack("a", "b", "\xff")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		m, err := wake.Parse(payload)
		if err != nil {
			require.Equal(t, wake.Message{}, m)
			return
		}
		again, err := wake.Parse(pack(append([]string{m.Word, m.Name}, m.Fields...)...))
		require.NoError(t, err)
		require.Equal(t, m, again)
		for i := range len(m.Fields) + 1 {
			_, _ = m.Field(i), m.Int(i)
		}
	})
}

const channel = "berth:wake:n"

// world is a server in virtual time and a client of it.
type world struct {
	t      *testing.T
	mini   *miniredis.Miniredis
	link   *link.Link
	redis  rueidis.Client
	refuse atomic.Pointer[func(c *server.Peer, cmd string) bool]
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, mini: miniredis.NewMiniRedis(), link: link.New(nil)}
		first, err := w.mini.Dial() // starts it
		require.NoError(t, err)
		require.NoError(t, first.Close())
		defer w.mini.Close()
		w.mini.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
			if cmd == "HELLO" {
				c.WriteError("ERR unknown command 'HELLO'") // RESP2 only
				return true
			}
			refuse := w.refuse.Load()
			return refuse != nil && (*refuse)(c, cmd)
		})
		option := rueidis.ClientOption{
			InitAddress: []string{"mini:0"}, DisableCache: true, ForceSingleClient: true, ConnWriteTimeout: 10 * time.Second,
			DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return w.mini.Dial() },
		}
		option.Dialer.KeepAlive = time.Hour
		w.link.Wrap(&option)
		w.redis, err = rueidis.NewClient(option)
		require.NoError(t, err)
		defer w.redis.Close()
		test(t, w)
	})
}

// refuses has the server answer a command with an error from now on, or not at all where that is empty.
func (w *world) refuses(command, err string) {
	f := func(c *server.Peer, cmd string) bool {
		if cmd == command && err != "" {
			c.WriteError(err)
		}
		return cmd == command
	}
	w.refuse.Store(&f)
}

const noPermission = "NOPERM this user has no permissions to access one of the channels"

// publish says something on the channel, and returns how many heard it.
func (w *world) publish(payload string) int {
	n := w.mini.Publish(channel, payload)
	synctest.Wait()
	return n
}

// heard collects what a hub tells.
type heard struct {
	mu  sync.Mutex
	all told // guarded by mu
}

type told struct {
	words            []string
	subscribed, deaf int
	refusal          error // that of the last time
}

func (h *heard) note(change func(all *told)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.all)
}

func (h *heard) now() (all told) {
	h.note(func(now *told) { all = *now })
	return all
}

func (h *heard) callbacks() wake.Callbacks {
	return wake.Callbacks{
		Deliver:    func(m wake.Message) { h.note(func(all *told) { all.words = append(all.words, m.Word) }) },
		Subscribed: func() { h.note(func(all *told) { all.subscribed++ }) },
		Deaf:       func(times int, refusal error) { h.note(func(all *told) { all.deaf, all.refusal = times, refusal }) },
	}
}

func (w *world) hub() (*wake.Hub, *heard) {
	h := &heard{}
	return wake.New(w.redis, channel, clock.New(), h.callbacks()), h
}

func TestAHubSubscribesWithStartAndOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hub, h := w.hub()
		require.Zero(t, w.publish(pack("granted", "gpu")), "nobody listens before Start")
		require.EqualValues(t, 0, hub.Epoch())
		hub.Start()
		hub.Start()
		synctest.Wait()
		require.Equal(t, 1, w.link.Count("SUBSCRIBE"))
		require.EqualValues(t, 1, hub.Epoch())
		require.Equal(t, 1, w.publish(pack("granted", "gpu")))
		require.Equal(t, 1, w.publish(pack("next", "gpu")))
		require.Equal(t, []string{"granted", "next"}, h.now().words)
		require.Equal(t, 1, h.now().subscribed)
		hub.Stop()
	})
}

func TestAHubDropsWhatItCannotRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		_, h := w.started()
		for _, payload := range []string{"", "granted", "7:granted", "9:granted3:gpu"} {
			require.Equal(t, 1, w.publish(payload))
		}
		require.Equal(t, 1, w.publish(pack("granted", "gpu", "a field of a release to come")))
		require.Equal(t, []string{"granted"}, h.now().words)
	})
}

func TestNothingIsDeliveredAfterStop(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hub, h := w.started()
		hub.Stop()
		require.Zero(t, w.link.Count("UNSUBSCRIBE"), "rueidis panics where the PING behind it is refused")
		w.publish(pack("granted", "gpu"))
		synctest.Wait()
		require.Empty(t, h.now().words)
		hub.Stop() // again
		hub.Start()
		synctest.Wait()
		require.Equal(t, 1, w.link.Count("SUBSCRIBE"), "a hub that was stopped stays so")

		before, _ := w.hub()
		before.Stop()
		before.Start()
		synctest.Wait()
		require.Equal(t, 1, w.link.Count("SUBSCRIBE"), "also one that was stopped before its start")
		before.Stop()
	})
}

func TestStopComesBackWhereTheServerDoesNotAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hub, _ := w.started()
		w.link.Stall()
		start := time.Now()
		hub.Stop()
		require.LessOrEqual(t, time.Since(start), time.Second)
		w.link.Flow()
	})
}

func TestABrokenSubscriptionIsMadeAgainAndCounted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hub, h := w.started()
		for i := 2; i <= 4; i++ {
			w.link.Break()
			// With RESP2, rueidis subscribes again only when it has noticed that
			// its connection for calls is broken too.
			_ = w.redis.Do(t.Context(), w.redis.B().Ping().Build()).Error()
			pass(3 * time.Second) // it pauses, longer each time
			require.Equal(t, i, h.now().subscribed)
			require.EqualValues(t, i, hub.Epoch())
			require.Equal(t, 1, w.publish(pack("granted", "gpu")))
		}
		require.Len(t, h.now().words, 3)
	})
}

func TestASubscriptionIsMadeWhenTheServerIsBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.link.Cut()
		hub, h := w.started()
		time.Sleep(10 * time.Second)
		require.EqualValues(t, 0, hub.Epoch())
		w.link.Mend()
		pass(5 * time.Second)
		require.EqualValues(t, 1, hub.Epoch())
		require.Equal(t, 1, w.publish(pack("granted", "gpu")))
		require.Equal(t, []string{"granted"}, h.now().words)
	})
}

func TestARefusedSubscriptionIsTriedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.refuses("SUBSCRIBE", "LOADING Redis is loading the dataset in memory")
		hub, _ := w.started()
		pass(time.Second)
		require.EqualValues(t, 0, hub.Epoch())
		require.InDelta(t, 10, w.link.Count("SUBSCRIBE"), 1, "one in 100 ms")
		w.refuses("", "")
		pass(100 * time.Millisecond)
		require.EqualValues(t, 1, hub.Epoch())
	})
}

func TestTrySubscribesOnceAndSaysWhyItCannot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.NoError(t, wake.Try(t.Context(), w.redis, channel))
		require.Equal(t, 1, w.link.Count("SUBSCRIBE"))
		require.Zero(t, w.link.Count("UNSUBSCRIBE"))
		w.refuses("SUBSCRIBE", noPermission)
		start := time.Now()
		require.ErrorContains(t, wake.Try(t.Context(), w.redis, channel), "NOPERM")
		require.Zero(t, time.Since(start))
		w.refuses("SUBSCRIBE", "") // the server is silent
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, wake.Try(ctx, w.redis, channel), context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(start), 1300*time.Millisecond)
	})
}

func TestAMessageOnWhichSomethingPanicsIsDroppedAndTold(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := &heard{}
		var told []observe.Event
		tell := h.callbacks()
		deliver := tell.Deliver
		tell.Observe = func(e observe.Event) { told = append(told, e) }
		tell.Deliver = func(m wake.Message) {
			if m.Name == "bad" {
				panic(guard.Meant("no such index"))
			}
			deliver(m)
		}
		hub := wake.New(w.redis, channel, clock.New(), tell)
		hub.Start()
		synctest.Wait()
		require.Equal(t, 1, w.publish(pack("granted", "bad")))
		require.Equal(t, 1, w.publish(pack("granted", "gpu")))
		require.Equal(t, []string{"granted"}, h.now().words)
		require.Equal(t, 1, h.now().subscribed, "the connection lives on")
		require.Len(t, told, 1)
		require.Equal(t, observe.Panicked, told[0].Kind)
		hub.Stop()
	})
}

const key = "berth:sem:{gpu}:state"

// started starts a hub.
func (w *world) started() (*wake.Hub, *heard) {
	hub, h := w.hub()
	hub.Start()
	synctest.Wait()
	w.t.Cleanup(hub.Stop)
	return hub, h
}

// pass lets time pass, and everything that happens then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestADeafSubscriptionIsMadeAnewWhereADoubtSays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hub, h := w.started()
		w.link.Deafen(true) // its server has left the cluster
		w.link.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "SUBSCRIBE" {
				w.link.Deafen(false) // another one
			}
			return link.Pass
		})
		hub.Doubt(key, 10*time.Second)
		pass(1999 * time.Millisecond)
		require.Equal(t, 2, w.link.Count("PUBLISH"), "an echo may be lost, two may not")
		require.Zero(t, h.now().deaf)
		pass(time.Millisecond)
		require.Equal(t, 1, h.now().deaf)
		require.Equal(t, 2, w.link.Count("SUBSCRIBE"))
		require.EqualValues(t, 2, hub.Epoch())
		require.Equal(t, 1, w.publish(pack("granted", "gpu")))
		require.Equal(t, []string{"granted"}, h.now().words, "an echo is nobody else's business")
		require.Equal(t, 2, h.now().subscribed)
	})
}

func TestAMessageThatWasLostDoesNotMakeASubscriptionDeaf(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hub, h := w.started()
		for range 100 { // a storm of doubts
			hub.Doubt(key, 10*time.Second)
		}
		pass(time.Second)
		require.Equal(t, 1, w.link.Count("PUBLISH"))
		w.link.Deafen(true)
		pass(10 * time.Second)
		hub.Doubt(key, 10*time.Second)
		pass(500 * time.Millisecond)
		w.link.Deafen(false) // the first echo was lost, and the second is not
		pass(10 * time.Second)
		hub.Doubt(key, 10*time.Second)
		pass(10 * time.Second)
		require.Zero(t, h.now().deaf)
		require.Equal(t, 1, w.link.Count("SUBSCRIBE"))
	})
}

func TestASubscriptionThatStaysDeafIsMadeAnewEverMoreSeldom(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hub, h := w.started()
		w.link.Deafen(true)
		for range 3600 {
			hub.Doubt(key, 10*time.Second)
			pass(time.Second)
		}
		require.InDelta(t, 60, h.now().deaf, 4, "at 0, 10, 30, 70, 130 s and so on")
		require.Equal(t, h.now().deaf, w.link.Count("SUBSCRIBE")-1)
	})
}

func TestAUserWhoMayNotPublishIsNotTakenForDeaf(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hub, h := w.started()
		w.refuses("PUBLISH", "NOPERM this user has no permissions to run the 'publish' command")
		for range 600 {
			hub.Doubt(key, 10*time.Second)
			pass(time.Second)
		}
		require.Zero(t, h.now().deaf)
		require.Equal(t, 1, w.link.Count("SUBSCRIBE"))
		require.Equal(t, 10, w.link.Count("PUBLISH"), "once a minute")
	})
}

func TestNobodyDoubtsBeforeThereIsASubscriptionOrAfterStop(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hub, _ := w.hub()
		hub.Doubt(key, 10*time.Second)
		hub.Start()
		synctest.Wait()
		w.link.Deafen(true)
		hub.Doubt(key, 10*time.Second)
		synctest.Wait()
		start := time.Now()
		hub.Stop()
		require.Zero(t, time.Since(start), "Stop waits for no echo")
		hub.Doubt(key, 10*time.Second)
		pass(time.Minute)
		require.Equal(t, 1, w.link.Count("PUBLISH"))
	})
}

// Rueidis says that it is closing also of one connection, to a server that has left
// the cluster.
func TestAHubDoesNotBelieveAtOnceThatRueidisIsClosing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hub, _ := w.hub()
		w.redis.Close()
		hub.Start()
		pass(time.Minute)
		hub.Stop()
	})
}

func TestAUserWhoMayNotSubscribeIsToldOnceAndTriesEachMinute(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.refuses("SUBSCRIBE", noPermission)
		_, h := w.started()
		require.Equal(t, 1, h.now().deaf)
		require.ErrorContains(t, h.now().refusal, "NOPERM")
		pass(10 * time.Minute)
		require.Equal(t, 1, h.now().deaf)
		require.Equal(t, 11, w.link.Count("SUBSCRIBE"))
		w.refuses("", "") // the right is given
		pass(time.Minute)
		require.Equal(t, 1, h.now().subscribed)
	})
}
