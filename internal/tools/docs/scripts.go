package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// whereScripts says where the text of a script stands.
const whereScripts = "A script is written in `scripts`, and what it includes in the folders there. What a server gets stands in " +
	"`scripts/composed/<kind>/<script>.lua`, below the script's header: `make docs` composes it.\n\n"

// scriptTable is one line a script.
func scriptTable(scripts compose.Scripts) string {
	var b strings.Builder
	b.WriteString("| script | what it does | cost |\n|---|---|---|\n")
	for _, s := range scripts {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", s.Name, s.Name,
			cell(strings.TrimSuffix(s.Declares.Summary, ".")), cell(s.Declares.Cost))
	}
	return b.String()
}

// cell escapes what would end a table's cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func scriptDetails(scripts compose.Scripts) string {
	var b strings.Builder
	for _, s := range scripts {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", s.Name, sentence(s.Declares.Summary))
		b.WriteString("| | |\n|---|---|\n")
		if s.Declares.Several {
			fmt.Fprintf(&b, "| `KEYS[1...]` | of each name: %s |\n", cell(groupText(s.Declares.Keys)))
		}
		for i, key := range s.Declares.Keys {
			if !s.Declares.Several {
				fmt.Fprintf(&b, "| `KEYS[%d]` | %s |\n", i+1, cell(paramText(key)))
			}
		}
		for i, arg := range s.Declares.Args {
			fmt.Fprintf(&b, "| `ARGV[%d]` | %s |\n", i+1, cell(paramText(arg)))
		}
		if len(s.Declares.Group) > 0 {
			fmt.Fprintf(&b, "| `ARGV[%d...]` | any number of times: %s |\n", s.Declares.GroupStart, cell(groupText(s.Declares.Group)))
		}
		for _, r := range s.Declares.Returns {
			fmt.Fprintf(&b, "| returns | %s |\n", cell(replyText(r)))
		}
		fmt.Fprintf(&b, "| replay | %s |\n", cell(s.Declares.Replay))
		fmt.Fprintf(&b, "| commands | %s |\n", strings.Join(s.Commands, " "))
	}
	return b.String()
}

func sentence(text string) string {
	text = strings.ToUpper(text[:1]) + text[1:]
	return strings.TrimSuffix(text, ".") + "."
}

func paramText(p compose.Param) string {
	if p.Note == "" {
		return p.Name
	}
	return fmt.Sprintf("%s (%s)", p.Name, p.Note)
}

func groupText(group []compose.Param) string {
	names := make([]string, len(group))
	for i, p := range group {
		names[i] = paramText(p)
	}
	return strings.Join(names, ", ")
}

func replyText(r scriptkit.Return) string {
	text := "**" + r.Status + "**"
	if len(r.Fields) > 0 {
		text += " " + strings.Join(r.Fields, ", ")
	}
	if r.Repeats {
		text += ", ..."
	}
	return text
}

// aclClient is what a node sends beside the scripts' own commands: the scripts
// themselves, the subscription of its wake-ups, and the client's sign of life.
// HELLO and AUTH need no permission.
var aclClient = []string{"evalsha", "eval", "script|load", "subscribe", "ping"}

// smallestACL is a line for users.acl, or behind ACL SETUSER, with all that a
// client of the library needs and nothing else.
func smallestACL(scripts compose.Scripts) string {
	var commands []string
	for _, s := range scripts {
		for _, command := range s.Commands {
			commands = append(commands, strings.ToLower(command))
		}
	}
	slices.Sort(commands)
	return "user berth on >PASSWORD ~berth:* &berth:wake:*" + allowed(append(slices.Clone(aclClient), slices.Compact(commands)...))
}

// readingACL is the same for a user of pkg/inspect, which only reads.
func readingACL() string {
	commands := []string{"ping"}
	for _, command := range slices.Sorted(slices.Values(append([]string{reader.ForDrains}, reader.Commands...))) {
		commands = append(commands, strings.ToLower(command))
	}
	return "user berth-reads on >PASSWORD %R~berth:*" + allowed(commands)
}

func allowed(commands []string) (rules string) {
	for _, command := range commands {
		rules += " +" + command
	}
	return rules
}
