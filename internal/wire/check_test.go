package wire_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/wire"
)

type (
	// Held writes and reads itself.
	Held struct {
		Name  string        `json:"name"`
		Lease time.Duration `json:"leaseMs"`
		Waits *Held         `json:"waits"`
	}
	// Inherits has the methods of Held.
	Inherits struct {
		Held
		More int `json:"more"`
	}
	// Writes has a MarshalJSON of its own.
	Writes struct {
		Held
		More int `json:"more"`
	}
	// Owns has both methods.
	Owns struct {
		Held
		More int `json:"more"`
	}
	// Plain is as encoding/json has it.
	Plain struct {
		N     int  `json:"n"`
		Alone bool `json:"alone"`
	}
	// Bare has nothing that writes its list.
	Bare struct {
		List []int     `json:"list"`
		At   time.Time `json:"at"`
	}
	// Holds has those of all kinds below it.
	Holds struct {
		Inner []Bare `json:"inner"`
	}
	// Length, Text, Moment, Failure and List each have one field that encoding/json writes in another way.
	Length struct {
		A time.Duration `json:"aMs"`
	}
	Text struct {
		A string `json:"a"`
	}
	Moment struct {
		A time.Time `json:"a"`
	}
	Failure struct {
		A error `json:"a"`
	}
	List struct {
		A []struct {
			B time.Duration `json:"bMs"`
		} `json:"a"`
	}
	// Worded has a word that cannot be just any text.
	Worded struct {
		A word `json:"a"`
	}
	word string
	// Untagged has a field without a tag.
	Untagged struct {
		Other struct{ A int } `json:"other"`
	}
)

func (h Held) MarshalJSON() ([]byte, error)     { return wire.Marshal(h) }
func (h *Held) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, h) }
func (w Writes) MarshalJSON() ([]byte, error)   { return wire.Marshal(w) }
func (o Owns) MarshalJSON() ([]byte, error)     { return wire.Marshal(o) }
func (o *Owns) UnmarshalJSON(data []byte) error { return wire.Unmarshal(data, o) }
func (w word) MarshalText() ([]byte, error) {
	if w != "" {
		return nil, errors.New("no such word")
	}
	return []byte(w), nil
}

func (h Holds) MarshalJSON() ([]byte, error) { return wire.Marshal(h) }

func TestCheckFindsWhatEncodingJSONWouldWriteInAnotherWay(t *testing.T) {
	t.Parallel()
	require.NoError(t, wire.Check(Held{}, Owns{}, Plain{}, Worded{}, told{}, page[*Owns]{}))
	for name, value := range map[string]any{"Length": Length{}, "Text": Text{}, "Moment": Moment{}, "Failure": Failure{}, "List": List{}} {
		require.ErrorContains(t, wire.Check(value), "wire_test."+name+" has no MarshalJSON of its own")
	}
	for says, value := range map[string]any{
		"wire_test.Inherits has no MarshalJSON of its own": page[Inherits]{},
		"wire_test.Writes has no UnmarshalJSON of its own": Writes{},
		"wire_test.Bare has no MarshalJSON of its own":     Holds{},
		"A has no name in a json tag":                      &Untagged{},
		"A is called a: the name of a duration, and no": struct {
			A time.Duration `json:"a"`
		}{},
	} {
		require.ErrorContains(t, wire.Check(Plain{}, value), says)
	}
	require.NotContains(t, wire.Check(Holds{}).Error(), "wire_test.Holds has")
}
