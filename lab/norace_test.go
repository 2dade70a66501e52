//go:build !race

package lab

const pace = 1
