package engine

import (
	"crypto/rand"
	"encoding/base64"
	"time"

	"github.com/berth-go/berth"
)

// Record is what the server keeps of a claim; internal/line writes it as text.
type Record struct {
	Weight  int
	Wait    time.Duration // wait lease
	Lease   time.Duration // berth.Forever for none
	MaxHold time.Duration // 0 = none
	NoRenew bool
	Phase   byte // w, g, h, d: see scripts/state/record.lua
	// ZombieAfter is that of its node, where the node is in a swarm and the hold has no
	// end; else 0.
	ZombieAfter time.Duration
	Priority    int
	Ticket      int64
	Fence       int64
	Granted     time.Time // by the server's clock; zero while it waits
	Limit       time.Time // the end of its maximum hold; zero = none or not yet running
	Node        string
	Owner       string
	Label       string
	Meta        map[string]string
	Extra       string // what only the primitive reads, "" for none

	// Secret is what a push of the grant proves itself by; "" for none, and until
	// Claim.Standing has drawn it. No listing shows it.
	Secret string
}

// newSecret draws 64 bits, as text without spaces.
func newSecret() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// LeaseMillis is the lease as the scripts count it: 0 is forever.
func (r *Record) LeaseMillis() int64 {
	if r.Lease == berth.Forever {
		return 0
	}
	return r.Lease.Milliseconds()
}
