// Package wake delivers the wake-ups that scripts publish for a node: one
// subscription per node, made when the node first has to wait.
//
// A wake-up may be lost, late or false; whoever receives one must not rest
// anything on it that only an answered call of its own may decide.
package wake

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// pause is how long the hub waits before it subscribes anew after Receive has
// returned. Rueidis reconnects by itself; this is for what it gives up on.
const pause = 100 * time.Millisecond

// patience bounds the taking back of a subscription.
const patience = time.Second

// Message is one wake-up.
type Message struct {
	// Word says what happened: "granted", "released", "too_heavy", "next".
	Word string
	// Name is what is contended for.
	Name string
	// Fields are the rest, by word. Unknown trailing ones are to be ignored.
	Fields []string
}

// Field returns field i, or "" where there are fewer.
func (m Message) Field(i int) string {
	if i < len(m.Fields) {
		return m.Fields[i]
	}
	return ""
}

// Int returns field i as a whole number, or 0 where it is none.
func (m Message) Int(i int) int64 {
	n, err := strconv.ParseInt(m.Field(i), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Parse reads a payload: length-prefixed fields, "7:granted3:gpu...". The first
// two are the word and the name.
func Parse(payload string) (Message, error) {
	var fields []string
	for rest := payload; rest != ""; {
		size, after, found := strings.Cut(rest, ":")
		n, err := strconv.Atoi(size)
		if !found || err != nil || n < 0 || n > len(after) {
			return Message{}, fmt.Errorf("wake: malformed payload at byte %d", len(payload)-len(rest))
		}
		fields = append(fields, after[:n])
		rest = after[n:]
	}
	if len(fields) < 2 {
		return Message{}, errors.New("wake: payload without word and name")
	}
	return Message{Word: fields[0], Name: fields[1], Fields: fields[2:]}, nil
}

// Hub holds the one subscription of a node.
type Hub struct {
	client     rueidis.Client
	channel    string
	deliver    func(Message)
	subscribed func()

	epoch  atomic.Int64 // counts subscriptions: each may have followed a gap
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	done    chan struct{} // closed when the receiving goroutine has ended; nil before Start
	stopped bool
}

// New returns a hub that has not subscribed yet. deliver and subscribed run on
// the goroutine that reads the connection: both must return at once and must
// not call the client.
func New(client rueidis.Client, channel string, deliver func(Message), subscribed func()) *Hub {
	h := &Hub{client: client, channel: channel, deliver: deliver, subscribed: subscribed}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Start subscribes, unless that was done before or the hub is stopped.
func (h *Hub) Start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done != nil || h.stopped {
		return
	}
	h.done = make(chan struct{})
	go h.receive()
}

// Stop unsubscribes and waits until nothing is delivered any more. It may come
// before Start, and twice.
func (h *Hub) Stop() {
	h.mu.Lock()
	h.stopped = true
	done := h.done
	h.mu.Unlock()
	h.cancel()
	if done != nil {
		<-done
	}
}

// Epoch counts the subscriptions so far. What was published before the latest
// one may have been lost.
func (h *Hub) Epoch() int64 { return h.epoch.Load() }

func (h *Hub) receive() {
	defer close(h.done)
	subscribed := func() {
		h.epoch.Add(1)
		h.subscribed()
	}
	for {
		err := listen(h.ctx, h.client, h.channel, subscribed, func(payload string) {
			// A payload that cannot be read is from a stranger or from a
			// release to come: the heartbeat brings the same news.
			if message, err := Parse(payload); err == nil {
				h.deliver(message)
			}
		})
		if errors.Is(err, rueidis.ErrClosing) {
			return
		}
		select {
		case <-h.ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// listen subscribes to a channel until ctx ends or rueidis gives up, and takes
// the subscription back: rueidis only stops to listen, while its connection stays
// subscribed.
func listen(ctx context.Context, client rueidis.Client, channel string, subscribed func(), heard func(payload string)) error {
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" {
			subscribed()
		}
	})
	ctx = rueidis.WithOnReceiveReturnHook(ctx, func(err error, conn rueidis.CommandClient) error {
		if ctx.Err() != nil {
			farewell, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			defer cancel()
			// Nothing depends on it: an unsubscribed channel costs nothing.
			_ = conn.Do(farewell, client.B().Unsubscribe().Channel(channel).Build()).Error()
		}
		return err
	})
	subscribe := client.B().Subscribe().Channel(channel).Build()
	return client.Receive(ctx, subscribe, func(m rueidis.PubSubMessage) { heard(m.Message) })
}

// Try subscribes to a channel and takes that back. It returns an error where the
// server refuses, or does not answer before ctx ends.
func Try(ctx context.Context, client rueidis.Client, channel string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var heard atomic.Bool
	err := listen(ctx, client, channel, func() {
		heard.Store(true)
		cancel()
	}, func(string) {})
	if heard.Load() {
		return nil
	}
	return err
}
