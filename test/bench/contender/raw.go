package contender

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// Raw is the limit for Berth's lock: its own two scripts, sent by rueidis, with a claim as long
// as Berth's. Nothing waits, renews or looks at an answer but for its error.
var Raw = Contender{Name: "raw", How: "Berth's two scripts by rueidis alone", Open: openRaw}

const (
	rawClaim  = "0152033ead0eaead.dc17m3pksdudp4si5a2g"
	rawTail   = "1 - r 5000 5000 0 0 0:15:host/program/79670:"
	rawExpiry = "65000"
)

type rawLocker struct {
	redis            rueidis.Client
	acquire, release string // checksums
}

func openRaw(addr string) (Locker, error) {
	redis, err := rueidis.NewClient(Option(addr))
	if err != nil {
		return nil, err
	}
	acquire, release := composed.ThinAcquire, composed.ThinRelease
	for _, s := range []*scriptkit.Script{acquire, release} {
		if err := redis.Do(context.Background(), redis.B().ScriptLoad().Script(s.Source()).Build()).Error(); err != nil {
			redis.Close()
			return nil, err
		}
	}
	return &rawLocker{redis: redis, acquire: acquire.SHA, release: release.SHA}, nil
}

func (l *rawLocker) run(ctx context.Context, sha, key string, args ...string) error {
	return l.redis.Do(ctx, l.redis.B().Evalsha().Sha1(sha).Numkeys(1).Key(key).Arg(args...).Build()).Error()
}

func (l *rawLocker) Lock(ctx context.Context, name string) (func() error, error) {
	key := "bench:raw:{" + name + "}:state"
	if err := l.run(ctx, l.acquire, key, rawClaim, rawTail, rawExpiry); err != nil {
		return nil, err
	}
	return func() error { return l.run(context.Background(), l.release, key, rawClaim) }, nil
}

func (l *rawLocker) Close() { l.redis.Close() }
