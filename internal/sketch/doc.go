// Package sketch is the checkpoint of the API: the exported signatures of the
// primitive that is to come, the allocator, and programs written against it, so
// that both can be read and mended before anything is built on them. The others
// have landed: pkg/semaphore, pkg/qlock.
//
// It is signatures only. It compiles and is never run: whatever can return an
// error returns one that says so, and everything else returns its zero value.
// It is internal, nobody can import it from outside, and nothing in Berth may
// import it either. The folder of a primitive is deleted when the package
// under pkg lands; its programs move to examples.
//
// The rules that the three packages follow, and that the tests here check
// where a test can:
//
//   - What there are few of, with settings of their own, is made from the
//     client and is a value: a Semaphore, a Pool. Locks come in any number and
//     have no settings, so their name is an argument.
//   - Verbs come in fours: the one that waits in line until ctx ends, Try...
//     that never waits, and Do and TryDo that run a function under the hold.
//   - Options are flat, by pointer, nil for the defaults, and stand behind all
//     other arguments but the function. Equal fields have equal types and
//     equal meaning in all packages. Every field's comment ends with its
//     default.
//   - Settings that choose are ints with a String method, whose zero value is
//     the default; answers that tell (a state, a reason) are strings.
//   - A read of what does not exist is no error: what it returns says so.
//   - Listings are iter.Seq2 whose second value is an error and ends them;
//     what is short and sorted is a slice.
//   - A call for operators says by its name that it asks nobody: Force..., or
//     ReleaseByID where a name has many holders.
package sketch
