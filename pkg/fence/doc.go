// Package fence refuses writes of an older hold. It stands beside the resource that a
// lock, or a semaphore of capacity 1, protects.
//
// A process that is stopped past its lease wakes up believing that it still holds, and
// may write before it looks. No lock can prevent that. But each grant of a name has a
// greater fence than all before it. So pass the fence along with each write, and refuse
// a write once a greater fence was seen: then the late write is refused as soon as the
// successor has written.
//
//	err := guard.Admit(ctx, "invoice:42", hold.Fence()) // ErrStale: a later hold was here
//
// The same fence is admitted any number of times: one hold writes often, and a
// re-entry has the fence of its hold. So compare with <=, and never with <.
//
// # Check and write in one step
//
// A check and a later write are two steps. Between them the process may be stopped,
// another hold may be checked and write, and the older write comes last after all. That
// is impossible only if check and write are one step. In this order of preference:
//
//   - In a database, keep the fence in the row, and check it in the statement
//     that writes; see below.
//   - In Redis, let one script check and write: put [Lua] before your own.
//   - In one process that owns the resource, such as a server whose clients send
//     their fences along: [Memory.Do], or [Memory.Admit] while a mutex of your
//     own is held around check and write.
//   - If the resource can do none of these, such as a printer or somebody else's API:
//     [Redis.Admit] right before each step. A late write can then slip through only in
//     the time from the check to the effect. That time does not go away.
//
// In each case put the fence there at the start of a hold, before the first read that a
// write will depend on. Only from then on is an older hold refused: otherwise it may
// still write between that read and that write.
//
// # In SQL
//
// The row has a column fence, a 64-bit integer, 0 at first:
//
//	UPDATE accounts SET fence = $1 WHERE id = $2 AND fence <= $1
//	SELECT balance FROM accounts WHERE id = $1
//	UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
//
// Look at the number of rows after each update: none means that a greater fence was
// there, or no such row. A driver may count only the rows that changed (MySQL without
// clientFoundRows): then a repeated update counts none either. Refuse a fence of 0
// before asking: a context outside of a hold has it. As long as an older hold could
// insert a row again, mark the row as deleted instead of deleting it. The folder
// examples/fence has all of this in a program.
//
// # What a guard does not do
//
//   - It does not know who holds. A holder whose lease is over is admitted until its
//     successor is.
//   - It compares fences of one lock only. Fences of two locks, of a lock and a
//     semaphore, or of two namespaces or servers say nothing about each other. With
//     several holders at once, as in a semaphore of a higher capacity, it refuses all
//     but the latest.
//   - It cannot remember what was lost. [Memory] begins anew with its process, and
//     [Redis] with a flush, an eviction, or a failover that loses the last writes; the
//     next fence is then admitted, however old. A fence that is kept with the data, in
//     the row or in the hash, is lost only with the data.
package fence
