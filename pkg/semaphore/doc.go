// Package semaphore is a counting semaphore that processes share over Redis or
// Valkey, first come, first served.
package semaphore
