package observe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/zaplog"
)

// traceKey is where a context has its trace.
type traceKey struct{}

// fullEvent has every field filled.
func fullEvent() observe.Event {
	return observe.Event{
		Kind: observe.Granted, Primitive: "sem", Namespace: "berth", Name: "gpu", Claim: "node.xid", Node: "node",
		Owner: "me", Fence: 1 << 60, WasQueued: true, WasHeld: true, Waited: time.Second, Held: 2 * time.Second,
		Lease: 10 * time.Second, Left: 9 * time.Second, Silent: 4 * time.Second, Late: 5 * time.Second,
		Ahead: 3, Capacity: 4, Weight: 2, Count: 7, Resource: "proxy-1", Detail: "semaphore_acquire",
		Reason: berth.ReasonFull, Err: errors.New("no answer"), At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		Attrs:   map[string]any{"request": "r-1"},
		Context: context.WithValue(context.Background(), traceKey{}, "trace-1"),
	}
}

// fullLine is what is written of it. What Zap makes of a record is told by the tests of zaplog.
var fullLine = map[string]any{
	"primitive": "sem", "namespace": "berth", "name": "gpu", "claim": "node.xid", "node": "node", "owner": "me",
	"fence": int64(1 << 60), "wasqueued": true, "washeld": true, "waited": time.Second, "held": 2 * time.Second,
	"lease": 10 * time.Second, "left": 9 * time.Second, "silent": 4 * time.Second, "late": 5 * time.Second,
	"ahead": int64(3), "capacity": int64(4), "weight": int64(2), "count": int64(7), "resource": "proxy-1",
	"detail": "semaphore_acquire", "reason": "full", "error": "no answer", "attrs": map[string]any{"request": "r-1"},
}

// handler is a slog.Handler that keeps what it is given.
type handler struct {
	least    slog.Level
	asked    *[]context.Context
	contexts *[]context.Context
	records  *[]slog.Record
	attrs    []slog.Attr
}

func newHandler(least slog.Level) handler {
	return handler{least, new([]context.Context), new([]context.Context), new([]slog.Record), nil}
}

func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	*h.asked = append(*h.asked, ctx)
	return level >= h.least
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	*h.contexts, *h.records = append(*h.contexts, ctx), append(*h.records, r)
	return errors.New("the disk is full")
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.attrs = append(slices.Clip(h.attrs), attrs...)
	return h
}

func (h handler) WithGroup(string) slog.Handler { panic("not used") }

// line is what a record says.
func line(r slog.Record) map[string]any {
	fields := map[string]any{}
	r.Attrs(func(a slog.Attr) bool {
		fields[a.Key] = a.Value.Any()
		if err, ok := fields[a.Key].(error); ok {
			fields[a.Key] = err.Error()
		}
		return true
	})
	return fields
}

func TestSlogWritesEveryFilledField(t *testing.T) {
	event := fullEvent()
	inner := newHandler(slog.LevelDebug)
	observe.Slog(slog.New(inner).With("by", "the user")).Observe(event)

	require.Len(t, *inner.records, 1)
	record := (*inner.records)[0]
	require.Equal(t, "granted", record.Message)
	require.Equal(t, slog.LevelDebug, record.Level)
	require.Equal(t, event.At, record.Time)
	require.Zero(t, record.PC, "the caller would always be Slog itself")
	require.Equal(t, fullLine, line(record))
	for _, ctx := range []context.Context{(*inner.asked)[0], (*inner.contexts)[0]} {
		require.Equal(t, "trace-1", ctx.Value(traceKey{}))
	}
}

// A field that is added to Event must not be forgotten in a line.
func TestALineKnowsEveryFieldOfAnEvent(t *testing.T) {
	elsewhere := map[string]string{"Kind": "the message", "At": "the time", "Err": "error", "Context": "the handler's"}
	for i := range reflect.TypeFor[observe.Event]().NumField() {
		field := reflect.TypeFor[observe.Event]().Field(i).Name
		require.False(t, reflect.ValueOf(fullEvent()).Field(i).IsZero(), "fullEvent lacks %s", field)
		if elsewhere[field] == "" {
			require.Contains(t, fullLine, strings.ToLower(field))
		}
	}
}

func TestALineLeavesOutWhatIsNotFilledAndSaysForeverInsteadOfALength(t *testing.T) {
	h := newHandler(slog.LevelDebug)
	o := observe.Slog(slog.New(h))
	o.Observe(observe.Event{Kind: observe.Lost})
	record := (*h.records)[0]
	require.Zero(t, record.NumAttrs())
	require.Equal(t, slog.LevelWarn, record.Level)
	require.NotNil(t, (*h.asked)[0])
	require.NotNil(t, (*h.contexts)[0])

	o.Observe(observe.Event{Kind: observe.Granted, Lease: berth.Forever})
	require.Equal(t, map[string]any{"forever": true}, line((*h.records)[1]))
}

func TestEveryKindIsWrittenAtItsLevelAndNoneBelowTheLoggers(t *testing.T) {
	for _, enabled := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		h := newHandler(enabled)
		o := observe.Slog(slog.New(h))
		var want, got []string
		for _, kind := range observe.Kinds() {
			o.Observe(observe.Event{Kind: kind})
			if kind.Level() >= enabled {
				want = append(want, kind.Level().String()+" "+string(kind))
			}
		}
		for _, record := range *h.records {
			got = append(got, record.Level.String()+" "+record.Message)
		}
		require.Equal(t, want, got)
	}
}

// Owners and resources are free bytes: the line stays valid JSON.
func TestFreeBytesAreWrittenAsValidJSON(t *testing.T) {
	var zapped, slogged bytes.Buffer
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	observe.Multi(
		observe.Slog(zaplog.New(zap.New(zapcore.NewCore(encoder, zapcore.AddSync(&zapped), zapcore.DebugLevel)))),
		observe.Slog(slog.New(slog.NewJSONHandler(&slogged, &slog.HandlerOptions{Level: slog.LevelDebug}))),
	).Observe(observe.Event{Kind: observe.Granted, Owner: "a\xff\n\"", Resource: "\x00"})

	for _, out := range []*bytes.Buffer{&zapped, &slogged} {
		var line map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &line))
		require.Equal(t, "a\ufffd\n\"", line["owner"])
		require.Equal(t, "\x00", line["resource"])
		require.Equal(t, "berth", line["logger"], "both say alike whose line it is")
		require.Equal(t, "granted", line["msg"])
	}
}

// Whoever passes a group has all of Berth's in it.
func TestSlogKeepsToTheGroupOfTheLogger(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil)).With("name", "service").WithGroup("berth")
	observe.Slog(logger).Observe(observe.Event{Kind: observe.Lost, Name: "gpu"})
	require.Equal(t, "level=WARN msg=lost name=service berth.logger=berth berth.name=gpu\n", out.String())
}

func TestALevelThatIsOffCostsNothing(t *testing.T) {
	for name, o := range map[string]observe.Observer{
		"slog": observe.Slog(slog.New(slog.NewJSONHandler(io.Discard, nil))),
		"zap":  observe.Slog(zaplog.New(zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(io.Discard), zapcore.InfoLevel)))),
	} {
		event := fullEvent()
		require.Zero(t, testing.AllocsPerRun(100, func() { o.Observe(event) }), name)
	}
}
