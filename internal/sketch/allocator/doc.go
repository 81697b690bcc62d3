// Package allocator is the sketch of pkg/allocator: pools of named resources
// (proxies, accounts, keys) that many processes share over Redis or Valkey.
// Signatures only; deleted when that package lands.
package allocator
