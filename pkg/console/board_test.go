package console

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/berthtest"
)

func TestAViewIsRenderedOnceForAllWhoMayDoTheSame(t *testing.T) {
	c, err := New(Config{Redis: berthtest.New(t).Client()})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(t.Context())) }()
	look := func(kind string, act bool) *board {
		b, err := c.boards.look(topic{page: overviewPage, query: url.Values{"kind": {kind}}, act: act})
		require.NoError(t, err)
		return b
	}
	one, two, acting, other := look("sem", false), look("sem", false), look("sem", true), look("lock", false)
	require.Same(t, one, two)
	require.NotSame(t, one, acting)
	require.NotSame(t, one, other)
	for _, b := range []*board{one, two, acting, other} {
		b.Close()
	}
	require.Empty(t, c.boards.open)
}

func TestATextOfATimelineHasRoom(t *testing.T) {
	require.Equal(t, "größe", cut("größe", 5))
	require.Equal(t, "grö…", cut("größe 4", 4))
}
