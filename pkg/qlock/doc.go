// Package qlock is a lock with a line that processes share over Redis or Valkey.
package qlock
