//go:build labnode

package main

import _ "embed"

var (
	//go:embed labnode.gz
	labnodeAMD64 []byte
	//go:embed labnode-arm64.gz
	labnodeARM64 []byte
)

// packedLabnode is labnode in gzip's format, which make puts here, by architecture.
var packedLabnode = map[string][]byte{"amd64": labnodeAMD64, "arm64": labnodeARM64}
