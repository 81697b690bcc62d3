package wire

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Unmarshal reads what [Marshal] has written into what a pointer points to. As with encoding/json, what the text does
// not tell stays as it is, and what has no field is ignored.
func Unmarshal(data []byte, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("%T is no pointer", into)
	}
	return read(data, v.Elem())
}

func read(data json.RawMessage, v reflect.Value) error {
	null := string(data) == "null"
	switch x := v.Addr().Interface().(type) {
	case *time.Duration:
		ms := int64(forever)
		if err := json.Unmarshal(data, &ms); err != nil {
			return err
		}
		*x = forever
		if ms <= forever.Milliseconds() {
			*x = time.Duration(max(ms, -forever.Milliseconds())) * time.Millisecond
		}
		return nil
	case *time.Time:
		var text string
		*x = time.Time{}
		if err := json.Unmarshal(data, &text); err != nil || null {
			return err
		}
		t, err := momentOf(text)
		*x = t
		return err
	case *error:
		var text string
		*x = nil
		err := json.Unmarshal(data, &text)
		if !null {
			*x = errors.New(text)
		}
		return err
	}
	switch kind := v.Kind(); {
	case kind == reflect.Pointer:
		if v.SetZero(); null {
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return read(data, v.Elem())
	case kind == reflect.Struct && !v.Addr().Type().Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return readObject(data, v)
	case kind == reflect.Slice:
		var texts []json.RawMessage
		err := json.Unmarshal(data, &texts)
		v.Set(reflect.MakeSlice(v.Type(), len(texts), len(texts)))
		for i, text := range texts {
			err = errors.Join(err, read(text, v.Index(i)))
		}
		return err
	case kind == reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return fmt.Errorf("%v has keys that are no texts", v.Type())
		}
		var texts map[string]json.RawMessage
		err := json.Unmarshal(data, &texts)
		v.Set(reflect.MakeMap(v.Type()))
		for key, text := range texts {
			value := reflect.New(v.Type().Elem()).Elem()
			err = errors.Join(err, read(text, value))
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), value)
		}
		return err
	}
	return json.Unmarshal(data, v.Addr().Interface())
}

func readObject(data json.RawMessage, v reflect.Value) error {
	fields, err := fieldsOf(v.Type())
	var texts map[string]json.RawMessage
	err = errors.Join(err, json.Unmarshal(data, &texts))
	for _, f := range fields {
		value := v.FieldByIndex(f.index)
		if text, told := texts[f.name]; told {
			wrong := read(text, value)
			err = errors.Join(err, wrong)
			if f.below && wrong == nil && value.IsZero() {
				value.SetInt(-1) // 0 would have been left out
			}
		}
		if text, told := texts[f.name+"Base64"]; told && value.Kind() == reflect.String {
			var raw []byte
			err = errors.Join(err, json.Unmarshal(text, &raw))
			value.SetString(string(raw))
		}
	}
	return err
}

// momentOf reads RFC 3339 with a year of any length, as a hostile writer may have stored it. Days repeat after 400 years.
func momentOf(text string) (time.Time, error) {
	digits, rest, _ := strings.Cut(text, "-")
	year, err := strconv.Atoi(digits)
	t, wrong := time.Parse(time.RFC3339, fmt.Sprintf("%d-%s", 2000+year%400, rest))
	if err = errors.Join(err, wrong); err != nil {
		return time.Time{}, err
	}
	return t.AddDate(year-t.Year(), 0, 0), nil
}
