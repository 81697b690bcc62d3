package line

import (
	"cmp"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
)

// Text writes a record as scripts/state/record.lua reads it.
func Text(r *engine.Record) string {
	b := append(make([]byte, 0, 160), r.Phase)
	if r.ZombieAfter > 0 {
		b = strconv.AppendInt(b, r.ZombieAfter.Milliseconds(), 10)
	}
	b = append(append(append(b, ' '), r.Node...), ' ')
	for _, n := range []int64{r.Ticket, r.Fence, millis(r.Granted), millis(r.Limit)} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	return string(appendTerms(b, r))
}

// FixedTerms are the part of the record that scripts hand on. They change it only where an entry
// takes over the terms of the outermost one.
func FixedTerms(r *engine.Record) string { return string(appendTerms(make([]byte, 0, 96), r)) }

func appendTerms(b []byte, r *engine.Record) []byte {
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

// ParseRecord reads what Text, or a script, wrote, but for the secret, which no
// listing shows.
func ParseRecord(text string) (engine.Record, error) {
	phase, rest, _ := strings.Cut(text, " ")
	node, rest, _ := strings.Cut(rest, " ")
	words := append([]string{phase}, strings.SplitN(rest, " ", 12)...)
	if len(words) != 13 || words[0] == "" || words[6] == "" || len(words[7]) != 1 {
		return engine.Record{}, fmt.Errorf("berth: malformed record")
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
		if (i == 2 || i == 3) && words[0][0] == 'w' {
			continue // where it stands, and when it was last heard of
		}
		if n[i], err = strconv.ParseInt(word, 10, 64); err != nil {
			return engine.Record{}, fmt.Errorf("berth: malformed record: %w", err)
		}
	}
	texts, err := unpackTexts(words[12])
	if err != nil || len(texts) < 3 {
		return engine.Record{}, fmt.Errorf("berth: malformed texts of a record")
	}
	meta, err := unpackMeta(texts[2])
	if err != nil {
		return engine.Record{}, err
	}
	r := engine.Record{
		Phase: words[0][0], ZombieAfter: ms(n[0]), Ticket: n[1], Fence: n[2], Granted: instant(n[3]), Limit: instant(n[4]),
		Weight: int(n[5]), NoRenew: words[7] == "f", Wait: ms(n[8]), Lease: ms(n[9]), MaxHold: ms(n[10]),
		Priority: int(n[11]), Node: node, Owner: texts[0], Label: texts[1], Meta: meta,
	}
	if len(texts) > 3 {
		r.Extra = texts[3]
	}
	if n[9] == 0 {
		r.Lease = berth.Forever
	} else {
		r.ZombieAfter = 0 // the number is the longer lease by which its deadline was set
	}
	return r, nil
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
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
		return "", "", fmt.Errorf("berth: malformed length-prefixed text")
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
		return nil, fmt.Errorf("berth: malformed metadata of a record")
	}
	if len(texts) == 0 {
		return nil, nil
	}
	meta := make(map[string]string, len(texts)/2)
	for i := 0; i < len(texts); i += 2 {
		meta[texts[i]] = texts[i+1]
	}
	return meta, nil
}
