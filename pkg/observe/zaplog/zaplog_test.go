package zaplog_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/berth-go/berth/pkg/observe/zaplog"
)

func TestARecordIsALineOfZap(t *testing.T) {
	core, lines := observer.New(zap.DebugLevel)
	logger := zaplog.New(zap.New(core, zap.AddCaller()))
	failed := errors.New("no answer")
	logger.With("logger", "berth", "host", "h").WithGroup("g").WithGroup("").Warn("lost",
		"text", "a", "number", 7, "fence", int64(1<<60), "attrs", map[string]any{"request": "r-1"}, "lasted", time.Second, "yes", true, "error", failed, "share", math.Pi, slog.Any("late", late("now")))
	require.Equal(t, 1, lines.Len())
	line := lines.All()[0]
	require.Equal(t, "lost", line.Message)
	require.Equal(t, "berth", line.LoggerName)
	require.Equal(t, zapcore.WarnLevel, line.Level)
	require.False(t, line.Caller.Defined)
	require.Equal(t, map[string]any{
		"host": "h",
		"g": map[string]any{
			"text": "a", "fence": int64(1 << 60), "attrs": map[string]any{"request": "r-1"}, "number": int64(7), "lasted": time.Second, "yes": true, "error": "no answer", "share": math.Pi, "late": "now",
		},
	}, line.ContextMap())
}

// late is a value that is made when it is written.
type late string

func (l late) LogValue() slog.Value { return slog.StringValue(string(l)) }

func TestALineHasTheTimeOfItsRecord(t *testing.T) {
	core, lines := observer.New(zap.DebugLevel)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	handler := zaplog.New(zap.New(core)).Handler()
	for _, when := range []time.Time{at, {}} {
		require.NoError(t, handler.Handle(context.Background(), slog.NewRecord(when, slog.LevelInfo, "granted", 0)))
	}
	require.Equal(t, at, lines.All()[0].Time)
	require.False(t, lines.All()[1].Time.IsZero(), "a record without one is of now")
}

func TestALevelThatZapHasOffIsOff(t *testing.T) {
	core, lines := observer.New(zap.WarnLevel)
	logger := zaplog.New(zap.New(core))
	for level, on := range map[slog.Level]bool{slog.LevelDebug: false, slog.LevelInfo: false, slog.LevelWarn: true, slog.LevelError: true, slog.LevelError + 4: true} {
		require.Equal(t, on, logger.Enabled(context.Background(), level), level)
	}
	require.NoError(t, logger.Handler().Handle(context.Background(), slog.NewRecord(time.Now(), slog.LevelInfo, "granted", 0)))
	require.Zero(t, lines.Len())
}

func TestNoLoggerIsNone(t *testing.T) { require.Nil(t, zaplog.New(nil)) }
