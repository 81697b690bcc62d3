package main

import (
	"errors"
	"fmt"
	"strconv"
)

// maxKey is how long the key of a resource may be, in bytes.
const maxKey = 1024

// keyOf is the key that a text stands for.
func keyOf(text string, quoted bool) (string, error) {
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
	case len(text) > maxKey:
		return "", fmt.Errorf("a key has %d bytes, at most %d are allowed", len(text), maxKey)
	}
	return text, nil
}

// key is how the key of a resource is printed: so that the terminal is not harmed,
// and that --quoted reads the same key.
func key(text string) string {
	edged := text != "" && (text[0] == '"' || text[0] == ' ' || text[len(text)-1] == ' ')
	if edged || text == "-" { // "-" stands for nothing
		return quoted(text)
	}
	return plain(text)
}
