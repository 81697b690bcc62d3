package state

import "regexp"

// Pause is what was last said of the pauses of a name, its own and that of all names; see scripts/state/pause.lua.
type Pause struct {
	Revision int64  // of the name then; near the server's clock (ms), which it is never behind
	By       string // the id of the call, or "all"
	Notice   int64  // the number of the last pause of all names that has paused it, or from which it is excepted; 0 for none
	Paused   bool   // it was paused; the pauses may have ended by themselves
	Reason   string // of the pause that ends later, any bytes
}

var pauseText = regexp.MustCompile(`(?s)^(\d+) (\S+) (\d+) (\d+) (\d+) (\d+) (.*)$`)

// ParsePause reads the field pause of a fat name, "" where there is none.
func ParsePause(text string) (p Pause, err error) {
	if text == "" {
		return Pause{}, nil
	}
	words := pauseText.FindStringSubmatch(text)
	var own, all, size int64
	if words == nil || !numbers([]string{words[1], words[3], words[4], words[5], words[6]}, &p.Revision, &p.Notice, &own, &all, &size) ||
		size > int64(len(words[7])) {
		return Pause{}, damaged("pause")
	}
	p.By, p.Paused, p.Reason = words[2], own > 0 || all > 0, words[7][:size]
	if all > own {
		p.Reason = words[7][size:]
	}
	if len(p.Reason) > MaxText {
		return Pause{}, damaged("pause")
	}
	return p, nil
}
