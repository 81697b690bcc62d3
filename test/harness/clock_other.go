//go:build !linux

package harness

import (
	"errors"
	"time"
)

// clock is for Linux alone.
type clock struct{}

func newClock(string) (*clock, error) {
	return nil, errors.New("a server's clock can be set on Linux alone")
}

func (*clock) env() []string     { return nil }
func (*clock) set(time.Duration) {}
func (*clock) remove() error     { return nil }
