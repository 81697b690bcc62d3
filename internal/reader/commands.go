package reader

// ForDrains is what Drains sends beside those, which a user that reads need not have.
const ForDrains = "HSCAN"

// Commands are those that a Reader sends beside HELLO, which needs no permission. Without INFO, which is not among
// them, a Reader does not know whether the server is full or refuses writes; without TYPE, not which key something else
// has written.
var Commands = []string{"HMGET", "MGET", "SCAN", "TIME", "ZCOUNT", "ZMSCORE", "ZRANGE", "ZRANGEBYSCORE", "ZRANK"}
