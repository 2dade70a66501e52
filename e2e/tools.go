//go:build tools

package e2e

import _ "github.com/onsi/ginkgo/v2/ginkgo" // keeps the runner's version and its dependencies in go.mod
