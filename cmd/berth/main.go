// Command berth shares limited things between processes. It runs commands under a semaphore or
// a lock, shows names and lets operators change them, and checks nodes and the server. Its demo
// needs no server. See berth --help.
package main

import (
	"os"
	_ "time/tzdata" // the zones of --zone are the same on all machines

	"github.com/berth-go/berth/cmd/berth/internal/commands"
)

func main() { os.Exit(commands.Execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
