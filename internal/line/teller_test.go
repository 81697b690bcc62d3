package line_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/zaplog"
)

func TestATellerCompletesEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []observe.Event
		node, failure := "a", errors.New("no answer")
		of, _ := line.NewTeller("ns", func() string { return node }, nil,
			observe.Func(func(ev observe.Event) { told = append(told, ev) }))
		tell := of.Of(keyspace.Lock)
		bare := context.Background()
		tell.Repeated(bare, "lock_release", 2, failure)
		node = "b"
		tell.Swept(bare, "door", 3)
		tell.Swept(bare, "door", 0)
		tell.Send(observe.Event{Kind: observe.Lost, Node: "a"})
		of.Send(observe.Event{Kind: observe.Deaf})
		of.Of(keyspace.Sem).Send(observe.Event{Kind: observe.Flushed, Primitive: "pool"})
		now := time.Now()
		require.Equal(t, []observe.Event{
			{Kind: observe.Repeated, Primitive: "lock", Namespace: "ns", Node: "a", At: now, Context: bare, Detail: "lock_release", Count: 2, Err: failure},
			{Kind: observe.Swept, Primitive: "lock", Namespace: "ns", Node: "b", At: now, Context: bare, Name: "door", Count: 3},
			{Kind: observe.Lost, Primitive: "lock", Namespace: "ns", Node: "a", At: now, Context: bare},
			{Kind: observe.Deaf, Primitive: "node", Namespace: "ns", Node: "b", At: now, Context: bare},
			{Kind: observe.Flushed, Primitive: "pool", Namespace: "ns", Node: "b", At: now, Context: bare},
		}, told)
	})
}

func TestWithoutListenersNothingIsTold(t *testing.T) {
	t.Parallel()
	tell, _ := line.NewTeller("ns", nil, nil, nil)
	require.Nil(t, tell)
	require.Nil(t, tell.Of(keyspace.Lock))
	tell.Send(observe.Event{})
	tell.Swept(context.Background(), "door", 3)
	tell.Repeated(context.Background(), "lock_release", 1, nil)

	for _, logger := range []*slog.Logger{nil, zaplog.New(nil)} {
		tell, lines := line.NewTeller("ns", nil, logger, nil)
		require.Nil(t, tell)
		require.Nil(t, lines)
		lines.Close()
	}
}

// An observer may pass the context on, to a server of traces perhaps, whatever has become of
// the call.
func TestTheContextOfAnEventHasTheValuesOfTheCallAndDoesNotEnd(t *testing.T) {
	t.Parallel()
	type key struct{}
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), key{}, "trace"), time.Hour)
	cancel()
	var told observe.Event
	tell, _ := line.NewTeller("ns", func() string { return "a" }, nil, observe.Func(func(ev observe.Event) { told = ev }))
	tell.Send(observe.Event{Kind: observe.Cancelled, Context: ctx})
	require.Equal(t, "trace", told.Context.Value(key{}))
	require.NoError(t, told.Context.Err())
	require.Nil(t, told.Context.Done())
	_, limited := told.Context.Deadline()
	require.False(t, limited)

	tell.Send(observe.Event{Kind: observe.Subscribed})
	require.Equal(t, context.Background(), told.Context)
}

func TestATellerWritesToEitherKindOfLogger(t *testing.T) {
	t.Parallel()
	core, lines := observer.New(zap.DebugLevel)
	var text bytes.Buffer
	for _, logger := range []*slog.Logger{zaplog.New(zap.New(core)), slog.New(slog.NewTextHandler(&text, nil))} {
		tell, _ := line.NewTeller("ns", func() string { return "a" }, logger, nil)
		tell.Send(observe.Event{Kind: observe.Lost, Name: "door"})
	}
	require.Equal(t, 1, lines.Len())
	require.Contains(t, text.String(), "level=WARN msg=lost logger=berth primitive=node namespace=ns name=door node=a\n")
}
