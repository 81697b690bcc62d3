package exporter

import (
	"context"
	"time"

	"github.com/berth-go/berth/cmd/berth/internal/app"
)

// late is a source whose server need not be there yet: what watches a server begins before it. Its methods are called one
// after the other.
type late struct {
	app     *app.App
	within  time.Duration
	classes *classes

	conn   *app.Connection // nil: none yet
	source *source
}

func (l *late) connect(ctx context.Context) error {
	c, err := l.app.ConnectWithin(ctx, 0)
	if err != nil {
		return err
	}
	source, err := newSource(c.Redis, c.Namespace, l.within, l.classes)
	if err != nil {
		c.Close()
		return err
	}
	l.conn, l.source = c, source
	return nil
}

// read makes a reading.
func (l *late) read(ctx context.Context) *reading {
	if l.source == nil {
		began := time.Now()
		if err := l.connect(ctx); err != nil {
			return &reading{began: began, took: time.Since(began), problems: []error{err}, refused: turnedAway(err)}
		}
	}
	return l.source.read(ctx)
}

func (l *late) close() {
	if l.conn != nil {
		l.source.close()
		l.conn.Close()
	}
}
