package observe

import (
	"log/slog"
	"math"
	"slices"
	"strconv"

	"github.com/berth-go/berth"
)

// Sample returns an Observer that passes on to o a share, 0 (none) to 1 (all), of the events of
// the given kinds, and every event of all other kinds. Without kinds, Sample thins the kinds of
// level debug ([Kind.Level]), so that all failures pass.
//
// The choice depends on the claim, not on chance: of one claim either all events of the given
// kinds pass or none, in every process and with every Sample. A larger share includes the
// claims of a smaller one. For an event without a claim the choice depends on its kind, name
// and time.
//
// Sample returns a *[berth.ConfigError] for the fields "observer" (nil), "share" (not 0 to 1)
// and "kinds" (not one of [Kinds]).
func Sample(o Observer, share float64, kinds ...Kind) (Observer, error) {
	if o == nil {
		return nil, berth.Invalid("observer", "must not be nil")
	}
	if share < 0 || share > 1 || math.IsNaN(share) {
		return nil, berth.Invalid("share", "must be 0 to 1, is %v", share)
	}
	all := Kinds()
	thinned := make(map[Kind]bool, len(kinds))
	for _, kind := range kinds {
		if !slices.Contains(all, kind) {
			return nil, berth.Invalid("kinds", "must be kinds of this package, has %q", kind)
		}
		thinned[kind] = true
	}
	if len(kinds) == 0 {
		for _, kind := range all {
			thinned[kind] = kind.Level() == slog.LevelDebug
		}
	}
	return &sampler{to: o, share: share, thinned: thinned}, nil
}

// sampler is immutable.
type sampler struct {
	to      Observer
	share   float64
	thinned map[Kind]bool
}

func (s *sampler) Observe(e Event) {
	if !s.thinned[e.Kind] || position(e) < s.share {
		s.to.Observe(e)
	}
}

// position returns a number in [0, 1) for an event, which passes if the number is below the
// share.
func position(e Event) float64 {
	text := e.Claim
	if text == "" {
		text = string(e.Kind) + " " + e.Name + " " + strconv.FormatInt(e.At.UnixNano(), 10)
	}
	// The upper 53 bits are what a float64 can keep.
	return math.Ldexp(float64(hash(text)>>11), -53)
}

// hash is FNV-1a with the last step of MurmurHash3. Claim ids that follow each
// other differ in their last characters only, which FNV alone does not carry
// into the upper bits. It has no seed (so hash/maphash will not do), because a
// claim may be resumed in another process.
func hash(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
