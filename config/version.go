package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/semver"
)

// Pinned are the versions of Kubernetes whose parts have their checksums in labctl, oldest first. The last one is the default.
var Pinned = []string{"v1.34.4", "v1.35.4", "v1.36.3", "v1.37.2"}

// NextVersion is the pinned one of the minor version after that of the given one, "" for none.
func NextVersion(version string) string {
	for _, v := range Pinned {
		if semver.Compare(semver.MajorMinor(v), semver.MajorMinor(version)) > 0 {
			return v
		}
	}
	return ""
}

// WithVersion is the text of a cluster.yaml with another kubernetes.version. Nothing else of it changes. It is an error if the file has the key in a
// form that is not written on a line of its own.
func WithVersion(text []byte, version string) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	if len(root.Content) == 0 {
		return nil, errors.New("the file is empty")
	}
	file := root.Content[0]
	kubernetes := valueOf(file, "kubernetes")
	at := valueOf(kubernetes, "version")
	lines := bytes.SplitAfter(text, []byte("\n"))
	switch {
	case at.Line > 0:
		line := string(lines[at.Line-1])
		before, after := line[:at.Column-1], line[at.Column-1:]
		written := quotes[at.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle)] + at.Value
		if !strings.HasPrefix(after, written) {
			return nil, fmt.Errorf("line %d does not have %s as it is", at.Line, at.Value)
		}
		lines[at.Line-1] = []byte(before + strings.Replace(after, at.Value, version, 1))
	case kubernetes.Line > 0 && kubernetes.Style&yaml.FlowStyle == 0 && len(kubernetes.Content) > 0:
		first := kubernetes.Content[0]
		added := strings.Repeat(" ", first.Column-1) + "version: " + version + "\n"
		lines[first.Line-1] = append([]byte(added), lines[first.Line-1]...)
	case kubernetes.Line == 0:
		if !bytes.HasSuffix(text, []byte("\n")) {
			lines = append(lines, []byte("\n"))
		}
		lines = append(lines, []byte("\nkubernetes:\n  version: "+version+"\n"))
	default:
		return nil, errors.New("the section kubernetes is on one line and has no version")
	}
	changed := bytes.Join(lines, nil)
	c, _, err := Parse("cluster.yaml", changed)
	if err == nil && c.Kubernetes.Version != version {
		err = errors.New("the version is not where it was looked for")
	}
	return changed, err
}

var quotes = map[yaml.Style]string{yaml.SingleQuotedStyle: "'", yaml.DoubleQuotedStyle: `"`}
