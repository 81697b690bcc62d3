package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	// told has a field of each kind.
	told struct {
		base
		Word    berth.Kind        `json:"word"`
		Lease   time.Duration     `json:"leaseMs"`
		MaxHold time.Duration     `json:"maxHoldMs,omitzero"`
		Rests   time.Duration     `json:"restsMs,omitzero" wire:"below"`
		Since   time.Time         `json:"since"`
		Until   time.Time         `json:"until,omitzero"`
		Meta    map[string]string `json:"meta"`
		Texts   []string          `json:"texts"`
		Others  []*base           `json:"others"`
		Next    *told             `json:"next,omitzero"`
		Heard   *base             `json:"heard"`
		Err     error             `json:"error"`
		Token   *number           `json:"token"`
		Beside  beside            `json:",inline"`
		Skipped chan int          `json:"-"`
		hidden  int
	}
	base struct {
		Name  string `json:"name"`
		Alone bool   `json:"alone,omitzero"`
	}
	beside struct {
		Count int `json:"count"`
	}
	later struct {
		At    time.Time `json:"at,omitzero"`
		Texts []string  `json:"texts,omitzero"`
	}
	number struct{ n int }
	// page is of a type with a parameter.
	page[T any] struct {
		Items []T `json:"items"`
	}
)

// MarshalJSON is of base alone, and told inherits it.
func (b base) MarshalJSON() ([]byte, error) { panic("nobody asks") }

func (n number) MarshalText() ([]byte, error) {
	if n.n < 0 {
		return nil, errors.New("below 0")
	}
	return fmt.Append(nil, "no. ", n.n), nil
}

func (n *number) UnmarshalText(text []byte) error {
	_, err := fmt.Sscanf(string(text), "no. %d", &n.n)
	return err
}

