package symptom

// Brings reports whether a brings b about, directly or through others, by the catalogue's graph of causes.
func Brings(a, b ID) bool { return reach[a][b] }

// General reports whether so many causes bring the failure about that it names a place to look rather than a cause.
func General(id ID) bool { return general[id] }
