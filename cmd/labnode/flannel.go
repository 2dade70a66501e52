package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"

	"k8slab/lab/wait"
)

// subnetFile is what flanneld writes once it has the node's subnet.
const subnetFile = "/run/flannel/subnet.env"

// The delegate's configuration is kept per container, because a pod can outlive the subnet that it was made in.
const delegateDir = "/var/lib/cni/flannel"

// subnetBudget bounds the wait for flanneld, which starts beside the first pods of a node. kubelet's own retry would come much later.
const subnetBudget = 20 * time.Second

// flannelPlugin is a CNI meta-plugin: it hands a pod to the bridge plugin with the subnet that flanneld got for this node.
func flannelPlugin() {
	skel.PluginMainFuncs(skel.CNIFuncs{Add: flannelAdd, Del: flannelDel, Check: flannelCheck},
		version.All, "flannel: delegates to bridge with the subnet of "+subnetFile)
}

type flannelConf struct {
	types.NetConf
	Delegate map[string]any `json:"delegate"`
}

func flannelAdd(args *skel.CmdArgs) error {
	conf := flannelConf{}
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return fmt.Errorf("read the network configuration: %w", err)
	}
	var env map[string]string
	err := wait.For(context.Background(), "flanneld to write "+subnetFile, subnetBudget, 100*time.Millisecond, func(context.Context) (err error) {
		env, err = readEnv(subnetFile)
		return err
	})
	if err != nil {
		return err
	}
	delegate, err := bridgeConf(conf, env)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(delegateDir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(delegateDir, filepath.Base(args.ContainerID)), delegate, 0o600); err != nil {
		return err
	}
	result, err := invoke.DelegateAdd(context.Background(), "bridge", delegate, nil)
	if err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	return types.PrintResult(result, conf.CNIVersion)
}

func flannelDel(args *skel.CmdArgs) error {
	path := filepath.Join(delegateDir, filepath.Base(args.ContainerID))
	delegate, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) { // never added, or deleted before: CNI asks for success then
		return nil
	}
	if err != nil {
		return err
	}
	if err := invoke.DelegateDel(context.Background(), "bridge", delegate, nil); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	return os.Remove(path)
}

func flannelCheck(args *skel.CmdArgs) error {
	delegate, err := os.ReadFile(filepath.Join(delegateDir, filepath.Base(args.ContainerID)))
	if err != nil {
		return err
	}
	return invoke.DelegateCheck(context.Background(), "bridge", delegate, nil)
}

// bridgeConf is the bridge plugin's configuration: what the network configuration's delegate says, and flanneld's subnet.
func bridgeConf(conf flannelConf, env map[string]string) ([]byte, error) {
	for _, key := range []string{"FLANNEL_NETWORK", "FLANNEL_SUBNET", "FLANNEL_MTU", "FLANNEL_IPMASQ"} {
		if env[key] == "" {
			return nil, fmt.Errorf("%s has no %s", subnetFile, key)
		}
	}
	var mtu int
	if _, err := fmt.Sscan(env["FLANNEL_MTU"], &mtu); err != nil {
		return nil, fmt.Errorf("%s: FLANNEL_MTU: %w", subnetFile, err)
	}
	subnet, err := netip.ParsePrefix(env["FLANNEL_SUBNET"]) // flanneld writes the gateway's address in it
	if err != nil {
		return nil, fmt.Errorf("%s: FLANNEL_SUBNET: %w", subnetFile, err)
	}
	delegate := map[string]any{
		"cniVersion": conf.CNIVersion,
		"name":       conf.Name,
		"type":       "bridge",
		"mtu":        mtu,
		"ipMasq":     env["FLANNEL_IPMASQ"] != "true", // one of the two masquerades
		"isGateway":  true,
		"ipam": map[string]any{
			"type":   "host-local",
			"ranges": [][]map[string]string{{{"subnet": subnet.Masked().String()}}},
			"routes": []map[string]string{{"dst": env["FLANNEL_NETWORK"]}},
		},
	}
	for key, value := range conf.Delegate {
		delegate[key] = value
	}
	return json.Marshal(delegate)
}

func readEnv(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	env := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), "="); ok {
			env[key] = value
		}
	}
	return env, lines.Err()
}
