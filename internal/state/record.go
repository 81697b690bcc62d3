package state

import (
	"cmp"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
)

// Record is what the server keeps of a claim.
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
	Reach       time.Duration // of a hold with an end: the longer lease by which its deadline was set, 0 for none
	Priority    int
	Ticket      int64
	Fence       int64
	Place       string    // of a claim that waits: where it stands, see scripts/line/place.lua; "" where nobody has said
	Heard       time.Time // of a claim that waits: when its node was last heard of, by the server's clock
	Granted     time.Time // by the server's clock; zero while it waits
	Limit       time.Time // the end of its maximum hold; zero = none or not yet running
	Wanted      time.Time // since when somebody wants the hold back, by the server's clock; zero = nobody
	Node        string
	Owner       string
	Label       string
	Meta        map[string]string
	Extra       string // what only the primitive reads, "" for none

	// Secret is what a push of the grant proves itself by; "" for none, and until the
	// engine has drawn it. No listing shows it.
	Secret string
}

// LeaseMillis is the lease as the scripts count it: 0 is forever.
func (r *Record) LeaseMillis() int64 {
	if r.Lease == berth.Forever {
		return 0
	}
	return r.Lease.Milliseconds()
}

// WantedFor is for how long somebody has wanted the hold back: at least 1 ms; 0 for nobody.
func (r *Record) WantedFor(now time.Time) time.Duration {
	if r.Wanted.IsZero() {
		return 0
	}
	return max(now.Sub(r.Wanted), time.Millisecond)
}

// Alive is until when a claim that waits lives.
func (r *Record) Alive() time.Time { return r.Heard.Add(r.Wait) }

// Text writes a record as scripts/state/record.lua reads it.
func Text(r *Record) string {
	b := append(make([]byte, 0, 160), r.Phase)
	if number := max(r.ZombieAfter, r.Reach); number > 0 {
		b = strconv.AppendInt(b, number.Milliseconds(), 10)
	}
	if !r.Wanted.IsZero() {
		b = strconv.AppendInt(append(b, '!'), millis(r.Wanted), 10)
	}
	b = append(append(append(b, ' '), r.Node...), ' ')
	b = append(strconv.AppendInt(b, r.Ticket, 10), ' ')
	granted := r.Granted
	if r.Phase == 'w' {
		b, granted = append(b, cmp.Or(r.Place, "0")...), r.Heard
	} else {
		b = strconv.AppendInt(b, r.Fence, 10)
	}
	for _, t := range []time.Time{granted, r.Limit} {
		b = strconv.AppendInt(append(b, ' '), millis(t), 10)
	}
	b = append(b, ' ')
	return string(appendTerms(b, r))
}

// FixedTerms are the part of the record that scripts hand on. They change it only where an entry
// takes over the terms of the outermost one.
func FixedTerms(r *Record) string { return string(appendTerms(make([]byte, 0, 96), r)) }

func appendTerms(b []byte, r *Record) []byte {
	kind := byte('r')
	if r.NoRenew {
		kind = 'f'
	}
	b = append(strconv.AppendInt(b, int64(r.Weight), 10), ' ')
	b = append(b, cmp.Or(r.Secret, "-")...)
	b = append(b, ' ', kind, ' ')
	for _, n := range []int64{r.Wait.Milliseconds(), r.LeaseMillis(), r.MaxHold.Milliseconds(), int64(r.Priority)} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	b = appendText(b, r.Owner)
	b = appendText(b, r.Label)
	b = appendText(b, packMeta(r.Meta))
	if r.Extra != "" {
		b = appendText(b, r.Extra)
	}
	return b
}

// ReadRecord is ParseRecord for a listing of a name: it refuses ids that are not Berth's.
func ReadRecord(name, id, text string) (Record, error) {
	record, err := ParseRecord(text)
	switch {
	case !idForm.MatchString(id):
		err = errors.New("its id is not one of Berth's")
	case err == nil && !idForm.MatchString(record.Node):
		err = fmt.Errorf("its node %q is not one of Berth's", Brief(record.Node))
	}
	if err != nil {
		return Record{}, fmt.Errorf("berth: claim %q of %q is %w: %w", Brief(id), name, ErrDamaged, err)
	}
	return record, nil
}

