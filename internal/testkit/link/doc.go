// Package link is the connection between rueidis clients and a Redis, for
// tests that break it on purpose: whole, as when a process dies, stands still or
// is cut off, or one call at a time, as when a request or a reply is lost or
// comes late. It also counts what is sent.
//
// It understands RESP2, and works in the virtual time of testing/synctest: what
// is not delayed on purpose takes no time.
package link
