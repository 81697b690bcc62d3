package observe

import (
	"context"
	"log/slog"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/berth-go/berth"
)

// Logger is the type of Config.Logger of every client: a *[slog.Logger] or a
// *zap.Logger. The client writes each event to it, as [Slog] and [Zap] do, but of what an
// outage does to claims ([Unavailable], [Failed], [Lost], [ReleaseFailed], [CleanupFailed])
// the first event of a kind, and then one line a minute whose count says how many followed.
// A nil pointer of either type writes nothing. Any other type is refused by New with a
// *[berth.ConfigError] for the field "Logger".
type Logger any

// Slog returns an Observer that writes each event as one record to the logger, at
// the level of its kind ([Kind.Level]). A nil logger writes nothing. A level that
// the logger's handler has off costs no work.
//
// The message is the kind, the time is Event.At, and the handler gets Event.Context:
// it can take a trace from it. Every record has the attribute "logger": "berth". The
// other attributes have the names of the fields of [Event], in lower case, at the top
// level of the record; to keep them apart from others, pass logger.WithGroup("berth").
// A zero field is left out. Err is the attribute "error", Attrs is one attribute
// "attrs", and a lease without end is "forever": true. A record has no source position.
func Slog(logger *slog.Logger) Observer {
	if logger == nil {
		return nop{}
	}
	return slogObserver{logger.With(slog.String("logger", loggerName)).Handler()}
}

// Zap returns an Observer that writes each event as one line to the logger, under the
// name "berth", at the level of its kind ([Kind.Level]). A nil logger writes nothing. A
// level that the logger has off costs no work.
//
// The message is the kind and the time is Event.At. The fields are the attributes that
// [Slog] writes. An owner, a resource or a detail that is not UTF-8 is written as the
// logger's encoder does it. Event.Context is not used.
func Zap(logger *zap.Logger) Observer {
	if logger == nil {
		return nop{}
	}
	// The caller would always be the line below.
	return zapObserver{logger.Named(loggerName).WithOptions(zap.WithCaller(false))}
}

// loggerName tells Berth's lines from others. Of zap it is the logger's name, which zap writes
// under the key "logger" by default; slog has no such names, so it is an attribute of that key.
const loggerName = "berth"

type slogObserver struct{ handler slog.Handler }

func (s slogObserver) Observe(e Event) {
	ctx, level := e.Context, e.Kind.Level()
	if ctx == nil { // an event that no client has made
		ctx = context.Background()
	}
	if !s.handler.Enabled(ctx, level) {
		return
	}
	record := slog.NewRecord(e.At, level, string(e.Kind), 0)
	var room [mostFields]slog.Attr
	record.AddAttrs(appendFields(room[:0], &e)...)
	_ = s.handler.Handle(ctx, record) // slog.Logger ignores it too
}

type zapObserver struct{ logger *zap.Logger }

func (z zapObserver) Observe(e Event) {
	entry := z.logger.Check(zapLevel(e.Kind.Level()), string(e.Kind))
	if entry == nil { // the level is off
		return
	}
	if !e.At.IsZero() {
		entry.Time = e.At
	}
	var room [mostFields]slog.Attr
	attrs := appendFields(room[:0], &e)
	fields := make([]zap.Field, len(attrs))
	for i, attr := range attrs {
		fields[i] = zapField(attr)
	}
	entry.Write(fields...)
}

func zapLevel(level slog.Level) zapcore.Level {
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

func zapField(attr slog.Attr) zap.Field {
	switch value := attr.Value; value.Kind() {
	case slog.KindString:
		return zap.String(attr.Key, value.String())
	case slog.KindInt64:
		return zap.Int64(attr.Key, value.Int64())
	case slog.KindDuration:
		return zap.Duration(attr.Key, value.Duration())
	case slog.KindBool:
		return zap.Bool(attr.Key, value.Bool())
	default: // the error and the caller's attributes
		return zap.Any(attr.Key, value.Any())
	}
}

// mostFields is how many fields a line can have.
const mostFields = 24

// appendFields appends the fields of e that are filled, in the order of the struct. It is the
// one list of what a line says, whatever writes it.
func appendFields(list []slog.Attr, e *Event) []slog.Attr {
	list = appendText(list, "primitive", e.Primitive)
	list = appendText(list, "namespace", e.Namespace)
	list = appendText(list, "name", e.Name)
	list = appendText(list, "claim", e.Claim)
	list = appendText(list, "node", e.Node)
	list = appendText(list, "owner", e.Owner)
	list = appendNumber(list, "fence", e.Fence)
	if e.WasQueued {
		list = append(list, slog.Bool("wasqueued", true))
	}
	if e.WasHeld {
		list = append(list, slog.Bool("washeld", true))
	}
	list = appendDurations(list, e)
	list = appendNumber(list, "ahead", int64(e.Ahead))
	list = appendNumber(list, "capacity", int64(e.Capacity))
	list = appendNumber(list, "weight", int64(e.Weight))
	list = appendNumber(list, "count", int64(e.Count))
	list = appendText(list, "resource", e.Resource)
	list = appendText(list, "detail", e.Detail)
	list = appendText(list, "reason", string(e.Reason))
	if e.Err != nil {
		list = append(list, slog.Any("error", e.Err))
	}
	if len(e.Attrs) > 0 {
		list = append(list, slog.Any("attrs", e.Attrs))
	}
	return list
}

func appendText(list []slog.Attr, key, value string) []slog.Attr {
	if value == "" {
		return list
	}
	return append(list, slog.String(key, value))
}

func appendNumber(list []slog.Attr, key string, value int64) []slog.Attr {
	if value == 0 {
		return list
	}
	return append(list, slog.Int64(key, value))
}

func appendDuration(list []slog.Attr, key string, value time.Duration) []slog.Attr {
	if value == 0 {
		return list
	}
	return append(list, slog.Duration(key, value))
}

func appendDurations(list []slog.Attr, e *Event) []slog.Attr {
	list = appendDuration(list, "waited", e.Waited)
	list = appendDuration(list, "held", e.Held)
	if e.Lease == berth.Forever { // as a number it would be 292 years
		list = append(list, slog.Bool("forever", true))
	} else {
		list = appendDuration(list, "lease", e.Lease)
	}
	list = appendDuration(list, "left", e.Left)
	list = appendDuration(list, "silent", e.Silent)
	return appendDuration(list, "late", e.Late)
}
