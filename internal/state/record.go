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
	b := make([]byte, 0, 192)
	if r.Phase == 'w' {
		wait := r.Wait.Milliseconds()
		alive := millis(r.Heard) + wait
		elsewhere := r.Place != "" && r.Place != string(fixed(nil, 13, r.Ticket))
		if elsewhere {
			b = append(b, "p "...)
		} else {
			b = append(b, "w "...)
		}
		b = fixed(b, 13, alive, alive-wait/2, r.Ticket)
		if elsewhere {
			b = append(append(b, ' '), r.Place...)
		}
	} else {
		b = append(b, r.Phase)
		if number := max(r.ZombieAfter, r.Reach); number > 0 {
			b = strconv.AppendInt(b, number.Milliseconds(), 10)
		}
		if !r.Wanted.IsZero() {
			b = strconv.AppendInt(append(b, '!'), millis(r.Wanted), 10)
		}
		b = append(fixed(append(b, ' '), 13, r.Ticket), ' ')
		b = append(fixed(b, 16, r.Fence), ' ')
		b = fixed(b, 13, millis(r.Granted), millis(r.Limit))
	}
	b = append(append(append(b, ' '), r.Node...), ' ')
	return string(AppendTerms(b, r))
}

// fixed appends numbers of so many digits, a space between two.
func fixed(b []byte, digits int, numbers ...int64) []byte {
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ' ')
		}
		text := strconv.FormatInt(n, 10)
		b = append(append(b, "0000000000000000"[:max(digits-len(text), 0)]...), text...)
	}
	return b
}

// FixedTerms are the part of the record that scripts hand on. They change it only where an entry
// takes over the terms of the outermost one.
func FixedTerms(r *Record) string { return string(AppendTerms(make([]byte, 0, 96), r)) }

// AppendHeld appends what a record has of the node, the secret and the weight, with a space behind each.
func AppendHeld(b []byte, node string, r *Record) []byte {
	b = append(append(b, node...), ' ')
	b = append(append(b, cmp.Or(r.Secret, "-")...), ' ')
	return append(strconv.AppendInt(b, int64(r.Weight), 10), ' ')
}

// AppendTerms appends the fixed terms.
func AppendTerms(b []byte, r *Record) []byte {
	kind := byte('r')
	if r.NoRenew {
		kind = 'f'
	}
	b = append(append(b, cmp.Or(r.Secret, "-")...), ' ')
	b = append(strconv.AppendInt(b, int64(r.Weight), 10), ' ', kind, ' ')
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

// Waits says of the text of a record that it is that of a claim that waits.
func Waits(text string) bool { return strings.HasPrefix(text, "w") || strings.HasPrefix(text, "p") }

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
	phase, rest, _ := strings.Cut(text, " ")
	phase, since, wanted := strings.Cut(phase, "!")
	if len(text) > MaxStored || phase == "" {
		return Record{}, damaged("record")
	}
	r := Record{Phase: phase[0]}
	begins := 4 // how many words stand before the node
	switch r.Phase {
	case 'w':
		begins = 3
	case 'p':
		r.Phase = 'w'
	}
	const terms = 8
	words := strings.SplitN(rest, " ", begins+1+terms)
	if len(words) != begins+1+terms || words[begins+1] == "" || len(words[begins+3]) != 1 {
		return Record{}, damaged("record")
	}
	r.Node = words[begins]
	var first [4]int64
	var number, moment, weight, wait, lease, most, priority int64
	head, tail := words[:begins], words[begins+2:]
	if r.Phase == 'w' && begins == 4 {
		r.Place, head = words[3], words[:3]
	}
	if !whole(head, &first[0], &first[1], &first[2], &first[3]) || !whole([]string{tail[0], tail[2], tail[3], tail[4], tail[5]}, &weight, &wait, &lease, &most, &priority) ||
		phase[1:] != "" && !whole([]string{phase[1:]}, &number) || wanted && !whole([]string{since}, &moment) {
		return Record{}, damaged("record")
	}
	r.Weight, r.NoRenew, r.Wait, r.Lease, r.MaxHold = int(weight), tail[1] == "f", Millis(wait), Millis(lease), Millis(most)
	r.Priority, r.Wanted = int(priority), Instant(moment)
	if r.Phase == 'w' {
		r.Ticket = first[2]
		r.Place = cmp.Or(r.Place, head[2])
		r.Heard = Instant(first[0] - wait)
	} else {
		r.Ticket, r.Fence, r.Granted, r.Limit = first[0], first[1], Instant(first[2]), Instant(first[3])
	}
	if lease == 0 {
		r.Lease, r.ZombieAfter = berth.Forever, Millis(number)
	} else {
		r.Reach = Millis(number)
	}
	err := r.texts(words[begins+terms])
	return r, err
}

// whole reads words that are all numbers.
func whole(words []string, into ...*int64) bool {
	for i, word := range words {
		var err error
		if *into[i], err = strconv.ParseInt(word, 10, 64); err != nil {
			return false
		}
	}
	return true
}

// texts reads the texts of a record.
func (r *Record) texts(packed string) error {
	texts, err := unpackTexts(packed)
	if err != nil || len(texts) < 3 || max(len(texts[0]), len(texts[1])) > MaxText {
		return damaged("texts of a record")
	}
	r.Owner, r.Label = texts[0], texts[1]
	if r.Meta, err = unpackMeta(texts[2]); err != nil {
		return err
	}
	if len(texts) > 3 {
		r.Extra = texts[3]
	}
	return nil
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
