package main

import (
	"os"

	"github.com/spf13/cobra"

	"k8slab/lab/image"
)

// asRoot lets a user build images, which needs root: it runs this command, or the one of args, as root of a user namespace. done is false for
// root, and if there can be no such namespace: then the caller goes on with the images in the cache.
func (a *app) asRoot(cmd *cobra.Command, args ...string) (done bool, err error) {
	if os.Geteuid() == 0 {
		return false, nil
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	if len(args) == 0 {
		args = a.args
	} else if a.labName != "" {
		args = append([]string{"--lab", a.labName}, args...)
	} else {
		args = append([]string{"--config", a.file}, args...)
	}
	argv, err := image.AsRoot(cmd.Context(), append([]string{self}, args...))
	if err != nil {
		return false, nil
	}
	return true, a.program(cmd, argv)
}
