// Package wake delivers the wake-ups that scripts publish for a node: one
// subscription per node, made when the node first has to wait.
//
// A wake-up may be lost, late or false; its receiver must not decide by
// it what only an answered call of its own may decide.
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

	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/pkg/observe"
)

// pause is how long the hub waits before it subscribes anew after Receive has
// returned. Rueidis reconnects by itself; this is for what it gives up on.
const pause = 100 * time.Millisecond

// patience bounds the wait for an echo.
const patience = time.Second

// Message is one wake-up.
type Message struct {
	// Word says what happened: "granted", "released", "too_heavy", "absent", "next".
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

// Callbacks are what a hub tells its owner. None of them may call the hub, but for Epoch.
type Callbacks struct {
	// Deliver takes a message, and Subscribed is called after each subscription.
	// Both run on the goroutine that reads the connection: they must return at once
	// and must not call the client.
	Deliver    func(Message)
	Subscribed func()
	// Deaf is called when the subscription has brought nothing although something
	// was published, before the hub subscribes elsewhere; and once, with the refusal,
	// where the user may not subscribe. times counts the calls.
	Deaf func(times int, refusal error)
	// Observe takes the event of a message that could not be taken in without a panic; nil for nobody.
	Observe func(observe.Event)
}

// Hub holds the one subscription of a node.
type Hub struct {
	client  rueidis.Client
	channel string
	tell    Callbacks
	clock   clock.Clock

	epoch  atomic.Int64  // counts subscriptions: each may have followed a gap
	echoes chan struct{} // has an element once an echo has come, and room for one
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup // the receiving goroutine, and the one that listens for an echo

	mu       sync.Mutex
	started  bool
	stopped  bool
	key      string             // guarded by mu: the subscription is to be where this Redis key is, "" for anywhere
	leave    context.CancelFunc // guarded by mu: ends the subscription, so that another one is made
	doubting bool               // guarded by mu: an echo is being listened for
	rests    time.Duration      // guarded by mu: until when no doubt counts
	deaf     int                // guarded by mu: how often the subscription was
	row      int                // guarded by mu: how often since an echo was heard
}

// New returns a hub that has not subscribed yet.
func New(client rueidis.Client, channel string, clk clock.Clock, tell Callbacks) *Hub {
	h := &Hub{client: client, channel: channel, tell: tell, clock: clk, echoes: make(chan struct{}, 1)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Start subscribes, unless that was done before or the hub is stopped.
func (h *Hub) Start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.started || h.stopped {
		return
	}
	h.started = true
	h.tasks.Go(h.receive)
}

// Stop returns when nothing is delivered any more. It may come before Start, and twice.
func (h *Hub) Stop() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.cancel()
	h.tasks.Wait()
}

// Epoch counts the subscriptions so far. What was published before the latest
// one may have been lost.
func (h *Hub) Epoch() int64 { return h.epoch.Load() }

func (h *Hub) receive() {
	forbidden := false
	for closed := 0; ; {
		rest := pause
		ctx, leave, key := h.settle()
		err := listen(ctx, h.client, h.channel, key, h.subscribed, h.hear)
		moves := ctx.Err() != nil
		leave()
		switch {
		case h.ctx.Err() != nil:
			return
		case moves:
			continue
		case Forbidden(err):
			closed, rest = 0, longest
			if !forbidden {
				forbidden = true
				h.tell.Deaf(h.countDeaf(), err)
			}
		case !errors.Is(err, rueidis.ErrClosing):
			closed = 0
		case closed == closings:
			return
		default:
			closed++
		}
		select {
		case <-h.ctx.Done():
			return
		case <-time.After(rest):
		}
	}
}

// countDeaf counts one more time that the subscription brings nothing.
func (h *Hub) countDeaf() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deaf++
	return h.deaf
}

// Forbidden reports whether err says that the user lacks a right.
func Forbidden(err error) bool {
	answer, refused := rueidis.IsRedisErr(err)
	return refused && strings.HasPrefix(answer.Error(), "NOPERM ")
}

// closings is how often in a row rueidis has to say that it is closing before the
// hub believes it: it also says so of a connection to a server that has left a
// cluster, until it knows the others.
const closings = 50

// settle says where the next subscription is to be made, and until when.
func (h *Hub) settle() (ctx context.Context, leave context.CancelFunc, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ctx, h.leave = context.WithCancel(h.ctx)
	return ctx, h.leave, h.key
}

func (h *Hub) subscribed() {
	h.epoch.Add(1)
	h.tell.Subscribed()
}

// hear takes a payload. One that cannot be read is from a stranger or from a
// release to come: the heartbeat brings the same news.
func (h *Hub) hear(payload string) {
	_ = guard.Run("a wake-up", h.tell.Observe, func() error {
		h.take(payload)
		return nil
	})
}

func (h *Hub) take(payload string) {
	message, err := Parse(payload)
	switch {
	case err != nil:
	case message.Word == echo:
		select {
		case h.echoes <- struct{}{}:
		default:
		}
	default:
		h.tell.Deliver(message)
	}
}

// listen subscribes to a channel until ctx ends or rueidis gives up. Where key is not "", the
// subscription is made on the server that has that Redis key. It is not taken back: rueidis sends a PING behind
// each UNSUBSCRIBE, and ends the process where that is refused with words that it does not know (MISCONF,
// MASTERDOWN). Until its connection ends, a channel that nobody listens to any more costs the server some 300 bytes.
func listen(ctx context.Context, client rueidis.Client, channel, key string, subscribed func(), heard func(payload string)) error {
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" {
			subscribed()
		}
	})
	subscribe := client.B().Subscribe().Channel(channel).Build()
	if key != "" {
		subscribe = subscribe.SetSlot(key)
	}
	return client.Receive(ctx, subscribe, func(m rueidis.PubSubMessage) { heard(m.Message) })
}

// Try subscribes to a channel, and listens no more then. It returns an error where the
// server refuses, or does not answer before ctx ends.
func Try(ctx context.Context, client rueidis.Client, channel string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var heard atomic.Bool
	err := listen(ctx, client, channel, "", func() {
		heard.Store(true)
		cancel()
	}, func(string) {})
	if heard.Load() {
		return nil
	}
	return err
}
