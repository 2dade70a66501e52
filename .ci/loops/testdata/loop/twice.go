package loop

// twice names nothing of method.go but the method.
func twice(n int) int {
	if n > 1 {
		shared.add(1)
	}
	return 2 * n
}
