package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"reflect"
	"time"
)

// Check says, in a test, which of some types break a rule of this package. Each is told by a value of it, and includes
// the structs that are told of its fields. A struct with an exported name is written by encoding/json as by [Marshal]:
// else it has no MarshalJSON, or one that it inherits. If it has an UnmarshalJSON, that reads what [Unmarshal] reads.
func Check(types ...any) error {
	s := schema{defs: shape{}, structs: map[string]reflect.Type{}}
	for _, one := range types {
		s.of(reflect.TypeOf(one))
	}
	if s.errs != nil {
		return errors.Join(s.errs...)
	}
	for name, t := range s.structs {
		if !token.IsExported(t.Name()) {
			continue
		}
		value := filled(t, 5).Interface()
		ours, err := Marshal(value)
		theirs, wrong := json.Marshal(value)
		if string(ours) != string(theirs) {
			wrong = errors.Join(wrong, fmt.Errorf("%s has no MarshalJSON of its own: %s is %s", name, ours, theirs))
		}
		s.errs = append(s.errs, err, wrong)
		read, known := reflect.New(t).Interface(), reflect.New(t).Interface()
		if _, reads := read.(json.Unmarshaler); !reads {
			continue
		}
		err = errors.Join(json.Unmarshal(ours, read), Unmarshal(ours, known))
		if !reflect.DeepEqual(read, known) {
			err = errors.Join(err, fmt.Errorf("%s has no UnmarshalJSON of its own: %s is %v", name, ours, read))
		}
		s.errs = append(s.errs, err)
	}
	return errors.Join(s.errs...)
}

// filled is a value of a type, to some depth, that encoding/json alone writes in another way, as it does nil lists and maps.
func filled(t reflect.Type, depth int) reflect.Value {
	v := reflect.New(t).Elem()
	switch kind := t.Kind(); {
	case depth == 0:
	case t == timeType:
		v.Set(reflect.ValueOf(time.Unix(1, 1)))
	case t == errorType:
		v.Set(reflect.ValueOf(errors.New("an error")))
	case t.Implements(textType):
	case kind == reflect.String:
		v.SetString("\xff")
	case kind == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1e6)
	case kind == reflect.Pointer:
		v.Set(filled(t.Elem(), depth-1).Addr())
	case kind == reflect.Struct:
		fields, _ := fieldsOf(t) // they are known to be right
		for _, f := range fields {
			v.FieldByIndex(f.index).Set(filled(f.typ, depth-1))
		}
	}
	return v
}
