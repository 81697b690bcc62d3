package main

import (
	"errors"

	"github.com/berth-go/berth"
)

// inFlags lets an error of the library name the flag instead of the field, by
// pairs of field and flag. Other errors stay as they are.
func inFlags(err error, pairs ...string) error {
	var invalid *berth.ConfigError
	if !errors.As(err, &invalid) {
		return err
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if invalid.Field == pairs[i] {
			return berth.Invalid(pairs[i+1], "%s", invalid.Problem)
		}
	}
	return err
}
