package join

import (
	"encoding/json"
	"net/netip"
	"os"
	"strings"
	"testing"
)

const realConf = cniConfigs + "/10-flannel.conflist"

func TestPlaceholderOnlyWhereThereIsNothing(t *testing.T) {
	f := newFakeMachine(t)
	before := f.digest()
	if err := f.ensureCNI(); err != nil || f.digest() != before {
		t.Fatalf("a machine with a pod network was changed: %v", err)
	}
	f.remove(realConf)
	if err := f.ensureCNI(); err != nil {
		t.Fatal(err)
	}
	text, err := f.Read(placeholderConf)
	var conf struct {
		Version string `json:"cniVersion"`
		Plugins []struct {
			Type string
			IPAM struct{ Subnet string }
		}
	}
	if err != nil || json.Unmarshal([]byte(text), &conf) != nil || conf.Version != "1.1.0" || conf.Plugins[0].Type != PlaceholderPlugin {
		t.Errorf("%v\n%s", err, text)
	}
	if subnet, err := netip.ParsePrefix(conf.Plugins[0].IPAM.Subnet); err != nil || !netip.MustParsePrefix("198.18.0.0/15").Overlaps(subnet) || subnet.Bits() != 24 {
		t.Errorf("subnet %q", conf.Plugins[0].IPAM.Subnet)
	}
	if target, err := os.Readlink(f.Path(placeholderLink)); err != nil || target == "" {
		t.Errorf("its plugin is not there: %v", err)
	}
	once := f.digest()
	if err := f.ensureCNI(); err != nil || f.digest() != once {
		t.Errorf("the second time something changed: %v", err)
	}
}

func TestPlaceholderGoesWhenTheRealOneLands(t *testing.T) {
	f := newFakeMachine(t)
	conf, _ := f.Read(realConf)
	f.remove(realConf)
	if err := f.ensureCNI(); err != nil {
		t.Fatal(err)
	}
	if err := f.removePlaceholder(); err != nil || !f.Exists(placeholderConf) {
		t.Fatalf("it went before there is a real one: %v", err)
	}
	f.write(realConf, conf)
	if err := f.removePlaceholder(); err != nil || f.Exists(placeholderConf) || f.Exists(placeholderLink) || !f.Exists(realConf) {
		t.Errorf("it did not go, or the real one did: %v", err)
	}
}

func TestPlaceholderSortsLastAndIsTheMachinesOwn(t *testing.T) {
	if !strings.HasPrefix(placeholderConf[len(cniConfigs)+1:], "99-") {
		t.Errorf("%s would win over a real configuration", placeholderConf)
	}
	seen := map[string]bool{}
	for _, id := range []string{testMachineID, "11111111111111111111111111111111", "22222222222222222222222222222222"} {
		text, err := placeholder(id)
		if err != nil {
			t.Fatal(err)
		}
		seen[string(text)] = true
	}
	if len(seen) != 3 {
		t.Error("machines share a subnet")
	}
}

// The temporary configuration never replaces a final one, and is the only one that is removed.
func TestTemporaryKubeletConfiguration(t *testing.T) {
	f := newFakeMachine(t)
	final := "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	f.write(kubeletConfig, final)
	f.bridgeKubelet(func(said string) { t.Errorf("it says %q", said) })
	if err := f.removeBridge(); err != nil {
		t.Fatal(err)
	}
	if text, _ := f.Read(kubeletConfig); text != final {
		t.Fatalf("the final configuration is %q", text)
	}
	f.remove(kubeletConfig)
	said := ""
	f.bridgeKubelet(func(s string) { said = s })
	if text, _ := f.Read(kubeletConfig); text != bridgeConfig || said == "" {
		t.Errorf("no temporary configuration: %q, %q", text, said)
	}
	if err := f.removeBridge(); err != nil || f.Exists(kubeletConfig) {
		t.Errorf("it is left: %v", err)
	}
}
