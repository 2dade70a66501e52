//go:build !labnode

package main

var packedLabnode map[string][]byte
