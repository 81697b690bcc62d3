package rolling

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/scriptkit"
)

// older is a client whose scripts are those of another release: each of today's that
// it is given to run is sent as the other release has it.
type older struct {
	rueidis.Client
	other map[string]*scriptkit.Script // by the SHA and the source of today's
}

// beside puts a client of today back to the release.
func beside(redis rueidis.Client, release *scriptkit.Library) rueidis.Client {
	o := &older{redis, map[string]*scriptkit.Script{}}
	for _, script := range today.library.Scripts() {
		if other := find(release, script.Name); other != nil {
			o.other[script.SHA], o.other[script.Source()] = other, other
		}
	}
	return o
}

// Do runs a command; a script is the release's own.
func (o *older) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	words := command.Commands()
	if len(words) < 3 || o.other[words[1]] == nil {
		return o.Client.Do(ctx, command)
	}
	script, arg := o.other[words[1]], []string(nil)
	keys, err := strconv.Atoi(words[2])
	if err == nil {
		words, arg = words[:3+keys], words[3+keys:]
	}
	switch {
	case err != nil:
	case words[0] == "EVALSHA":
		command = o.B().Evalsha().Sha1(script.SHA).Numkeys(int64(keys)).Key(words[3:]...).Arg(arg...).Build()
	case words[0] == "EVAL":
		command = o.B().Eval().Script(script.Source()).Numkeys(int64(keys)).Key(words[3:]...).Arg(arg...).Build()
	}
	return o.Client.Do(ctx, command)
}
