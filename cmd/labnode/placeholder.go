package main

import (
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"k8slab/lab/join"
)

// placeholderPlugin is the CNI plugin that stands for the pod network until that is there: it gives no pod an address, says so to a runtime
// that asks for its status, and lets what it never made be deleted.
func placeholderPlugin() {
	notYet := types.NewError(types.ErrTryAgainLater, "the pod network is not here yet", "its configuration comes after "+join.PlaceholderPlugin+"'s")
	unavailable := types.NewError(types.ErrPluginNotAvailable, "the pod network is not here yet", "")
	skel.PluginMainFuncs(skel.CNIFuncs{
		Add:    func(*skel.CmdArgs) error { return notYet },
		Del:    func(*skel.CmdArgs) error { return nil },
		Check:  func(*skel.CmdArgs) error { return notYet },
		Status: func(*skel.CmdArgs) error { return unavailable },
	}, version.All, join.PlaceholderPlugin+": until the pod network is there")
}
