package kube

import (
	"encoding/json"
	"fmt"
	"io"
)

// How `labnode probe`, the pod that proves the pod network, is asked what it cannot reach.
const (
	ProbePort          = 8080
	ProbePath          = "/check"
	ProbeTokenVariable = "K8SLAB_TOKEN" // in its environment; the question must show the token
)

// ProbeAnswer reads what a probe cannot reach.
func ProbeAnswer(body io.Reader) (failures []string, err error) {
	if err := json.NewDecoder(io.LimitReader(body, 1<<20)).Decode(&failures); err != nil {
		return nil, fmt.Errorf("read the probe's answer: %w", err)
	}
	return failures, nil
}
