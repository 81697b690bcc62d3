package app

import "github.com/berth-go/berth/pkg/keyspace"

// Documents are what the commands of this package print with --json, by command.
func Documents() map[string]any {
	all := map[string]any{
		"check": Document[checkDocument]{}, "drain": Document[drainDocument]{}, "version": Document[versionDocument]{},
		"pause": Document[pauseDocument]{}, "unpause": Document[pauseDocument]{},
	}
	for _, kind := range []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool} {
		for command, document := range map[string]any{
			"want": Document[targetDocument]{}, "release": Document[targetDocument]{}, "sweep": Document[sweepDocument]{},
			"pause": Named[pauseDocument]{}, "unpause": Named[pauseDocument]{},
		} {
			all[string(kind)+" "+command] = document
		}
	}
	return all
}
