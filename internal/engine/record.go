package engine

import (
	"crypto/rand"
	"encoding/base64"

	"github.com/berth-go/berth/internal/state"
)

// Record is what the server keeps of a claim.
type Record = state.Record

// newSecret draws 64 bits, as text without spaces.
func newSecret() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}
