package line_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
)

func TestATellerCompletesEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []observe.Event
		node, failure := "a", errors.New("no answer")
		tell := line.NewTeller(keyspace.Lock, "ns", func() string { return node }, nil,
			observe.Func(func(ev observe.Event) { told = append(told, ev) }))
		tell.Repeated("lock_release", 2, failure)
		node = "b"
		tell.Swept("door", 3)
		tell.Swept("door", 0)
		tell.Send(observe.Event{Kind: observe.Lost, Node: "a"})
		now := time.Now()
		require.Equal(t, []observe.Event{
			{Kind: observe.Repeated, Primitive: "lock", Namespace: "ns", Node: "a", At: now, Detail: "lock_release", Count: 2, Err: failure},
			{Kind: observe.Swept, Primitive: "lock", Namespace: "ns", Node: "b", At: now, Name: "door", Count: 3},
			{Kind: observe.Lost, Primitive: "lock", Namespace: "ns", Node: "a", At: now},
		}, told)
	})
}

func TestWithoutListenersNothingIsTold(t *testing.T) {
	t.Parallel()
	tell := line.NewTeller(keyspace.Lock, "ns", nil, nil, nil)
	require.Nil(t, tell)
	tell.Send(observe.Event{})
	tell.Swept("door", 3)
	tell.Repeated("lock_release", 1, nil)
}
