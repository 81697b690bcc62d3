package console

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// cookieName is that of the session, which says nothing about who asks: only that a form was asked for by the same
// browser.
const cookieName = "berth-console"

// secure reports whether a browser asks by https. A proxy that ends it says so, or the page from which a form is asked for: the
// cookie is then sent by nothing else.
func secure(r *http.Request) bool {
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return true
	}
	return strings.HasPrefix(r.Header.Get("Origin"), "https://") || strings.HasPrefix(r.Referer(), "https://")
}

// sessionOf is that of a request, "" for none: of that there is no token.
func sessionOf(r *http.Request) string {
	if c, err := r.Cookie(cookieName); err == nil && len(c.Value) == 64 {
		return c.Value
	}
	return ""
}

// session gives a new one to a browser that has none: for the folder of the page, as no path is set.
func session(w http.ResponseWriter, r *http.Request) string {
	if id := sessionOf(r); id != "" {
		return id
	}
	id := make([]byte, 32)
	_, _ = rand.Read(id) // it never fails
	c := &http.Cookie{Name: cookieName, Value: hex.EncodeToString(id), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure(r)}
	http.SetCookie(w, c)
	return c.Value
}

// token proves that a form was given to a session and a user, for one thing to do once.
func (c *Console) token(session, user string, f *deedForm) string {
	mac := hmac.New(sha256.New, c.secret[:])
	fmt.Fprintf(mac, "%q %q %q %d", session, user, f.Address, f.Number)
	return hex.EncodeToString(mac.Sum(nil))
}

// refusal is why a form is refused.
func refusal(why string) error { return fmt.Errorf("%w: %s", errRefused, why) }

// sameSite refuses what another site sends. Each check alone would do, where the browser is a new one.
func sameSite(r *http.Request) error {
	site := r.Header.Get("Sec-Fetch-Site")
	if http.NewCrossOriginProtection().Check(r) != nil || site != "" && site != "same-origin" {
		return refusal("another site has sent this")
	}
	if r.Header.Get("Origin") == "" {
		return refusal("a form needs the header Origin of this page: a browser sends it, a script must")
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	if err != nil || !strings.EqualFold(origin.Host, r.Host) || origin.Host == "" {
		return refusal("its Origin is not this page; a proxy must pass on the Host that it was asked for")
	}
	return nil
}

// errOld is the error of an expired form.
var errOld = refusal("the form is old, or not of this session: go back to the page and ask again")

// formMost is how large a form is, in bytes.
const formMost = 16 << 10

// form reads the form that a request brings.
func form(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, refusal("it is no form")
	}
	r.Body = http.MaxBytesReader(w, r.Body, formMost)
	err := r.ParseForm()
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, refusal("it is too large")
	} else if err != nil {
		return nil, refusal("it cannot be read")
	}
	return r.PostForm, nil
}
