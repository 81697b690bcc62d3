package state

import "regexp"

// Pause is what an operator has last said of the pause of a name; see scripts/state/pause.lua.
type Pause struct {
	Revision int64  // of the name then; near the server's clock (ms), which it is never behind
	By       string // the id of the call, or "all"
	Notice   int64  // the number of the last pause of all names that the caller knew of, 0 for none
	Paused   bool   // it has paused the name; that pause may have ended by itself
	Reason   string // any bytes
}

var pauseText = regexp.MustCompile(`(?s)^(\d+) (\S+) (\d+) (paused|unpaused)(?:: (.*))?$`)

// ParsePause reads the field pause of a fat name, "" where there is none.
func ParsePause(text string) (p Pause, err error) {
	if text == "" {
		return Pause{}, nil
	}
	words := pauseText.FindStringSubmatch(text)
	if words == nil || !numbers([]string{words[1], words[3]}, &p.Revision, &p.Notice) {
		return Pause{}, damaged("pause")
	}
	p.By, p.Paused, p.Reason = words[2], words[4] == "paused", words[5]
	return p, nil
}
