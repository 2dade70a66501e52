package upgrade

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// follows says why kubeadm cannot upgrade from one version to the other: it takes one minor version at a time, and never goes back.
func follows(from, to string) error {
	switch {
	case !semver.IsValid(to) || strings.Count(to, ".") < 2:
		return fmt.Errorf("%q is not a version; use vMAJOR.MINOR.PATCH, such as v1.37.2", to)
	case semver.Compare(from, to) > 0:
		return fmt.Errorf("the cluster has %s, and kubeadm does not go back to %s; next: labctl undo list shows what was saved before an upgrade", from, to)
	case semver.Major(from) != semver.Major(to) || minor(to) > minor(from)+1:
		return fmt.Errorf("the cluster has %s, and kubeadm upgrades one minor version at a time; next: first labctl upgrade to v1.%d", from, minor(from)+1)
	}
	return nil
}

// minor is the second number of a version.
func minor(version string) int {
	_, text, _ := strings.Cut(semver.MajorMinor(version), ".")
	n, _ := strconv.Atoi(text)
	return n
}
