// Package browser tests the console in a real browser, with a real server and real clients behind it.
package browser
