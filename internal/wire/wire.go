// Package wire writes values as JSON, reads them back, and describes them by a schema.
//
// The names come from the json tags; each exported field has one. The kind of a value decides how it is written:
//
//   - A [time.Duration] is a number of whole milliseconds, rounded down, but at least 1 where it is above 0, and 0
//     where it is below. berth.Forever is null. The field's name ends in Ms. What is
//     beyond the range of a Go duration is read as its nearest end.
//   - A [time.Time] is a text of RFC 3339 in UTC, to the millisecond. The zero time is null.
//   - A nil slice is [], a nil map is {}, a nil pointer is null. The keys of a map are texts.
//   - An error is its text. An [encoding.TextMarshaler] is the text that it returns.
//   - A text of a field that is not UTF-8 has its bytes in base64 beside it: the name of that is the field's, with
//     Base64 at its end. In the text itself, and in lists and maps, each byte that is not UTF-8 is U+FFFD.
//   - A struct is an object of its fields, in their order. The fields of an embedded struct, and of a struct whose
//     field has the option inline, are its own. No two have the same name.
//
// The option omitzero leaves a zero value out, as encoding/json does; there is no other option. The tag wire:"below" is for
// a duration that says something else where it is 0 than below 0: a 0 that is told is read as below 0. No struct,
// list or map is asked for a MarshalJSON of its own, so that a type can be written here by encoding/json:
//
//	func (h Holder) MarshalJSON() ([]byte, error) { return wire.Marshal(h) }
//
//	func (h *Holder) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, h) }
//
// A struct that embeds such a type inherits its methods, and encoding/json loses the fields beside it: it needs methods
// of its own. [Check] finds those without.
package wire

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// forever is berth.Forever, whose package stands on this one.
const forever time.Duration = math.MaxInt64

var (
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
	textType     = reflect.TypeFor[encoding.TextMarshaler]()
	errorType    = reflect.TypeFor[error]()
)

// Marshal returns a value as JSON, without spaces. The error says which tag breaks a rule, or which value cannot be
// written.
func Marshal(value any) ([]byte, error) {
	e := encoder{fields: map[reflect.Type][]field{}}
	e.leaves = json.NewEncoder(&e.Buffer)
	e.leaves.SetEscapeHTML(false) // where a text is to be escaped, encoding/json does so with what MarshalJSON returns
	err := e.value(reflect.ValueOf(value))
	return e.Bytes(), err
}

type encoder struct {
	bytes.Buffer
	leaves *json.Encoder            // writes to the buffer
	fields map[reflect.Type][]field // of the structs that were met
}

// unreadable is the character that stands for bad bytes. Go 1.27 writes it as it is, older releases its escape.
var unreadable = []byte(string(utf8.RuneError))

// leaf writes a value as encoding/json does, and with every release of Go the same bytes.
func (e *encoder) leaf(value any) error {
	start := e.Len()
	err := e.leaves.Encode(value)
	e.Truncate(len(bytes.TrimSuffix(e.Bytes(), []byte("\n"))))
	if written := e.Bytes()[start:]; bytes.Contains(written, unreadable) {
		escaped := bytes.ReplaceAll(written, unreadable, []byte(`\ufffd`))
		e.Truncate(start)
		e.Write(escaped)
	}
	return err
}

func (e *encoder) value(v reflect.Value) error {
	if !v.IsValid() { // nil
		return e.leaf(nil)
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		if x == forever {
			return e.leaf(nil)
		}
		x = max(x, 0)
		return e.leaf(max(x.Milliseconds(), min(1, int64(x))))
	case time.Time:
		if x.IsZero() {
			return e.leaf(nil)
		}
		return e.leaf(x.UTC().Format("2006-01-02T15:04:05.999Z07:00"))
	}
	if text, is, err := textOf(v); is {
		return errors.Join(err, e.leaf(text))
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return e.value(v.Elem())
	case reflect.Struct:
		return e.object(v)
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return fmt.Errorf("%v has keys that are no texts", v.Type())
		}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		e.WriteByte('{')
		for i, key := range keys {
			if i > 0 {
				e.WriteByte(',')
			}
			if err := e.member(key.String(), v.MapIndex(key)); err != nil {
				return err
			}
		}
		e.WriteByte('}')
		return nil
	case reflect.Slice, reflect.Array:
		e.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				e.WriteByte(',')
			}
			if err := e.value(v.Index(i)); err != nil {
				return err
			}
		}
		e.WriteByte(']')
		return nil
	}
	return e.leaf(v.Interface())
}

