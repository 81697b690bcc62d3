package wake

import (
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/scriptkit"
)

// A subscription may be deaf: a server that was taken out of a cluster keeps it,
// answers every PING, and is told of nothing that is published. Nothing but a
// message that does not come shows that. So where a message did not come, the hub
// publishes an echo to itself, on the way that the messages take, and where that
// does not come either, twice, it subscribes on another server.

// echo is the word of what a hub publishes to itself.
const echo = "echo"

const (
	// echoes is how many have to be lost before the subscription counts as deaf.
	echoes = 2
	// longest is the longest rest between two doubts, and the rest after a refused subscription.
	longest = time.Minute
)

// Doubt tells the hub of a message that did not come, and that was published by the
// server that has the Redis key. It does not wait. One doubt is looked into at a
// time, and then none for a rest: every, or longer while the subscription stays deaf.
func (h *Hub) Doubt(key string, every time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.Epoch() == 0 || h.stopped || h.doubting || h.clock.Now() < h.rests {
		return
	}
	h.doubting = true
	h.tasks.Go(func() { h.look(key, every) })
}

// look finds out whether the subscription is deaf, and has it made elsewhere then.
func (h *Hub) look(key string, every time.Duration) {
	hears, err := h.listensTo(key)
	h.mu.Lock()
	h.doubting = false
	rest := every
	_, refused := rueidis.IsRedisErr(err)
	switch {
	case refused:
		rest = longest // this user may not PUBLISH, so that nothing can be found out
	case err != nil:
	case hears:
		h.row = 0
	default:
		rest = min(every<<min(h.row, 16), longest)
		h.row++
		h.deaf++
		h.key = key
	}
	h.rests = h.clock.Now() + max(rest, patience)
	leave, times := h.leave, h.deaf
	h.mu.Unlock()
	if err == nil && !hears {
		h.tell.Deaf(times, nil)
		leave()
	}
}

// listensTo reports whether an echo is heard, or the hub is being stopped.
func (h *Hub) listensTo(key string) (bool, error) {
	for range echoes {
		select {
		case <-h.echoes: // of an earlier doubt
		default:
		}
		if err := h.shout(key); err != nil {
			return false, err
		}
		wait := time.NewTimer(patience)
		select {
		case <-h.echoes:
		case <-h.ctx.Done():
		case <-wait.C:
			continue
		}
		wait.Stop()
		return true, nil
	}
	return false, nil
}

// shout publishes an echo from the server that has the Redis key.
func (h *Hub) shout(key string) error {
	ctx, cancel := scriptkit.Limit(h.ctx, patience)
	defer cancel()
	payload := fmt.Sprintf("%d:%s0:", len(echo), echo)
	publish := h.client.B().Publish().Channel(h.channel).Message(payload).Build().SetSlot(key)
	return h.client.Do(ctx, publish).Error()
}
