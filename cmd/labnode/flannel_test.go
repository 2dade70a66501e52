package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

// env is what flanneld writes, changed by more.
func env(more map[string]string) map[string]string {
	all := map[string]string{
		"FLANNEL_NETWORK": "10.244.0.0/16", "FLANNEL_SUBNET": "10.244.3.1/24", "FLANNEL_MTU": "1450", "FLANNEL_IPMASQ": "true",
	}
	maps.Copy(all, more)
	return all
}

func TestBridgeConf(t *testing.T) {
	parse := func(text string) (v map[string]any) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	const ipam = `"ipam":{"type":"host-local","ranges":[[{"subnet":"10.244.3.0/24"}]],"routes":[{"dst":"10.244.0.0/16"}]}`
	const head = `{"cniVersion":"1.0.0","name":"cbr0","type":"bridge","mtu":1450,"isGateway":true,`
	tests := []struct {
		name     string
		delegate string
		env      map[string]string
		want     string
	}{
		{"flanneld masquerades", `{}`, env(nil), head + `"ipMasq":false,` + ipam + `}`},
		{"the bridge masquerades", `{}`, env(map[string]string{"FLANNEL_IPMASQ": "false"}), head + `"ipMasq":true,` + ipam + `}`},
		{"delegate", `{"hairpinMode":true,"isDefaultGateway":true}`, env(nil),
			head + `"ipMasq":false,"hairpinMode":true,"isDefaultGateway":true,` + ipam + `}`},
		{"the delegate has the last word", `{"ipMasq":true,"forceAddress":true}`, env(nil), head + `"ipMasq":true,"forceAddress":true,` + ipam + `}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conf := flannelConf{NetConf: types.NetConf{CNIVersion: "1.0.0", Name: "cbr0"}, Delegate: parse(tt.delegate)}
			got, err := bridgeConf(conf, tt.env)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(parse(string(got)), parse(tt.want)) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestBridgeConfRefuses(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		want string
	}{
		{"empty", map[string]string{}, "FLANNEL_NETWORK"},
		{"half written", env(map[string]string{"FLANNEL_IPMASQ": ""}), "FLANNEL_IPMASQ"},
		{"no subnet", env(map[string]string{"FLANNEL_SUBNET": "10.244.3.1"}), "FLANNEL_SUBNET"},
		{"no number", env(map[string]string{"FLANNEL_MTU": "big"}), "FLANNEL_MTU"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := bridgeConf(flannelConf{}, tt.env)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), subnetFile) {
				t.Errorf("got %s, %v, want an error about %s", got, err, tt.want)
			}
		})
	}
}

func TestReadEnv(t *testing.T) {
	path := filepath.Join(t.TempDir(), "subnet.env")
	text := "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.3.1/24\n\nno pair\nX=a=b\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readEnv(path)
	if want := env(map[string]string{"X": "a=b"}); err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := readEnv(path + ".none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// CNI asks for the removal of what was never there, and more than once.
func TestDelOfUnknownContainer(t *testing.T) {
	for range 2 {
		if err := flannelDel(&skel.CmdArgs{ContainerID: "a-container-that-no-test-ever-made"}); err != nil {
			t.Error(err)
		}
	}
}

func TestAddWantsJSON(t *testing.T) {
	if err := flannelAdd(&skel.CmdArgs{StdinData: []byte("nonsense")}); err == nil || !strings.Contains(err.Error(), "network configuration") {
		t.Errorf("got %v", err)
	}
}

// The configuration that the image has is one that this plugin takes.
func TestImagesConfiguration(t *testing.T) {
	data, err := os.ReadFile("../../lab/image/files/etc/cni/net.d/10-flannel.conflist")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		CNIVersion, Name string
		Plugins          []json.RawMessage
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	var conf flannelConf
	if err := json.Unmarshal(list.Plugins[0], &conf); err != nil || conf.Type != "flannel" || list.Name == "" || list.CNIVersion == "" {
		t.Fatalf("%+v, %v", conf, err)
	}
	if _, err := bridgeConf(conf, env(nil)); err != nil {
		t.Error(err)
	}
}