func written(t *testing.T, value any) string {
	t.Helper()
	text, err := wire.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

// zero is a told in which nothing is told.
const zero = `{"name":"","word":"","leaseMs":0,"since":null,"meta":{},"texts":[],"others":[],` +
	`"heard":null,"error":null,"token":null,"count":0}`

func TestEachKindOfValueIsWrittenByItsRule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value any
		text  string
	}{
		"nothing":                       {nil, `null`},
		"a nil pointer":                 {(*told)(nil), `null`},
		"zero":                          {told{}, zero},
		"no field":                      {struct{}{}, `{}`},
		"a duration":                    {90 * time.Second, `90000`},
		"a duration is rounded down":    {1999 * time.Microsecond, `1`},
		"a short duration is not 0":     {time.Nanosecond, `1`},
		"a duration below 0":            {-time.Hour, `0`},
		"a duration without end":        {berth.Forever, `null`},
		"nearly without end":            {berth.Forever - 1, `9223372036854`},
		"a moment":                      {time.Date(2026, 1, 2, 3, 4, 5, 6999999, time.FixedZone("", 3600)), `"2026-01-02T02:04:05.006Z"`},
		"a moment of whole seconds":     {time.Unix(0, 999999).UTC(), `"1970-01-01T00:00:00Z"`},
		"a moment far away":             {time.UnixMilli(1 << 53).UTC(), `"287396-10-12T08:59:00.992Z"`},
		"zero elsewhere":                {time.Time{}.In(time.FixedZone("", 3600)), `null`},
		"zero elsewhere is left out":    {later{time.Time{}.In(time.FixedZone("", 3600)), nil}, `{}`},
		"a list that is empty":          {later{Texts: []string{}}, `{"texts":[]}`},
		"nil lists":                     {[][]int{nil, {}, {1, 2}}, `[[],[],[1,2]]`},
		"a map is in order":             {map[string]string{"b": "<", "a": "\xff"}, `{"a":"\ufffd","b":"<"}`},
		"a map of structs":              {map[berth.Kind]*told{"b": {}, "a": nil}, `{"a":null,"b":` + zero + `}`},
		"a nil map":                     {map[string]told(nil), `{}`},
		"a text is not for HTML":        {`<a href="&">`, `"<a href=\"&\">"`},
		"the ends of lines of scripts":  {"\u2028\u2029\x00\x7f\u202e", "\"\\u2028\\u2029\\u0000\x7f\u202e\""},
		"a text of any bytes":           {base{Name: "a\xffb"}, `{"name":"a\ufffdb","nameBase64":"Yf9i"}`},
		"a text that has the character": {base{Name: "a\ufffd"}, `{"name":"a\ufffd"}`},
		"an error of any bytes":         {page[error]{[]error{nil, errors.New("\xff")}}, `{"items":[null,"\ufffd"]}`},
		"a text of its own":             {page[number]{[]number{{7}}}, `{"items":["no. 7"]}`},
		"a type that others write":      {page[base]{[]base{{"a", true}}}, `{"items":[{"name":"a","alone":true}]}`},
		"all": {
			told{
				base: base{Name: "\xfe"}, Word: "\xfd", Lease: time.Second, MaxHold: berth.Forever, Since: time.Unix(1, 0), Until: time.Unix(2, 0),
				Meta: map[string]string{"k": "v"}, Texts: []string{"\xff", "b"}, Others: []*base{nil, {}}, Next: &told{}, Heard: &base{Name: "h"},
				Err: errors.Join(errors.New("\xfc"), berth.ErrUnavailable), Token: &number{3}, Beside: beside{4}, hidden: 5,
			},
			`{"name":"\ufffd","nameBase64":"/g==","word":"\ufffd","wordBase64":"/Q==","leaseMs":1000,"maxHoldMs":null,` +
				`"since":"1970-01-01T00:00:01Z","until":"1970-01-01T00:00:02Z","meta":{"k":"v"},"texts":["\ufffd","b"],` +
				`"others":[null,{"name":""}],"next":` + zero + `,"heard":{"name":"h"},` +
				`"error":"\ufffd\n` + berth.ErrUnavailable.Error() + `","errorBase64":"/ApiZXJ0aDogdGhlIHNlcnZlciBpcyB1bmF2YWlsYWJsZQ==",` +
				`"token":"no. 3","count":4}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.text, written(t, c.value))
		})
	}
}

func TestWhatBreaksARuleIsNotWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value any
		says  string
	}{
		"no tag": {struct{ A int }{}, "A has no name in a json tag"},
		"no name": {struct {
			A int `json:",omitzero"`
		}{}, "A has no name in a json tag"},
		"another option": {struct {
			A int `json:"a,string"`
		}{}, "A has the option string"},
		"below of no duration": {struct {
			A int `json:"a" wire:"below"`
		}{}, "A has the tag wire:below"},
		"another tag of ours": {struct {
			A time.Duration `json:"aMs" wire:"above"`
		}{}, "A has the tag wire:above"},
		"a duration without Ms": {struct {
			A time.Duration `json:"a"`
		}{}, "A is called a: the name of a duration"},
		"Ms without a duration": {struct {
			A int `json:"aMs"`
		}{}, "A is called aMs: the name of a duration"},
		"two of a name": {struct {
			base
			A int `json:"name"`
		}{}, "A is a second name"},
		"an embedded pointer": {struct{ *base }{}, "base is flat, and no struct"},
		"a number inline": {struct {
			A int `json:",inline"`
		}{}, "A is flat, and no struct"},
		"below, in a list": {page[struct{ A int }]{make([]struct{ A int }, 1)}, "items: "},
		"embedded": {struct {
			page[int]
			beside
			B struct{ C int } `json:",inline"`
		}{}, "C has no name in a json tag"},
		"a map by number":         {map[int]string{1: "a"}, "has keys that are no texts"},
		"below, in a map":         {map[string]chan int{"a": nil}, "unsupported type: chan int"},
		"a channel":               {page[chan int]{make([]chan int, 1)}, "unsupported type: chan int"},
		"a number that is none":   {math.NaN(), "unsupported value: NaN"},
		"a text that has no text": {page[number]{[]number{{-1}}}, "below 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := wire.Marshal(c.value)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestEncodingJSONWritesWhatMarshalJSONReturnsAndEscapesForHTML(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal([]asked{{Lease: time.Second, Text: "<\xff"}})
	require.NoError(t, err)
	require.JSONEq(t, `[{"leaseMs":1000,"text":"<\ufffd","textBase64":"PP8="}]`, string(text))
	require.Contains(t, string(text), `\u003c`)
	var read []asked
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, []asked{{Lease: time.Second, Text: "<\xff"}}, read)
}

type asked struct {
	Lease time.Duration `json:"leaseMs"`
	Text  string        `json:"text"`
}

func (a asked) MarshalJSON() ([]byte, error)     { return wire.Marshal(a) }
func (a *asked) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, a) }

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	t.Parallel()
	at := func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
	for name, value := range map[string]told{
		"zero": {Meta: map[string]string{}, Texts: []string{}, Others: []*base{}},
		"far away": {
			Meta: map[string]string{}, Texts: []string{}, Others: []*base{},
			Since: at(1 << 53), Until: time.Date(10000, 2, 29, 0, 0, 0, 0, time.UTC),
		},
		"without end": {Meta: map[string]string{}, Texts: []string{}, Others: []*base{}, Lease: berth.Forever, MaxHold: berth.Forever},
		"all": {
			base: base{Name: "\xfe", Alone: true}, Word: "\xfd", Lease: time.Second, MaxHold: time.Millisecond, Since: at(1), Until: at(-1),
			Meta: map[string]string{"k": "v"}, Texts: []string{"a"}, Others: []*base{nil, {Name: "\xff"}},
			Next:  &told{Meta: map[string]string{}, Texts: []string{}, Others: []*base{}, Err: errors.New("inner")},
			Heard: &base{}, Err: errors.New("outer"), Token: &number{3}, Beside: beside{4},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var read told
			require.NoError(t, wire.Unmarshal([]byte(written(t, value)), &read))
			require.Equal(t, value, read)
		})
	}
}

func TestReadingKeepsWhatIsNotToldAndSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	read := told{Lease: time.Second, base: base{Name: "kept"}}
	require.NoError(t, wire.Unmarshal([]byte(`{"maxHoldMs":5,"unknown":[1]}`), &read))
	require.Equal(t, told{Lease: time.Second, MaxHold: 5 * time.Millisecond, base: base{Name: "kept"}}, read)
	require.NoError(t, wire.Unmarshal([]byte(`{"leaseMs":9223372036855}`), &read))
	require.Equal(t, berth.Forever, read.Lease, "it is longer than there are")
	require.NoError(t, wire.Unmarshal([]byte(`{"leaseMs":-9223372036855,"maxHoldMs":-9223372036854775808}`), &read))
	require.Negative(t, max(read.Lease, read.MaxHold), "it is further below 0 than there are")
	for _, text := range []string{`"1s"`, `1.5`, `1e30`, `{}`, `9223372036854775808`} {
		read.Lease = time.Second
		require.Error(t, wire.Unmarshal([]byte(`{"leaseMs":`+text+`}`), &read), text)
		require.Equal(t, time.Second, read.Lease, text)
	}
	rests := told{Rests: time.Second}
	require.NoError(t, wire.Unmarshal([]byte(`{"leaseMs":0,"maxHoldMs":0,"restsMs":0}`), &rests))
	require.Equal(t, told{Rests: -1}, rests, "only with the tag below is 0 below 0")
	rests = told{}
	require.Error(t, wire.Unmarshal([]byte(`{"restsMs":"x"}`), &rests))
	require.Zero(t, rests.Rests, "what could not be read")
	require.ErrorContains(t, wire.Unmarshal([]byte(`{"1":"a"}`), &map[int]string{}), "keys that are no texts")
	read = told{Err: errors.New("gone"), Since: time.Unix(1, 0), Heard: &base{}, Lease: 1, Token: &number{1}, Texts: []string{"gone"}}
	require.NoError(t, wire.Unmarshal([]byte(zero), &read))
	require.Equal(t, told{Meta: map[string]string{}, Texts: []string{}, Others: []*base{}}, read, "null tells of nothing")
	for text, says := range map[string]string{
		`{`:                         "unexpected end",
		`[]`:                        "cannot unmarshal array",
		`{"leaseMs":"1s"}`:          "cannot unmarshal string",
		`{"meta":{"k":5}}`:          "cannot unmarshal number",
		`{"since":5}`:               "cannot unmarshal number",
		`{"since":"x"}`:             "parsing",
		`{"since":"-1-01-01"}`:      "parsing",
		`{"error":5}`:               "cannot unmarshal number",
		`{"texts":[5]}`:             "cannot unmarshal number",
		`{"others":5}`:              "cannot unmarshal number",
		`{"nameBase64":"-"}`:        "illegal base64",
		`{"token":"7"}`:             "input does not match",
		`{"next":{"next":5}}`:       "cannot unmarshal number",
		`{"heard":{"alone":"yes"}}`: "cannot unmarshal string",
	} {
		require.ErrorContains(t, wire.Unmarshal([]byte(text), &told{}), says, text)
	}
	all := map[berth.Kind]*later{}
	require.NoError(t, wire.Unmarshal([]byte(`{"a":{"texts":["x"]},"b":null}`), &all))
	require.Equal(t, map[berth.Kind]*later{"a": {Texts: []string{"x"}}, "b": nil}, all)
	require.ErrorContains(t, wire.Unmarshal([]byte(`{}`), told{}), "is no pointer")
	require.ErrorContains(t, wire.Unmarshal([]byte(`{}`), (*told)(nil)), "is no pointer")
}

// FuzzWritten writes hostile values: what is written is JSON, the schema accepts it, and it reads back the same.
func FuzzWritten(f *testing.F) {
	f.Add("a", "\xff\x00<", int64(1), int64(math.MaxInt64), true)
	f.Add("\u2028", "\xed\xa0\x80", int64(-1), int64(-1), false)
	f.Add(strings.Repeat("\U0001f600", 3), "\ufffd", int64(1<<53), int64(999), true)
	text, err := wire.Schema("fuzz", map[string]any{"told": told{}})
	require.NoError(f, err)
	s := parsed(f, text)
	f.Fuzz(func(t *testing.T, a, b string, at, length int64, deep bool) {
		value := told{
			base: base{Name: a, Alone: deep}, Word: berth.Kind(b), Lease: time.Duration(length), MaxHold: time.Duration(length),
			Since: time.UnixMilli(at % (1 << 55)).UTC(), Meta: map[string]string{a: b}, Texts: []string{a, b}, Others: []*base{nil, {Name: b}},
			Err: errors.New(b), Beside: beside{int(at)},
		}
		if deep {
			inner := value
			value.Next, value.Heard, value.Token = &inner, &base{Name: b}, &number{int(max(at, 0))}
		}
		text, err := wire.Marshal(value)
		require.NoError(t, err)
		require.NoError(t, s.accepts("told", text))
		if value.Since.Year() < 0 {
			return // RFC 3339 has no name for it
		}
		var read told
		require.NoError(t, wire.Unmarshal(text, &read))
		require.Equal(t, value.base, read.base)
		require.Equal(t, value.Word, read.Word)
		require.True(t, value.Since.Equal(read.Since))
		// Reading what was written of that changes no more.
		text = []byte(written(t, read))
		read = told{}
		require.NoError(t, wire.Unmarshal(text, &read))
		require.Equal(t, string(text), written(t, read))
	})
}
