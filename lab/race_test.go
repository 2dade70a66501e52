//go:build race

package lab

// pace is how many places a test of every place goes on by. The race detector makes each run six times as long, and looks for something else:
// the same code runs at each.
const pace = 9
