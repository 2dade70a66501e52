package main

import (
	"testing"

	"k8slab/lab/mention"
)

// No text tells anybody to run a labctl that does not exist.
func TestCommandsInTextsExist(t *testing.T) { mention.Check(t, "../..", new(app).rootCommand()) }
