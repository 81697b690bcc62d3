package app

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/berth-go/berth"
)

// MaxKey is how long the key of a resource may be, in bytes.
const MaxKey = 1024

// KeyOf is the key that a text stands for.
func KeyOf(text string, quoted bool) (string, error) {
	if quoted && text != "" && text[0] == '"' {
		key, err := strconv.Unquote(text)
		if err != nil {
			return "", fmt.Errorf("%q is not in double quotes with escapes as in Go", text)
		}
		text = key
	}
	switch {
	case text == "":
		return "", errors.New("a key is empty")
	case len(text) > MaxKey:
		return "", fmt.Errorf("a key has %d bytes, at most %d are allowed", len(text), MaxKey)
	}
	return text, nil
}

// KeyArgument is the key that an argument or a flag stands for.
func KeyArgument(what, text string, quoted bool) (string, error) {
	key, err := KeyOf(text, quoted)
	if err != nil {
		return "", berth.Invalid(what, "%s", err)
	}
	return key, nil
}
