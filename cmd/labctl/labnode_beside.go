//go:build !labnode

package main

var packedLabnode []byte
