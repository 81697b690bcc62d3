package wake_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/internal/wake"
)

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
		require.Zero(t, h.timesDeaf())
		pass(time.Millisecond)
		require.Equal(t, 1, h.timesDeaf())
		require.Equal(t, 2, w.link.Count("SUBSCRIBE"))
		require.EqualValues(t, 2, hub.Epoch())
		require.Equal(t, 1, w.publish(pack("granted", "gpu")))
		words, subscribed := h.state()
		require.Equal(t, []string{"granted"}, words, "an echo is nobody else's business")
		require.Equal(t, 2, subscribed)
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
		require.Zero(t, h.timesDeaf())
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
		require.InDelta(t, 60, h.timesDeaf(), 4, "at 0, 10, 30, 70, 130 s and so on")
		require.Equal(t, h.timesDeaf(), w.link.Count("SUBSCRIBE")-1)
	})
}

func TestAUserWhoMayNotPublishIsNotTakenForDeaf(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		hub, h := w.started()
		w.answer(func(c *server.Peer, cmd string) bool {
			if cmd == "PUBLISH" {
				c.WriteError("NOPERM this user has no permissions to run the 'publish' command")
			}
			return cmd == "PUBLISH"
		})
		for range 600 {
			hub.Doubt(key, 10*time.Second)
			pass(time.Second)
		}
		require.Zero(t, h.timesDeaf())
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
		w.answer(noPermission)
		_, h := w.started()
		require.Equal(t, 1, h.timesDeaf())
		require.ErrorContains(t, h.refusal, "NOPERM")
		pass(10 * time.Minute)
		require.Equal(t, 1, h.timesDeaf())
		require.Equal(t, 11, w.link.Count("SUBSCRIBE"))
		w.answer(func(*server.Peer, string) bool { return false }) // the right is given
		pass(time.Minute)
		_, subscribed := h.state()
		require.Equal(t, 1, subscribed)
	})
}
