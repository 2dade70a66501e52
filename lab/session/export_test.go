package session

// RestoredFile is for the tests outside of the package.
const RestoredFile = restoredFile