// ParseRecord reads what Text, or a script, wrote, but for the secret, which no
// listing shows.
func ParseRecord(text string) (Record, error) {
	if len(text) > MaxStored {
		return Record{}, damaged("record")
	}
	phase, rest, _ := strings.Cut(text, " ")
	phase, since, wanted := strings.Cut(phase, "!")
	node, rest, _ := strings.Cut(rest, " ")
	words := append([]string{phase}, strings.SplitN(rest, " ", 12)...)
	if len(words) != 13 || words[0] == "" || words[6] == "" || len(words[7]) != 1 {
		return Record{}, damaged("record")
	}
	var n [12]int64
	var err error
	for i := range n {
		word := words[i]
		if i == 0 {
			word = word[1:]
		}
		if i == 6 || i == 7 || i == 0 && word == "" {
			continue
		}
		if i == 2 && words[0][0] == 'w' {
			continue // where it stands
		}
		if n[i], err = strconv.ParseInt(word, 10, 64); err != nil {
			return Record{}, damaged("record")
		}
	}
	moment := int64(0)
	if wanted {
		if moment, err = strconv.ParseInt(since, 10, 64); err != nil {
			return Record{}, damaged("record")
		}
	}
	texts, err := unpackTexts(words[12])
	if err != nil || len(texts) < 3 || max(len(texts[0]), len(texts[1])) > MaxText {
		return Record{}, damaged("texts of a record")
	}
	meta, err := unpackMeta(texts[2])
	if err != nil {
		return Record{}, err
	}
	r := Record{
		Phase: words[0][0], ZombieAfter: Millis(n[0]), Ticket: n[1], Fence: n[2], Granted: Instant(n[3]), Limit: Instant(n[4]), Wanted: Instant(moment),
		Weight: int(n[5]), NoRenew: words[7] == "f", Wait: Millis(n[8]), Lease: Millis(n[9]), MaxHold: Millis(n[10]),
		Priority: int(n[11]), Node: node, Owner: texts[0], Label: texts[1], Meta: meta,
	}
	if len(texts) > 3 {
		r.Extra = texts[3]
	}
	if r.Phase == 'w' {
		r.Heard, r.Granted = r.Granted, time.Time{}
		if words[2] != "0" {
			r.Place = words[2]
		}
	}
	if n[9] == 0 {
		r.Lease = berth.Forever
	} else {
		r.Reach, r.ZombieAfter = r.ZombieAfter, 0
	}
	return r, nil
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// appendText appends a length-prefixed text.
func appendText(b []byte, text string) []byte {
	b = append(strconv.AppendInt(b, int64(len(text)), 10), ':')
	return append(b, text...)
}

// cutText takes a length-prefixed text off the front.
func cutText(packed string) (text, rest string, err error) {
	size, after, found := strings.Cut(packed, ":")
	n, err := strconv.Atoi(size)
	if !found || err != nil || n < 0 || n > len(after) {
		return "", "", damaged("text")
	}
	return after[:n], after[n:], nil
}

func unpackTexts(packed string) ([]string, error) {
	var texts []string
	for packed != "" {
		text, rest, err := cutText(packed)
		if err != nil {
			return nil, err
		}
		texts, packed = append(texts, text), rest
	}
	return texts, nil
}

// packMeta writes keys and values in turn, sorted so that a replay is equal.
func packMeta(meta map[string]string) string {
	if len(meta) == 0 {
		return ""
	}
	keys := make([]string, 0, len(meta))
	for key := range meta {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	var b []byte
	for _, key := range keys {
		b = appendText(appendText(b, key), meta[key])
	}
	return string(b)
}

func unpackMeta(packed string) (map[string]string, error) {
	texts, err := unpackTexts(packed)
	if err != nil || len(texts)%2 != 0 {
		return nil, damaged("metadata of a record")
	}
	if len(texts) == 0 {
		return nil, nil
	}
	meta, size := make(map[string]string, len(texts)/2), 0
	for i := 0; i < len(texts); i += 2 {
		meta[texts[i]], size = texts[i+1], size+len(texts[i])+len(texts[i+1])
	}
	if size > MaxMeta {
		return nil, damaged("metadata of a record")
	}
	return meta, nil
}
