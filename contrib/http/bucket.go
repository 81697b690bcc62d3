package berthhttp

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
)

// Bucket returns a number from 0 to n - 1 as text, the same for the same text in every process.
// Use Bucket to make part of a name from a stranger's text, so that there are at most n names:
//
//	semaphore.New(n, "tenant:"+berthhttp.Bucket(tenant, 4096), 2, semaphore.Config{})
//
// Two texts may have the same bucket, and then share a semaphore: choose n far above the number
// of tenants. A user who can choose any text can find one in the bucket of another user. An n
// below 1 counts as 1.
func Bucket(text string, n int) string {
	sum := sha256.Sum256([]byte(text))
	return strconv.FormatUint(binary.BigEndian.Uint64(sum[:])%uint64(max(n, 1)), 10)
}
