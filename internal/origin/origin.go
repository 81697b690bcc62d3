// Package origin says what a browser asks for on behalf of another site. It is for pages without passwords: a site that
// somebody visits may send requests from their machine, to wherever that machine reaches.
package origin

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Any is the name that stands for all.
const Any = "*"

// Local are the names of a page that is for this machine: beside them it answers to IP addresses.
func Local() []string { return []string{"localhost"} }

// Known says whether a request may ask by the host of its address, with or without a port. An IP address is no name:
// nobody can make it lead here.
func Known(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return slices.ContainsFunc(names, func(known string) bool { return known == Any || strings.EqualFold(known, host) })
}

// Guard refuses what another site asks for, before a handler sees it.
func Guard(handler http.Handler, names []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := Refusal(r, names); why != "" {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// Refusal is why a request is not answered; "" for none. What a form sends, its page has to look at itself.
func Refusal(r *http.Request, names []string) string {
	switch {
	case !Known(r.Host, names):
		return "Host not allowed: give the name as --host NAME, of a program's own page in Config.Hosts; a proxy passes on its own."
	case Embedded(r) && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return "Another site may link to this page, not load it."
	}
	return ""
}

// Embedded says whether another site has a browser ask for a part of a page of its own, or ahead of a visit: whatever is
// no visit that somebody sees, by a link. Without the header Sec-Fetch-Site a request is none: of a script, a monitor, an
// old browser.
func Embedded(r *http.Request) bool {
	visit := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" &&
		r.Header.Get("Sec-Purpose") == ""
	return Foreign(r) && !visit
}

// Foreign says whether another site has a browser ask, a visit by a link included.
func Foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return true
}
