// Package semaphore is the sketch of pkg/semaphore: a strict-FIFO counting
// semaphore over Redis or Valkey. Signatures only; deleted when that package
// lands.
package semaphore
