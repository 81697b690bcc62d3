package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
)

// Schema returns the JSON schema, of draft 2020-12, of named documents, each told by a value of its type. The schema
// itself accepts any of them; its $defs have each by its name, and each struct in them by the name that Go has for it.
// The error says which tags break a rule, and what cannot be written.
func Schema(title string, documents map[string]any) ([]byte, error) {
	s := schema{defs: shape{}, structs: map[string]reflect.Type{}}
	var all []shape
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		s.defs[name], _ = s.of(reflect.TypeOf(documents[name]))
		all = append(all, ref(name))
	}
	document := shape{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, "anyOf": all, "$defs": s.defs}
	text, err := json.MarshalIndent(document, "", "  ")
	return text, errors.Join(append(s.errs, err)...)
}

type (
	schema struct {
		defs    shape
		structs map[string]reflect.Type // of defs
		errs    []error
	}
	shape map[string]any
)

func ref(name string) shape { return shape{"$ref": "#/$defs/" + url.PathEscape(name)} }

// of describes the values of a type; null says that null may stand for one.
func (s *schema) of(t reflect.Type) (says shape, null bool) {
	switch {
	case t == durationType:
		return shape{"type": "integer", "minimum": 0}, true
	case t == timeType:
		return shape{"type": "string", "format": "date-time"}, true
	case isText(t):
		return shape{"type": "string"}, t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface
	}
	switch kind := t.Kind(); kind {
	case reflect.Bool:
		return shape{"type": "boolean"}, false
	case reflect.Int, reflect.Int64:
		return shape{"type": "integer"}, false
	case reflect.Pointer:
		says, _ = s.of(t.Elem())
		return says, true
	case reflect.Slice:
		return shape{"type": "array", "items": s.nullable(t.Elem())}, false
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return shape{"type": "object", "additionalProperties": s.nullable(t.Elem())}, false
		}
	case reflect.Struct:
		name := folder.ReplaceAllString(t.String(), "")
		if known := s.structs[name]; known == nil {
			s.structs[name] = t
			s.defs[name] = s.object(t)
		} else if known != t {
			break
		}
		return ref(name), false
	}
	s.errs = append(s.errs, fmt.Errorf("%v cannot be written, or is called as another type is", t))
	return nil, false
}

// folder is what stands before the name of a package in that of a type.
var folder = regexp.MustCompile(`[^\[\],*]*/`)

// nullable describes the values of a type, with null where it may stand for one.
func (s *schema) nullable(t reflect.Type) shape {
	says, null := s.of(t)
	if !null {
		return says
	}
	if name, plain := says["type"]; plain {
		says["type"] = []any{name, "null"}
		return says
	}
	return shape{"anyOf": []shape{says, {"type": "null"}}}
}

func (s *schema) object(t reflect.Type) shape {
	fields, err := fieldsOf(t)
	if err != nil {
		s.errs = append(s.errs, err)
	}
	members, required := shape{}, []string{}
	for _, f := range fields {
		switch {
		case !f.omitZero:
			required = append(required, f.name)
			fallthrough
		case f.typ == durationType: // of no end
			members[f.name] = s.nullable(f.typ)
		default:
			members[f.name], _ = s.of(f.typ)
		}
		if isText(f.typ) {
			members[f.name+"Base64"] = shape{"type": "string", "contentEncoding": "base64"}
		}
	}
	return shape{"type": "object", "properties": members, "required": required, "additionalProperties": false}
}
