package wire_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/wire"
)

// shape is the part of a schema that this package writes.
type shape struct {
	Ref        string            `json:"$ref"`
	Type       any               `json:"type"`
	Format     string            `json:"format"`
	Encoding   string            `json:"contentEncoding"`
	Minimum    *float64          `json:"minimum"`
	AnyOf      []shape           `json:"anyOf"`
	Items      *shape            `json:"items"`
	Properties map[string]*shape `json:"properties"`
	Required   []string          `json:"required"`
	Additional json.RawMessage   `json:"additionalProperties"`
	Schema     string            `json:"$schema"`
	Title      string            `json:"title"`
	Defs       map[string]*shape `json:"$defs"`
}

func parsed(t testing.TB, text []byte) (s shape) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&s))
	return s
}

// accepts says why a document is not as the schema of its name has it.
func (s *shape) accepts(name string, text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	return s.check(s.Defs[name], value, name)
}

func (s *shape) check(by *shape, value any, at string) error {
	wrong := func(what string) error { return fmt.Errorf("%s: %v %s", at, value, what) }
	if by.Ref != "" {
		name, err := url.PathUnescape(strings.TrimPrefix(by.Ref, "#/$defs/"))
		if err != nil || s.Defs[name] == nil {
			return wrong("refers to nothing: " + by.Ref)
		}
		return s.check(s.Defs[name], value, at)
	}
	if by.AnyOf != nil {
		if !slices.ContainsFunc(by.AnyOf, func(one shape) bool { return s.check(&one, value, at) == nil }) {
			return wrong("is none of them")
		}
		return nil
	}
	kind := map[bool]string{true: "null"}[value == nil]
	switch x := value.(type) {
	case bool:
		kind = "boolean"
	case string:
		kind = "string"
	case float64:
		kind = "integer"
		if x != float64(int64(x)) || by.Minimum != nil && x < *by.Minimum {
			return wrong("is too low, or not whole")
		}
	case []any:
		kind = "array"
		for i, one := range x {
			if err := s.check(by.Items, one, fmt.Sprint(at, "[", i, "]")); err != nil {
				return err
			}
		}
	case map[string]any:
		kind = "object"
		for _, name := range by.Required {
			if _, told := x[name]; !told {
				return wrong("lacks " + name)
			}
		}
		for name, one := range x {
			of, other := by.Properties[name], shape{}
			if of == nil {
				if string(by.Additional) == "false" {
					return wrong("has more: " + name)
				}
				if err := json.Unmarshal(by.Additional, &other); err != nil {
					return err
				}
				of = &other
			}
			if err := s.check(of, one, at+"."+name); err != nil {
				return err
			}
		}
	}
	if types, _ := by.Type.([]any); by.Type != kind && !slices.Contains(types, any(kind)) {
		return wrong(fmt.Sprintf("is not %v", by.Type))
	}
	return nil
}

func TestTheSchemaDescribesEachKindOfValue(t *testing.T) {
	t.Parallel()
	text, err := wire.Schema("Documents", map[string]any{"ls": page[*beside]{}, "show it": told{}})
	require.NoError(t, err)
	require.JSONEq(t, `{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title": "Documents",
		"anyOf": [{"$ref": "#/$defs/ls"}, {"$ref": "#/$defs/show%20it"}],
		"$defs": {
			"ls": {"$ref": "#/$defs/wire_test.page%5B%2Awire_test.beside%5D"},
			"show it": {"$ref": "#/$defs/wire_test.told"},
			"wire_test.page[*wire_test.beside]": {
				"type": "object", "additionalProperties": false, "required": ["items"],
				"properties": {"items": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/wire_test.beside"}, {"type": "null"}]}}}
			},
			"wire_test.beside": {
				"type": "object", "additionalProperties": false, "required": ["count"], "properties": {"count": {"type": "integer"}}
			},
			"wire_test.base": {
				"type": "object", "additionalProperties": false, "required": ["name"], "properties": {
					"name": {"type": "string"}, "nameBase64": {"type": "string", "contentEncoding": "base64"}, "alone": {"type": "boolean"}
				}
			},
			"wire_test.told": {
				"type": "object", "additionalProperties": false,
				"required": ["name", "word", "leaseMs", "since", "meta", "texts", "others", "heard", "error", "token", "count"],
				"properties": {
					"name": {"type": "string"}, "nameBase64": {"type": "string", "contentEncoding": "base64"},
					"alone": {"type": "boolean"},
					"word": {"type": "string"}, "wordBase64": {"type": "string", "contentEncoding": "base64"},
					"leaseMs": {"type": ["integer", "null"], "minimum": 0},
					"maxHoldMs": {"type": ["integer", "null"], "minimum": 0},
					"restsMs": {"type": ["integer", "null"], "minimum": 0},
					"since": {"type": ["string", "null"], "format": "date-time"},
					"until": {"type": "string", "format": "date-time"},
					"meta": {"type": "object", "additionalProperties": {"type": "string"}},
					"texts": {"type": "array", "items": {"type": "string"}},
					"others": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/wire_test.base"}, {"type": "null"}]}},
					"next": {"$ref": "#/$defs/wire_test.told"},
					"heard": {"anyOf": [{"$ref": "#/$defs/wire_test.base"}, {"type": "null"}]},
					"error": {"type": ["string", "null"]}, "errorBase64": {"type": "string", "contentEncoding": "base64"},
					"token": {"type": ["string", "null"]}, "tokenBase64": {"type": "string", "contentEncoding": "base64"},
					"count": {"type": "integer"}
				}
			}
		}
	}`, string(text))
}

func TestTheSchemaSaysAllThatBreaksARule(t *testing.T) {
	t.Parallel()
	type told struct{}
	_, err := wire.Schema("", map[string]any{
		"a": page[chan int]{}, "b": map[int]string{}, "c": struct {
			A time.Duration `json:"a"`
		}{}, "d": told{}, "e": page[any]{}, "f": one(),
	})
	for _, says := range []string{
		"chan int cannot be", "map[int]string cannot be", "A is called a: the name", "interface {} cannot be",
		"wire_test.told cannot be written, or is called as another",
	} {
		require.ErrorContains(t, err, says)
	}
}

// one is of another type that is called told.
func one() any { return told{} }

func TestTheSchemaAcceptsWhatIsWrittenAndNothingElse(t *testing.T) {
	t.Parallel()
	text, err := wire.Schema("", map[string]any{"told": told{}})
	require.NoError(t, err)
	s := parsed(t, text)
	require.NoError(t, s.accepts("told", []byte(zero)))
	for from, to := range map[string]string{
		`"leaseMs":0`:  `"leaseMs":-1`,
		`"count":0`:    `"count":0.5`,
		`"meta":{}`:    `"meta":{"k":5}`,
		`"texts":[]`:   `"texts":null`,
		`"others":[]`:  `"others":[{}]`,
		`"heard":null`: `"heard":5`,
		`"since":null`: `"until":null`,
		`"name":"",`:   ``,
		`"word":""`:    `"word":"","more":1`,
	} {
		require.Contains(t, zero, from)
		require.Error(t, s.accepts("told", []byte(strings.Replace(zero, from, to, 1))), to)
	}
}
