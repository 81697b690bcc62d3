package origin

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestByWhichHostsItMayBeAskedFor(t *testing.T) {
	for _, host := range []string{"localhost", "LOCALHOST:8080", "127.0.0.1:80", "[::1]:80", "[::1]", "10.0.0.5"} {
		require.True(t, Known(host, Local()), host)
	}
	for _, host := range []string{"", "evil.test", "evil.test:8080", "localhost.evil.test"} {
		require.False(t, Known(host, Local()), host)
		require.True(t, Known(host, []string{Any}), host)
	}
}

// The first word is Sec-Fetch-Site, then come -Mode, -Dest and Sec-Purpose.
func TestWhatAnotherSiteAsksFor(t *testing.T) {
	for name, tt := range map[string]struct {
		words             [4]string
		foreign, embedded bool
	}{
		"a script, or an old browser": {[4]string{}, false, false},
		"typed, or a bookmark":        {[4]string{"none", "navigate", "document"}, false, false},
		"a link of the page":          {[4]string{"same-origin", "navigate", "document"}, false, false},
		"the page's own stream":       {[4]string{"same-origin", "cors", "empty"}, false, false},
		"a link of a wiki":            {[4]string{"cross-site", "navigate", "document"}, true, false},
		"a link of a neighbour":       {[4]string{"same-site", "navigate", "document"}, true, false},
		"a frame":                     {[4]string{"cross-site", "navigate", "iframe"}, true, true},
		"an object":                   {[4]string{"cross-site", "navigate", "object"}, true, true},
		"an image":                    {[4]string{"cross-site", "no-cors", "image"}, true, true},
		"a stream":                    {[4]string{"cross-site", "cors", "empty"}, true, true},
		"a neighbour's script":        {[4]string{"same-site", "no-cors", "empty"}, true, true},
		"ahead of a visit":            {[4]string{"cross-site", "navigate", "document", "prefetch"}, true, true},
		"a word of a time to come":    {[4]string{"elsewhere"}, true, true},
	} {
		r := &http.Request{Header: http.Header{}}
		for i, header := range []string{"Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Sec-Purpose"} {
			if tt.words[i] != "" {
				r.Header.Set(header, tt.words[i])
			}
		}
		require.Equal(t, tt.foreign, Foreign(r), name)
		require.Equal(t, tt.embedded, Embedded(r), name)
	}
}
