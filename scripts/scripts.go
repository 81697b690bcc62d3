// Package scripts holds the Lua of all primitives. What a script does, takes
// and answers is in its header; docs/keys-and-scripts.md lists them all. The
// package is no part of what compatibility covers.
package scripts

import "embed"

// FS holds the scripts, <primitive>_<verb>.lua, claim_<verb>.lua for those that do not
// care whose claims they are, and under lib what they include.
//
//go:embed *.lua lib/*.lua
var FS embed.FS
