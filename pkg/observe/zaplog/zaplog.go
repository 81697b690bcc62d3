// Package zaplog makes Berth log to a zap logger:
//
//	n, err := node.New(redis, node.Config{Logger: zaplog.New(logger)})
//
// Programs that do not import this package do not link zap.
package zaplog

import (
	"context"
	"log/slog"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// New returns a slog logger that writes to logger, or nil if logger is nil. A line has the time of its record; the record's
// context is not used, and a group becomes a zap namespace. The attribute "logger" of a record's logger, which all of
// Berth's records have, becomes the name of the zap logger. The logger's encoder decides how text is written that is not
// UTF-8.
func New(logger *zap.Logger) *slog.Logger {
	if logger == nil {
		return nil
	}
	// The caller would always be the line below.
	return slog.New(handler{logger.WithOptions(zap.WithCaller(false))})
}

type handler struct{ logger *zap.Logger }

// Enabled reports whether the logger writes lines of a level.
func (h handler) Enabled(_ context.Context, level slog.Level) bool {
	return h.logger.Core().Enabled(levelOf(level))
}

// Handle writes a record.
func (h handler) Handle(_ context.Context, record slog.Record) error {
	entry := h.logger.Check(levelOf(record.Level), record.Message)
	if entry == nil { // the level is off
		return nil
	}
	if !record.Time.IsZero() {
		entry.Time = record.Time
	}
	fields := make([]zap.Field, 0, record.NumAttrs())
	record.Attrs(func(attr slog.Attr) bool {
		fields = append(fields, fieldOf(attr))
		return true
	})
	entry.Write(fields...)
	return nil
}

// WithAttrs returns a handler that writes the attributes with each record.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	logger := h.logger
	for _, attr := range attrs {
		if attr.Key == "logger" {
			logger = logger.Named(attr.Value.String())
		} else {
			logger = logger.With(fieldOf(attr))
		}
	}
	return handler{logger}
}

// WithGroup returns a handler that writes what follows in a namespace.
func (h handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return handler{h.logger.With(zap.Namespace(name))}
}

func levelOf(level slog.Level) zapcore.Level {
	switch {
	case level >= slog.LevelError:
		return zapcore.ErrorLevel
	case level >= slog.LevelWarn:
		return zapcore.WarnLevel
	case level >= slog.LevelInfo:
		return zapcore.InfoLevel
	}
	return zapcore.DebugLevel
}

func fieldOf(attr slog.Attr) zap.Field {
	switch value := attr.Value.Resolve(); value.Kind() {
	case slog.KindString:
		return zap.String(attr.Key, value.String())
	case slog.KindInt64:
		return zap.Int64(attr.Key, value.Int64())
	case slog.KindDuration:
		return zap.Duration(attr.Key, value.Duration())
	case slog.KindBool:
		return zap.Bool(attr.Key, value.Bool())
	default: // an error, a number of another kind, what the caller has
		return zap.Any(attr.Key, value.Any())
	}
}
