package apptest

import (
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is the file that describes what the commands print with --json, from the folder of a package of theirs.
const Schema = "../../../../docs/generated/json.schema.json"

// described is what it says, by command. A command that prints one of two documents is there twice, with a word in capitals.
var described = sync.OnceValues(func() (map[string][]*jsonschema.Schema, error) {
	text, err := os.ReadFile(Schema)
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.AssertContent()
	err = c.AddResource(Schema, document)
	all := make(map[string][]*jsonschema.Schema)
	for name := range document.(map[string]any)["$defs"].(map[string]any) {
		definition, wrong := c.Compile(Schema + "#/$defs/" + url.PathEscape(name))
		command, _, _ := strings.Cut(name, " RESOURCE")
		all[command], err = append(all[command], definition), errors.Join(err, wrong)
	}
	return all, err
})

// asDescribed returns how an output with --json differs from the schema. An output without the flag, or an empty one, does
// not differ.
func asDescribed(args []string, out string) error {
	if i := slices.Index(args, "--"); i >= 0 { // what follows is another program's
		args = args[:i]
	}
	if out == "" || !slices.Contains(args, "--json") {
		return nil
	}
	if strings.Contains(out, "\n{") { // a document a line
		for line := range strings.Lines(out) {
			if err := asDescribed(args, line); err != nil {
				return err
			}
		}
		return nil
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
	if err != nil {
		return err
	}
	all, err := described()
	if err != nil {
		return err
	}
	for i := range args { // a command is of one word to three, or --version
		for n := min(3, len(args)-i); n > 0; n-- {
			for _, one := range all[strings.TrimPrefix(strings.Join(args[i:i+n], " "), "--")] {
				wrong := one.Validate(document)
				if wrong == nil {
					return nil
				}
				err = errors.Join(err, wrong)
			}
			if err != nil {
				return err
			}
		}
	}
	return errors.New("no such command is described in " + Schema)
}
