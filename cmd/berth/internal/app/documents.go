package app

import (
	"strings"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
)

// Documents are what the commands of this package print with --json, by command.
func Documents() map[string]any {
	all := map[string]any{
		"check": Document[checkDocument]{}, "drain": Document[drainDocument]{}, "drain --list": Document[inspect.Page[view.Drain]]{},
		"version": Document[versionDocument]{},
		"ps":      Document[inspect.Page[inspect.Claim]]{}, "cycles": Document[inspect.Cycles]{}, "explain": Document[explainsDocument]{},
		"show": Document[showsDocument]{}, "ls": Document[inspect.Page[berth.Name]]{}, "events": Document[eventDocument]{},
	}
	for _, kind := range append(allKinds, "") {
		for command, document := range map[string]any{
			"want": Document[targetDocument]{}, "release": Document[targetDocument]{}, "sweep": Document[sweepDocument]{},
			"pause": Document[pauseDocument]{}, "unpause": Document[pauseDocument]{},
		} {
			all[strings.TrimSpace(string(kind)+" "+command)] = document
		}
	}
	for _, kind := range allKinds {
		for command, document := range map[string]any{
			"explain": Document[explainDocument]{}, "ls": Document[inspect.Page[berth.Name]]{}, "show": Document[ShowDocument]{},
		} {
			all[string(kind)+" "+command] = document
		}
	}
	return all
}
