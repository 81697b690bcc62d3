package line_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/berth-go/berth"
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

// logged is a client whose lines a test reads.
type logged struct {
	t     *testing.T
	tell  line.Teller
	lines *line.Lines
	told  int // events that the observer got
	log   *observer.ObservedLogs
}

func inLog(t *testing.T, f func(l *logged)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, log := observer.New(zap.DebugLevel)
		l := &logged{t: t, log: log}
		l.tell, l.lines = line.NewTeller("ns", func() string { return "n" }, zaplog.New(zap.New(core)),
			observe.Func(func(observe.Event) { l.told++ }))
		f(l)
	})
}

// takes are the lines since the last look: kind, claim, count and detail.
func (l *logged) takes() []string {
	var lines []string
	for _, entry := range l.log.TakeAll() {
		fields := entry.ContextMap()
		lines = append(lines, fmt.Sprint(entry.Message, " ", fields["claim"], " ", fields["count"], " ", fields["detail"]))
	}
	return lines
}

// outage has holds and waits begin, and tells that the server is silent to all of them.
func (l *logged) outage(holds, waits int) {
	for i := range holds {
		l.tell.Send(observe.Event{Kind: observe.Granted, Claim: fmt.Sprint("h", i)})
	}
	for i := range waits {
		l.tell.Send(observe.Event{Kind: observe.Queued, Claim: fmt.Sprint("w", i)})
	}
	l.log.TakeAll()
	l.silent(holds, waits)
}

func (l *logged) silent(holds, waits int) {
	for i := range holds {
		l.tell.Send(observe.Event{Kind: observe.Unavailable, Claim: fmt.Sprint("h", i), Detail: "holds", Err: errSilent})
	}
	for i := range waits {
		l.tell.Send(observe.Event{Kind: observe.Unavailable, Claim: fmt.Sprint("w", i), Detail: "waits", Err: errSilent})
	}
}

var errSilent = fmt.Errorf("%w: no answer", berth.ErrUnavailable)

func TestAnOutageIsOneLineAMinuteAndNotOneForAClaim(t *testing.T) {
	inLog(t, func(l *logged) {
		l.outage(100, 200)
		require.Equal(l.t, []string{"unavailable h0 <nil> holds; the node has 100 holds and 200 waits"}, l.takes())
		time.Sleep(20 * time.Second)
		for i := range 100 {
			l.tell.Send(observe.Event{Kind: observe.Lost, Claim: fmt.Sprint("h", i), WasHeld: true, Err: berth.ErrLost})
		}
		require.Equal(l.t, []string{"lost h0 <nil> <nil>"}, l.takes())
		time.Sleep(41 * time.Second)
		require.Equal(l.t, []string{"unavailable <nil> 299 waits; the node has 100 holds and 200 waits"}, l.takes())
		l.silent(0, 200)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Equal(l.t, []string{"lost <nil> 99 <nil>"}, l.takes())
		time.Sleep(time.Hour)
		require.Equal(l.t, []string{"unavailable <nil> 200 waits; the node has 0 holds and 200 waits"}, l.takes())
		require.Equal(l.t, 300+300+100+200, l.told, "an observer gets every event")
		l.lines.Close()
	})
}

func TestThatWhichIsCountedIsWrittenAtTheEnd(t *testing.T) {
	inLog(t, func(l *logged) {
		l.outage(1, 2)
		l.takes()
		l.tell.Send(observe.Event{Kind: observe.Failed, Claim: "a", Err: errSilent})
		l.tell.Send(observe.Event{Kind: observe.Failed, Claim: "b", Err: errSilent})
		require.Equal(l.t, []string{"failed a <nil> <nil>"}, l.takes())
		l.lines.Close()
		require.ElementsMatch(l.t, []string{
			"unavailable <nil> 2 waits; the node has 1 holds and 2 waits",
			"failed b <nil> <nil>", // the only one: whole
		}, l.takes())
		l.tell.Send(observe.Event{Kind: observe.Lost, Claim: "h0", Err: berth.ErrLost})
		l.tell.Send(observe.Event{Kind: observe.Lost, Claim: "h1", Err: berth.ErrLost})
		require.Len(l.t, l.takes(), 2, "of those that follow, too")
		l.lines.Close()
	})
}

func TestWithoutAnOutageEachEventIsALine(t *testing.T) {
	inLog(t, func(l *logged) {
		for _, err := range []error{berth.ErrLost, errors.New("OOM")} {
			for range 3 {
				l.tell.Send(observe.Event{Kind: observe.Lost, Err: err})
				l.tell.Send(observe.Event{Kind: observe.Failed, Err: err, Context: context.Background()})
			}
		}
		require.Len(l.t, l.takes(), 12)
		l.lines.Close()
	})
}
