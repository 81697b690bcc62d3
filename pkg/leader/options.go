package leader

import (
	"errors"
	"time"

	"github.com/berth-go/berth/pkg/qlock"
)

// ErrWanted is why the context of f ended where somebody has asked for leadership back: an operator, a
// drain, or a candidate with WantAfter. The process leads until f returns.
var ErrWanted = errors.New("berth: leadership is wanted back")

// Options say how a process stands for election. A zero field is taken from Config.Defaults, then from the
// default named here. A nil pointer leaves all fields zero.
type Options struct {
	// Priority moves the candidate ahead of lower ones in line: -128 to 127. Default 0.
	Priority int
	// WantAfter is how long the candidate, once it stands first, waits until it asks for leadership back, and asks
	// again after each further such time: at least 20 ms, or berth.Forever for never. Default never.
	WantAfter time.Duration
	// Meta is stored with the candidate and shown by Current and in listings: up to 16 KiB. Default none.
	Meta map[string]string
	// KeepWhenWanted leaves f its context when leadership is wanted back. f hears of that by Client.Wanted,
	// finishes its work and returns nil. Default false: the context ends with ErrWanted.
	KeepWhenWanted bool
}

// lock are the options of the candidate's claim.
func (o *Options) lock() *qlock.LockOptions {
	return &qlock.LockOptions{Priority: o.Priority, WantAfter: o.WantAfter, Meta: o.Meta}
}
