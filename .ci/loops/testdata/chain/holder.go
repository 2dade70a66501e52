package chain

type holder struct{ held reader }

type reader interface{ read() int }
