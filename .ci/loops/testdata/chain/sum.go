package chain

// sum calls a record's method, and need not know of it.
func sum(h holder) int { return h.held.read() }
