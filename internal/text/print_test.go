package text_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
)

func TestHuman(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"forever": berth.Forever,
		"0s":      -time.Second,
		"120µs":   123 * time.Microsecond,
		"1.23ms":  1234 * time.Microsecond,
		"346ms":   345678 * time.Microsecond,
		"1.3s":    1345 * time.Millisecond,
		"59.9s":   59949 * time.Millisecond,
		"1m00s":   59950 * time.Millisecond,
		"1h00m":   time.Hour - time.Millisecond,
		"3m05s":   185 * time.Second,
		"1h01m":   61 * time.Minute,
		"47h59m":  48*time.Hour - time.Minute,
		"3d04h":   76 * time.Hour,
	} {
		require.Equal(t, want, text.Human(d))
	}
}

func TestWhatOthersHaveWrittenCannotBreakATable(t *testing.T) {
	for from, want := range map[string]string{
		"":             "-",
		"größe 4/µ":    "größe 4/µ",
		"a\tb":         `"a\tb"`,
		"\x1b[2J":      `"\x1b[2J"`,
		"\xff":         `"\xff"`,
		"right\u202eL": `"right\u202eL"`,
		"csi\u009b2J":  `"csi\u009b2J"`,
		"gp\u200bu":    `"gp\u200bu"`,
		"gpu\u3164":    `"gpu\u3164"`, // a letter without an image
		"\u2028":       `"\u2028"`,
	} {
		require.Equal(t, want, text.Plain(from))
	}
}

func TestAWordOfASentenceCannotBeTakenForMoreOfIt(t *testing.T) {
	for from, want := range map[string]string{
		"vm/pay/4411":           "vm/pay/4411",
		"10.0.0.1:3128":         "10.0.0.1:3128",
		"":                      `""`,
		"order 7":               `"order 7"`,
		"größe":                 `"größe"`,
		"a, and b":              `"a, and b"`,
		"\x1b[2J":               `"\x1b[2J"`,
		"\xff":                  `"\xff"`,
		strings.Repeat("x", 64): strings.Repeat("x", 64),
		strings.Repeat("x", 65): `"` + strings.Repeat("x", 64) + `..."`,
		strings.Repeat("ü", 65): `"` + strings.Repeat("ü", 64) + `..."`,
	} {
		require.Equal(t, want, text.Word(from))
	}
}
