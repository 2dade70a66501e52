//go:build labnode

package main

import _ "embed"

// packedLabnode is labnode in gzip's format, which make puts here.
//
//go:embed labnode.gz
var packedLabnode []byte
