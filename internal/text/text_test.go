package text_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/text"
)

func TestHidden(t *testing.T) {
	for _, r := range []rune{
		0, '\n', '\x1b', 0x7f, 0x85, 0x9b, // C0, DEL and C1
		0x061c, 0x200e, 0x200f, 0x202a, 0x202e, 0x2066, 0x2069, // directions
		0xad, 0x200b, 0x200d, 0x2060, 0xfeff, 0xe0041, // format characters
		0x034f, 0x115f, 0x3164, 0xfe0f, 0x2800, // letters, marks and symbols of nothing
		0x2028, 0x2029,
	} {
		require.True(t, text.Hidden(r), "%U", r)
	}
	for _, r := range "a ~ü日🔒é\u00a0\u3000\u0301" {
		require.False(t, text.Hidden(r), "%U", r)
	}
}

func TestFits(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		fits          bool
	}{
		{"web", "web", true},
		{"web", "web/1", false},
		{"web*", "web/1", true},
		{"web*", "web", true},
		{"*", "", true},
		{"w*b*", "w*b", true},
		{"w*b", "web", false},
		{"", "", true},
		{"", "web", false},
	} {
		require.Equal(t, tt.fits, text.Fits(tt.pattern, tt.text), "%q %q", tt.pattern, tt.text)
	}
}

func TestAShellReadsWhatWasMeant(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"berth sem release gpu a.b --force": {"berth", "sem", "release", "gpu", "a.b", "--force"},
		"''":                                {""},
		"'a b' '$(rm)' '~' 'größe'":         {"a b", "$(rm)", "~", "größe"},
		`'it'\''s' 'a\b' '"x"'`:             {"it's", `a\b`, `"x"`},
		`$'\033[2J\342\200\256'`:            {"\x1b[2J\u202e"},
		`$'\377\047\134 a1'`:                {"\xff'\\ a1"},
	} {
		require.Equal(t, want, text.Shell(words...))
	}
}
