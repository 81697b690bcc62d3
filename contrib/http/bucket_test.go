package berthhttp_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	berthhttp "github.com/berth-go/berth/contrib/http"
)

func TestBucketsAreFewAndTheSameInEveryProcess(t *testing.T) {
	seen := map[string]int{}
	for i := range 1000 {
		seen[berthhttp.Bucket(strconv.Itoa(i), 8)]++
	}
	require.Len(t, seen, 8)
	for bucket, texts := range seen {
		n, err := strconv.Atoi(bucket)
		require.NoError(t, err)
		require.Less(t, n, 8)
		require.Greater(t, texts, 60, bucket)
	}
	require.Equal(t, "240", berthhttp.Bucket("a{b}\x00", 1024), "never another one: releases run side by side")
	require.Equal(t, "0", berthhttp.Bucket("", 0))
}
