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

// answer decides about all commands from now on.
func (w *world) answer(f func(c *server.Peer, cmd string) bool) { w.refuse.Store(&f) }

// publish says something on the channel, and returns how many heard it.
func (w *world) publish(payload string) int {
	n := w.mini.Publish(channel, payload)
	synctest.Wait()
	return n
}

// heard collects what a hub delivers.
type heard struct {
	mu         sync.Mutex
	words      []string // guarded by mu
	subscribed int      // guarded by mu
	deaf       int      // guarded by mu
	refusal    error    // guarded by mu: that of the last time
}

func (h *heard) wasDeaf(times int, refusal error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deaf, h.refusal = times, refusal
}

func (h *heard) timesDeaf() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deaf
}

func (h *heard) deliver(m wake.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.words = append(h.words, m.Word)
}

func (h *heard) resubscribed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subscribed++
}

func (h *heard) state() ([]string, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.words, h.subscribed
}

func (w *world) hub() (*wake.Hub, *heard) {
	h := &heard{}
	return wake.New(w.redis, channel, clock.New(), wake.Callbacks{Deliver: h.deliver, Subscribed: h.resubscribed, Deaf: h.wasDeaf}), h
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
		words, subscribed := h.state()
		require.Equal(t, []string{"granted", "next"}, words)
		require.Equal(t, 1, subscribed)
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
		words, _ := h.state()
		require.Equal(t, []string{"granted"}, words)
	})
}

func TestNothingIsDeliveredAfterStop(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hub, h := w.started()
		hub.Stop()
		require.Zero(t, w.link.Count("UNSUBSCRIBE"), "rueidis panics where the PING behind it is refused")
		w.publish(pack("granted", "gpu"))
		synctest.Wait()
		words, _ := h.state()
		require.Empty(t, words)
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
			time.Sleep(3 * time.Second) // it pauses, longer each time
			synctest.Wait()
			_, subscribed := h.state()
			require.Equal(t, i, subscribed)
			require.EqualValues(t, i, hub.Epoch())
			require.Equal(t, 1, w.publish(pack("granted", "gpu")))
		}
		words, _ := h.state()
		require.Len(t, words, 3)
	})
}

func TestASubscriptionIsMadeWhenTheServerIsBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hub, h := w.hub()
		w.link.Cut()
		hub.Start()
		time.Sleep(10 * time.Second)
		require.EqualValues(t, 0, hub.Epoch())
		w.link.Mend()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, hub.Epoch())
		require.Equal(t, 1, w.publish(pack("granted", "gpu")))
		words, _ := h.state()
		require.Equal(t, []string{"granted"}, words)
		hub.Stop()
	})
}

func TestARefusedSubscriptionIsTriedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.answer(func(c *server.Peer, cmd string) bool {
			if cmd == "SUBSCRIBE" {
				c.WriteError("LOADING Redis is loading the dataset in memory")
			}
			return cmd == "SUBSCRIBE"
		})
		hub, _ := w.hub()
		hub.Start()
		time.Sleep(time.Second)
		synctest.Wait()
		require.EqualValues(t, 0, hub.Epoch())
		require.InDelta(t, 10, w.link.Count("SUBSCRIBE"), 1, "one in 100 ms")
		w.answer(func(*server.Peer, string) bool { return false })
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 1, hub.Epoch())
		hub.Stop()
	})
}

func noPermission(c *server.Peer, cmd string) bool {
	if cmd == "SUBSCRIBE" {
		c.WriteError("NOPERM this user has no permissions to access one of the channels")
		return true
	}
	return false
}

func TestTrySubscribesOnceAndSaysWhyItCannot(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		require.NoError(t, wake.Try(t.Context(), w.redis, channel))
		require.Equal(t, 1, w.link.Count("SUBSCRIBE"))
		require.Zero(t, w.link.Count("UNSUBSCRIBE"))
		w.answer(noPermission)
		start := time.Now()
		require.ErrorContains(t, wake.Try(t.Context(), w.redis, channel), "NOPERM")
		require.Zero(t, time.Since(start))
		w.answer(func(_ *server.Peer, cmd string) bool { return cmd == "SUBSCRIBE" }) // the server is silent
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
		hub := wake.New(w.redis, channel, clock.New(), wake.Callbacks{
			Deliver: func(m wake.Message) {
				if m.Name == "bad" {
					panic(guard.Meant("no such index"))
				}
				h.deliver(m)
			},
			Subscribed: h.resubscribed, Deaf: h.wasDeaf, Observe: func(e observe.Event) { told = append(told, e) },
		})
		hub.Start()
		synctest.Wait()
		require.Equal(t, 1, w.publish(pack("granted", "bad")))
		require.Equal(t, 1, w.publish(pack("granted", "gpu")))
		words, subscribed := h.state()
		require.Equal(t, []string{"granted"}, words)
		require.Equal(t, 1, subscribed, "the connection lives on")
		require.Len(t, told, 1)
		require.Equal(t, observe.Panicked, told[0].Kind)
		hub.Stop()
	})
}
