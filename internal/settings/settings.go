// Package settings holds the rules for the values that all primitives take, so
// that each is checked, and refused with the same words, in one place.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

const (
	// MinLease is the shortest lease: below it, a renewal could not come in
	// time over a network.
	MinLease = 20 * time.Millisecond
	// Longest is the longest duration but berth.Forever: from now on it ends before what the scripts
	// take for a moment has a digit more.
	Longest = 200 * 365 * 24 * time.Hour
	// MaxText bounds an owner and a label, in bytes.
	MaxText = state.MaxText
	// MaxMeta bounds the keys and values of metadata together, in bytes.
	MaxMeta = state.MaxMeta
)

// Common are the settings of every client.
type Common struct {
	Namespace          string
	Label              string
	Lease              time.Duration
	Linger             time.Duration
	CallTimeout        time.Duration
	CleanupTimeout     time.Duration
	WarnHeldLongerThan time.Duration
	Retry              berth.Retry
	KeepConnections    bool
}

// WithDefaults fills what is zero.
func (c Common) WithDefaults() Common {
	if c.Namespace == "" {
		c.Namespace = keyspace.DefaultNamespace
	}
	if c.Label == "" {
		c.Label = defaultLabel()
	}
	fill(&c.Lease, 10*time.Second)
	fill(&c.Linger, time.Minute)
	fill(&c.CallTimeout, 3*time.Second)
	fill(&c.CleanupTimeout, 2*time.Second)
	fill(&c.WarnHeldLongerThan, 5*time.Minute)
	return c
}

func fill(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// defaultLabel tells processes apart in a listing.
func defaultLabel() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	label := fmt.Sprintf("%s/%s/%d", host, filepath.Base(os.Args[0]), os.Getpid())
	return label[:min(len(label), MaxText)]
}

// Validate returns a *berth.ConfigError for the first value that cannot be.
func (c Common) Validate() error {
	if err := keyspace.CheckNamespace(c.Namespace); err != nil {
		return err
	}
	if err := Text("Label", c.Label); err != nil {
		return err
	}
	if err := WaitLease(c.Lease); err != nil {
		return err
	}
	if err := Duration("Linger", c.Linger); err != nil {
		return err
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"Linger", c.Linger}, {"CallTimeout", c.CallTimeout}, {"CleanupTimeout", c.CleanupTimeout}} {
		if f.value < 0 {
			return berth.Invalid(f.name, "%s is negative", f.value)
		}
	}
	return scriptkit.Options{Retry: c.Retry}.Validate()
}

// Claim has the options that claims of all kinds share.
type Claim struct {
	Priority                           int
	Lease, MaxHold, MaxWait, WantAfter time.Duration
	Meta                               map[string]string
}

// Validate returns a *berth.ConfigError for the first value that cannot be. A zero Lease is the default.
func (c Claim) Validate() error {
	if c.MaxWait < 0 {
		return berth.Invalid("MaxWait", "%s is negative", c.MaxWait)
	}
	return cmp.Or(
		Priority("Priority", c.Priority), MaxHold("Lease", c.Lease), MaxHold("MaxHold", c.MaxHold),
		WantAfter("WantAfter", c.WantAfter), Meta("Meta", c.Meta),
	)
}

// Function refuses a Do without a function.
func Function(given bool) error {
	if !given {
		return berth.Invalid("f", "there is no function to run")
	}
	return nil
}

// Duration refuses a duration that the server cannot be told: it counts in
// whole milliseconds.
func Duration(field string, d time.Duration) error {
	switch {
	case d < 0:
		return berth.Invalid(field, "%s is negative", d)
	case d != berth.Forever && d%time.Millisecond != 0:
		return berth.Invalid(field, "%s is not a whole number of milliseconds", d)
	case d != berth.Forever && d > Longest:
		return berth.Invalid(field, "%s is above %s, and not berth.Forever", d, Longest)
	}
	return nil
}

// Lease refuses a lease that cannot be kept.
func Lease(field string, d time.Duration) error {
	if err := Duration(field, d); err != nil {
		return err
	}
	if d < MinLease {
		return berth.Invalid(field, "%s is below the shortest lease, %s", d, MinLease)
	}
	return nil
}

// MaxHold refuses a bound of a hold that cannot be kept; 0 is none.
func MaxHold(field string, d time.Duration) error {
	if err := Duration(field, d); err != nil {
		return err
	}
	if d != 0 && d < MinLease {
		return berth.Invalid(field, "%s is below the shortest lease, %s", d, MinLease)
	}
	return nil
}

// WaitLease refuses a wait lease that cannot be.
func WaitLease(d time.Duration) error {
	if d == berth.Forever {
		return berth.Invalid("Lease", "the wait lease must end; a call may ask for berth.Forever")
	}
	return Lease("Lease", d)
}

// Text refuses a text that is too long to be kept in every record.
func Text(field, text string) error {
	if len(text) > MaxText {
		return berth.Invalid(field, "%d bytes are more than %d", len(text), MaxText)
	}
	return nil
}

// MetaKey is the pair of a claim's metadata that is Berth's own, and MetaLeader is its value for a claim of package leader: by it
// a listing tells an election from a plain lock.
const (
	MetaKey    = "berth"
	MetaLeader = "leader"
)

// Meta refuses metadata that is too large.
func Meta(field string, meta map[string]string) error {
	size := 0
	for key, value := range meta {
		size += len(key) + len(value)
	}
	if size > MaxMeta {
		return berth.Invalid(field, "%d bytes are more than %d", size, MaxMeta)
	}
	return nil
}

// Priority refuses a priority outside -128 to 127.
func Priority(field string, priority int) error {
	if priority < -128 || priority > 127 {
		return berth.Invalid(field, "%d is not within -128 to 127", priority)
	}
	return nil
}

// WantAfter refuses a time after which a waiting claim cannot ask for what others hold; 0 is never.
func WantAfter(field string, d time.Duration) error {
	if d != 0 && d < MinLease {
		return berth.Invalid(field, "%s is below %s", d, MinLease)
	}
	return nil
}

// Within puts what holds a field before the name of the field of a *berth.ConfigError.
func Within(holder string, err error) error {
	var bad *berth.ConfigError
	if !errors.As(err, &bad) {
		return err
	}
	return berth.Invalid(holder+"."+bad.Field, "%s", bad.Problem)
}
