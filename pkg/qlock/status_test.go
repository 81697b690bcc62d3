package qlock_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/scripts"
)

// source is a script as it is written, comments included.
func source(t *testing.T, path string) string {
	t.Helper()
	raw, err := fs.ReadFile(scripts.FS, path)
	require.NoError(t, err)
	return string(raw)
}

// The scripts know an access and a conflict strategy by the word that String says.
func TestTheStrategiesOfTheScriptsAreThoseOfTheOptions(t *testing.T) {
	t.Parallel()
	text := regexp.MustCompile(`conflict  (.*?):.*\n-- +access    (.*?)\n`).FindStringSubmatch(source(t, "owner/ask.lua"))
	require.NotNil(t, text)
	var conflicts, accesses []string
	for _, s := range []qlock.Conflict{qlock.FailDeadlock, qlock.Wait, qlock.WorkThrough, qlock.ExtendAndWorkThrough} {
		conflicts = append(conflicts, s.String())
	}
	for _, a := range []qlock.Access{qlock.Queued, qlock.Random, qlock.LIFO} {
		accesses = append(accesses, a.String())
	}
	require.Equal(t, strings.Split(strings.ReplaceAll(text[1], " or ", ", "), ", "), conflicts)
	require.Equal(t, strings.Split(strings.ReplaceAll(text[2], " or ", ", "), ", "), accesses)
	require.Equal(t, "unknown", qlock.Conflict(9).String())
	require.Equal(t, "unknown", qlock.Access(9).String())
}
