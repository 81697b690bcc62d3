package observe_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
)

// fullEvent has every field filled.
func fullEvent() observe.Event {
	return observe.Event{
		Kind:      observe.Granted,
		Primitive: "sem",
		Namespace: "berth",
		Name:      "gpu",
		Claim:     "node.xid",
		Node:      "node",
		Owner:     "me",
		Fence:     1 << 60,
		Waited:    time.Second,
		Held:      2 * time.Second,
		Lease:     10 * time.Second,
		Left:      9 * time.Second,
		Silent:    4 * time.Second,
		Ahead:     3,
		Capacity:  4,
		Weight:    2,
		Count:     7,
		Resource:  "proxy-1",
		Detail:    "semaphore_acquire",
		Reason:    berth.ReasonFull,
		Err:       errors.New("no answer"),
		At:        time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		Attrs:     map[string]any{"request": "r-1"},
	}
}

func TestZapWritesEveryFilledField(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	event := fullEvent()
	observe.Zap(zap.New(core, zap.AddCaller())).Observe(event)

	require.Equal(t, 1, logs.Len())
	entry := logs.All()[0]
	require.Equal(t, "berth", entry.LoggerName)
	require.Equal(t, "granted", entry.Message)
	require.Equal(t, zapcore.DebugLevel, entry.Level)
	require.Equal(t, event.At, entry.Time)
	require.False(t, entry.Caller.Defined, "the caller would always be Zap itself")
	require.Equal(t, map[string]any{
		"primitive": "sem",
		"namespace": "berth",
		"name":      "gpu",
		"claim":     "node.xid",
		"node":      "node",
		"owner":     "me",
		"fence":     int64(1 << 60),
		"waited":    time.Second,
		"held":      2 * time.Second,
		"lease":     10 * time.Second,
		"left":      9 * time.Second,
		"silent":    4 * time.Second,
		"ahead":     int64(3),
		"capacity":  int64(4),
		"weight":    int64(2),
		"count":     int64(7),
		"resource":  "proxy-1",
		"detail":    "semaphore_acquire",
		"reason":    "full",
		"error":     "no answer",
		"attrs":     map[string]any{"request": "r-1"},
	}, entry.ContextMap())
}

// A field that is added to Event must not be forgotten in Zap.
func TestZapKnowsEveryFieldOfAnEvent(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	observe.Zap(zap.New(core)).Observe(fullEvent())
	written := logs.All()[0].ContextMap()

	elsewhere := map[string]string{"Kind": "the message", "At": "the time", "Err": "error"}
	for i := range reflect.TypeFor[observe.Event]().NumField() {
		field := reflect.TypeFor[observe.Event]().Field(i).Name
		require.False(t, reflect.ValueOf(fullEvent()).Field(i).IsZero(), "fullEvent lacks %s", field)
		if elsewhere[field] == "" {
			require.Contains(t, written, strings.ToLower(field))
		}
	}
}

func TestZapLeavesOutWhatIsNotFilled(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	start := time.Now()
	observe.Zap(zap.New(core)).Observe(observe.Event{Kind: observe.Lost})

	entry := logs.All()[0]
	require.Empty(t, entry.Context)
	require.Equal(t, zapcore.WarnLevel, entry.Level)
	require.WithinRange(t, entry.Time, start, time.Now())
}

func TestZapSaysForeverInsteadOfALength(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	observe.Zap(zap.New(core)).Observe(observe.Event{Kind: observe.Granted, Lease: berth.Forever})
	require.Equal(t, map[string]any{"forever": true}, logs.All()[0].ContextMap())
}

func TestZapWritesEveryKindAtItsLevelAndNoneBelowTheLoggers(t *testing.T) {
	for _, enabled := range []zapcore.Level{zapcore.DebugLevel, zapcore.InfoLevel, zapcore.WarnLevel} {
		core, logs := observer.New(enabled)
		o := observe.Zap(zap.New(core))
		var want []string
		for _, kind := range observe.Kinds() {
			o.Observe(observe.Event{Kind: kind})
			if kind.Level() >= enabled {
				want = append(want, kind.Level().String()+" "+string(kind))
			}
		}
		var got []string
		for _, entry := range logs.All() {
			got = append(got, entry.Level.String()+" "+entry.Message)
		}
		require.Equal(t, want, got)
	}
}

// Owners and resources are free bytes: the line stays valid JSON.
func TestZapWritesFreeBytesAsValidJSON(t *testing.T) {
	var out bytes.Buffer
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	logger := zap.New(zapcore.NewCore(encoder, zapcore.AddSync(&out), zapcore.DebugLevel))
	observe.Zap(logger).Observe(observe.Event{Kind: observe.Granted, Owner: "a\xff\n\"", Resource: "\x00"})

	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "a\ufffd\n\"", line["owner"])
	require.Equal(t, "\x00", line["resource"])
}
