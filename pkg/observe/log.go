package observe

import (
	"context"
	"log/slog"
	"time"

	"github.com/berth-go/berth"
)

// Slog returns an Observer that writes each event as one record to the logger, at the level of
// the event's kind ([Kind.Level]). A nil logger writes nothing. A level that the logger's
// handler has disabled costs no work.
//
// The message is the kind, the time is Event.At, and the handler gets Event.Context, from which
// it can take a trace. Every record has the attribute "logger": "berth". The other attributes
// are named like the fields of [Event], in lower case, at the top level of the record; to put
// the attributes into a group, pass logger.WithGroup("berth"). Zero fields are left out. Err is
// the attribute "error", Attrs is one attribute "attrs", and a lease without end is "forever":
// true. A record has no source position.
func Slog(logger *slog.Logger) Observer {
	if logger == nil {
		return nop{}
	}
	return slogObserver{logger.With(slog.String("logger", loggerName)).Handler()}
}

// loggerName tells Berth's lines from others. It is an attribute of the key "logger"; package zaplog makes it the name of
// a zap logger, which zap writes under that key.
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

// mostFields is the maximum number of fields of a line.
const mostFields = 24

// appendFields appends the fields of e that are filled, in the order of the struct. Every
// writer of lines takes its fields from here.
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
