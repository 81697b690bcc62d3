// Command berth shares limited things between processes: it runs commands under
// a semaphore or a lock, shows both and lets operators change them, looks at
// nodes and at the server, and shows in a demo without any server what all this is
// about. See berth --help.
package main

import (
	"os"

	"github.com/berth-go/berth/cmd/berth/internal/commands"
)

func main() { os.Exit(commands.Execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
