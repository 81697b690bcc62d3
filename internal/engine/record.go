package engine

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
)

// Record is what the server keeps of a claim; scripts/lib/record.lua reads the
// same text.
type Record struct {
	Weight   int
	Wait     time.Duration // wait lease
	Lease    time.Duration // berth.Forever for none
	MaxHold  time.Duration // 0 = none
	NoRenew  bool
	Phase    byte // w, g, h, d: see scripts/lib/record.lua
	Priority int
	Ticket   int64
	Fence    int64
	Granted  time.Time // by the server's clock; zero while it waits
	Limit    time.Time // the end of its maximum hold; zero = none or not yet running
	Node     string
	Owner    string
	Label    string
	Meta     map[string]string
}

// Text writes the record as the scripts read it.
func (r *Record) Text() string {
	lease := int64(0)
	if r.Lease != berth.Forever {
		lease = r.Lease.Milliseconds()
	}
	kind := byte('r')
	if r.NoRenew {
		kind = 'f'
	}
	b := make([]byte, 0, 128)
	for _, n := range []int64{int64(r.Weight), r.Wait.Milliseconds(), lease, r.MaxHold.Milliseconds()} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	b = append(b, kind, ' ', r.Phase, ' ')
	for _, n := range []int64{int64(r.Priority), r.Ticket, r.Fence, millis(r.Granted), millis(r.Limit)} {
		b = append(strconv.AppendInt(b, n, 10), ' ')
	}
	b = appendText(b, r.Node)
	b = appendText(b, r.Owner)
	b = appendText(b, r.Label)
	return string(appendText(b, packMeta(r.Meta)))
}

// ParseRecord reads what Text, or a script, wrote.
func ParseRecord(text string) (Record, error) {
	words := strings.SplitN(text, " ", 12)
	if len(words) != 12 || len(words[4]) != 1 || len(words[5]) != 1 {
		return Record{}, fmt.Errorf("engine: malformed record")
	}
	var n [11]int64
	for i := range n {
		if i == 4 || i == 5 {
			continue
		}
		var err error
		if n[i], err = strconv.ParseInt(words[i], 10, 64); err != nil {
			return Record{}, fmt.Errorf("engine: malformed record: %w", err)
		}
	}
	texts, err := unpackTexts(words[11])
	if err != nil || len(texts) < 4 {
		return Record{}, fmt.Errorf("engine: malformed texts of a record")
	}
	meta, err := unpackMeta(texts[3])
	if err != nil {
		return Record{}, err
	}
	r := Record{
		Weight: int(n[0]), Wait: ms(n[1]), Lease: ms(n[2]), MaxHold: ms(n[3]),
		NoRenew: words[4] == "f", Phase: words[5][0],
		Priority: int(n[6]), Ticket: n[7], Fence: n[8], Granted: instant(n[9]), Limit: instant(n[10]),
		Node: texts[0], Owner: texts[1], Label: texts[2], Meta: meta,
	}
	if n[2] == 0 {
		r.Lease = berth.Forever
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

func unpackTexts(packed string) ([]string, error) {
	var texts []string
	for packed != "" {
		size, after, found := strings.Cut(packed, ":")
		n, err := strconv.Atoi(size)
		if !found || err != nil || n < 0 || n > len(after) {
			return nil, fmt.Errorf("engine: malformed length-prefixed text")
		}
		texts, packed = append(texts, after[:n]), after[n:]
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
		return nil, fmt.Errorf("engine: malformed metadata of a record")
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
