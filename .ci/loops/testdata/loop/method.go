package loop

func (c *counter) add(n int) { c.count += twice(n) }
