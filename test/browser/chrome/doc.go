// Package chrome drives a real browser, headless: Debian's chromium, or another one of its family. A [Tab] has
// cookies of its own, and notes what a page must not do: errors of its scripts and on its console, dialogs, and
// whatever its content security policy has refused.
package chrome
