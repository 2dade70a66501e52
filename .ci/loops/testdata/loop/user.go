package loop

// use needs others, and no other needs it.
func use() int { return twice(shared.count) }