func (e *encoder) object(v reflect.Value) (err error) {
	fields, met := e.fields[v.Type()]
	if !met {
		if fields, err = fieldsOf(v.Type()); err != nil {
			return err
		}
		e.fields[v.Type()] = fields
	}
	next := byte('{')
	member := func(name string, value reflect.Value) error {
		e.WriteByte(next)
		next = ','
		return e.member(name, value)
	}
	for _, f := range fields {
		value := v.FieldByIndex(f.index)
		if f.omits(value) {
			continue
		}
		if err := member(f.name, value); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if text, is, _ := textOf(value); is && !utf8.ValidString(text) {
			err = member(f.name+"Base64", reflect.ValueOf(base64.StdEncoding.EncodeToString([]byte(text))))
		}
	}
	if next == '{' {
		e.WriteByte(next)
	}
	e.WriteByte('}')
	return err
}

func (e *encoder) member(name string, value reflect.Value) error {
	err := e.leaf(name)
	e.WriteByte(':')
	return errors.Join(err, e.value(value))
}

// textOf returns the text of what is written as one; moments have no need of it.
func textOf(v reflect.Value) (text string, is bool, err error) {
	if !isText(v.Type()) || isNil(v) {
		return "", false, nil
	}
	switch x := v.Interface().(type) {
	case encoding.TextMarshaler:
		text, err := x.MarshalText()
		return string(text), true, err
	case error:
		return x.Error(), true, nil
	}
	return v.String(), true, nil
}

func isText(t reflect.Type) bool {
	return t != timeType && (t.Kind() == reflect.String || t.Implements(textType) || t.Implements(errorType))
}

func isNil(v reflect.Value) bool {
	return (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil()
}

// field is a member of an object.
type field struct {
	name     string
	typ      reflect.Type
	index    []int // see reflect.Value.FieldByIndex
	omitZero bool
	below    bool // a 0 that is told is below 0
}

func (f *field) omits(v reflect.Value) bool {
	t, is := v.Interface().(time.Time)
	return f.omitZero && (v.IsZero() || is && t.IsZero())
}

// fieldsOf returns the members of a struct's object. The error says which tag breaks a rule.
func fieldsOf(t reflect.Type) (all []field, err error) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		wrong := func(what string) ([]field, error) { return nil, fmt.Errorf("%v.%s %s", t, f.Name, what) }
		members := []field{{name, f.Type, nil, option == "omitzero", f.Tag.Get("wire") != ""}}
		switch flat := name == "" && (f.Anonymous || option == "inline"); {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case flat && f.Type.Kind() == reflect.Struct:
			if members, err = fieldsOf(f.Type); err != nil {
				return nil, err
			}
		case flat:
			return wrong("is flat, and no struct")
		case name == "":
			return wrong("has no name in a json tag")
		case option != "" && option != "omitzero":
			return wrong("has the option " + option)
		case members[0].below && (f.Type != durationType || f.Tag.Get("wire") != "below"):
			return wrong("has the tag wire:" + f.Tag.Get("wire"))
		case (f.Type == durationType) != strings.HasSuffix(name, "Ms"):
			return wrong("is called " + name + ": the name of a duration, and no other, ends in Ms")
		}
		for _, m := range members {
			if slices.ContainsFunc(all, func(other field) bool { return other.name == m.name }) {
				return wrong("is a second " + m.name)
			}
			m.index = append([]int{i}, m.index...)
			all = append(all, m)
		}
	}
	return all, nil
}
