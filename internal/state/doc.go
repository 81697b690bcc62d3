// Package state is Go's half of what scripts/state and its neighbours are: it reads every text that
// the scripts store, and writes those that Go sends. It only parses, and knows neither Redis nor keys.
//
// A text that Berth cannot have written is [ErrDamaged]. Of a name with a number that this release does
// not know nothing is to be interpreted; see [Incompatible].
package state

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/berth-go/berth"
)

// ErrDamaged says that what is stored as a claim, or as counts, cannot be read, or is none of
// Berth's. Listings go on after it.
var ErrDamaged = errors.New("damaged")

// damaged is the error of a text.
func damaged(what string) error { return fmt.Errorf("berth: %w %s", ErrDamaged, what) }

// The numbers of names that this release knows; see scripts/state/feature.lua.
const (
	oldestFormat = 3
	newestFormat = 3
)

// FormatError is the error of a name with a number that this release does not know, 0 for values that are
// not Berth's.
type FormatError struct {
	Name      string
	Number    int64
	Key, Type string // the Redis key of such values and what it holds, "" where that is not known
}

func (e *FormatError) Error() string {
	switch {
	case e.Number == 0 && e.Key != "":
		return fmt.Sprintf("berth: the state of %q is %v: the key %q holds a %s that is not Berth's", e.Name, ErrDamaged, e.Key, e.Type)
	case e.Number == 0:
		return fmt.Sprintf("berth: the state of %q is %v: it holds something in the place of its counts that is not Berth's", e.Name, ErrDamaged)
	case e.Number < oldestFormat:
		return fmt.Sprintf("%v: the state of %q has format %d, of a Berth from before its first release: "+
			"let what holds it end and delete its Redis keys, or use another namespace", berth.ErrIncompatible, e.Name, e.Number)
	}
	return fmt.Sprintf("%v: the state of %q has format %d, which this release does not know", berth.ErrIncompatible, e.Name, e.Number)
}

// Unwrap is berth.ErrIncompatible or [ErrDamaged].
func (e *FormatError) Unwrap() error {
	if e.Number == 0 {
		return ErrDamaged
	}
	return berth.ErrIncompatible
}

// Incompatible is the error of a name with a number; see [FormatError].
func Incompatible(name string, number int64) error { return &FormatError{Name: name, Number: number} }

// Foreign is the error of a name of which a Redis key holds something of a type that is not Berth's.
func Foreign(name, key, kind string) error { return &FormatError{Name: name, Key: key, Type: kind} }

// idForm matches all ids of claims and nodes. A stored id that does not match is not passed
// on: code that prints ids relies on that.
var idForm = regexp.MustCompile(`^[0-9A-Za-z._-]{1,64}$`)

// Millis is a number of milliseconds. More of them than a Duration carries, 292 years, are
// berth.Forever.
func Millis(n int64) time.Duration {
	if n > int64(berth.Forever/time.Millisecond) {
		return berth.Forever
	}
	return time.Duration(n) * time.Millisecond
}

// Instant is a moment of the server's clock (ms), zero for 0.
func Instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// numbers reads the words of a text that an expression has matched. An empty one is 0.
func numbers(words []string, into ...*int64) bool {
	for i, n := range into {
		var err error
		if *n, err = strconv.ParseInt(cmp.Or(words[i], "0"), 10, 64); err != nil {
			return false // above 63 bits
		}
	}
	return true
}
