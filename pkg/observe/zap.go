package observe

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/berth-go/berth"
)

// Zap returns an Observer that writes each event as one line to the logger,
// under the name "berth", at the level of its kind ([Kind.Level]). A nil logger
// writes nothing.
//
// The message is the kind, the time that of the event. The fields are named as
// those of [Event], in lower case; zero ones are left out, an error is "error",
// Attrs is an object "attrs", and a lease without end is "forever": true. A
// field of free bytes (owner, resource, detail) that is not UTF-8 is written as
// the logger's encoder does it.
func Zap(logger *zap.Logger) Observer {
	if logger == nil {
		return nop{}
	}
	// The caller would always be the line below.
	return zapObserver{logger.Named("berth").WithOptions(zap.WithCaller(false))}
}

type zapObserver struct{ logger *zap.Logger }

func (z zapObserver) Observe(e Event) {
	entry := z.logger.Check(e.Kind.Level(), string(e.Kind))
	if entry == nil { // the level is off: no work
		return
	}
	if !e.At.IsZero() {
		entry.Time = e.At
	}
	entry.Write(fields(e)...)
}

// fields are the fields of e that are filled, in the order of the struct.
func fields(e Event) []zap.Field {
	list := make([]zap.Field, 0, 20)
	text := func(key, value string) {
		if value != "" {
			list = append(list, zap.String(key, value))
		}
	}
	number := func(key string, value int64) {
		if value != 0 {
			list = append(list, zap.Int64(key, value))
		}
	}
	text("primitive", e.Primitive)
	text("namespace", e.Namespace)
	text("name", e.Name)
	text("claim", e.Claim)
	text("node", e.Node)
	text("owner", e.Owner)
	number("fence", e.Fence)
	list = appendDurations(list, e)
	number("ahead", int64(e.Ahead))
	number("capacity", int64(e.Capacity))
	number("weight", int64(e.Weight))
	number("count", int64(e.Count))
	text("resource", e.Resource)
	text("detail", e.Detail)
	text("reason", string(e.Reason))
	if e.Err != nil {
		list = append(list, zap.Error(e.Err))
	}
	if len(e.Attrs) > 0 {
		list = append(list, zap.Any("attrs", e.Attrs))
	}
	return list
}

func appendDurations(list []zapcore.Field, e Event) []zapcore.Field {
	if e.Waited != 0 {
		list = append(list, zap.Duration("waited", e.Waited))
	}
	if e.Held != 0 {
		list = append(list, zap.Duration("held", e.Held))
	}
	switch e.Lease {
	case 0:
	case berth.Forever: // as a number it would be 292 years
		list = append(list, zap.Bool("forever", true))
	default:
		list = append(list, zap.Duration("lease", e.Lease))
	}
	if e.Left != 0 {
		list = append(list, zap.Duration("left", e.Left))
	}
	if e.Silent != 0 {
		list = append(list, zap.Duration("silent", e.Silent))
	}
	return list
}
