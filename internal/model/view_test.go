package model

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// After a flush a claim comes back to the place that another one was given meanwhile.
func TestClaimsOfOnePlaceStandInTheOrderOfTheirIDs(t *testing.T) {
	t.Parallel()
	v := view{alive: map[string]int64{}, places: map[string]string{}}
	var want []string
	for i := range 20 {
		id := fmt.Sprintf("n%02d.1", i)
		v.alive[id], v.places[id] = 2, place(0, 7)
		want = append(want, id)
	}
	require.Equal(t, want, v.line(1))
}
