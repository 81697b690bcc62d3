// Package scripts holds the Lua of all kinds. What a script does, takes
// and answers is in its header; docs/keys-and-scripts.md lists them all. The
// package is no part of what compatibility covers.
package scripts

import "embed"

// FS holds the scripts, <kind>_<verb>.lua, claim_<verb>.lua for those that do not care whose
// claims they are, and in folders what they include.
//
//go:embed *.lua */*.lua
var FS embed.FS
