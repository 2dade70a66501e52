package cluster

import "testing"

func TestFlannelSubnet(t *testing.T) {
	for text, want := range map[string]string{
		"FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.3.1/24\nFLANNEL_MTU=1450\n": "10.244.3.0/24",
		"FLANNEL_SUBNET=10.244.3.1":            "",
		"FLANNEL_NETWORK=10.244.0.0/16\n":      "",
		"":                                     "",
		"  FLANNEL_SUBNET=10.244.30.1/24 \r\n": "10.244.30.0/24",
	} {
		if got := FlannelSubnet(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
