package symptom

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What With writes, Commands reads, word for word; and what cannot be written stays a placeholder, which is no command.
func TestRemedyValues(t *testing.T) {
	tests := []struct {
		value, text string
		argv        string // "" is none
	}{
		{"/var/lib/kubelet", "umount --lazy /var/lib/kubelet", `["umount" "--lazy" "/var/lib/kubelet"]`},
		{"/a b;reboot", "umount --lazy '/a b;reboot'", `["umount" "--lazy" "/a b;reboot"]`},
		{"/$(reboot)", "umount --lazy '/$(reboot)'", `["umount" "--lazy" "/$(reboot)"]`},
		{"/it's", "umount --lazy DIR", ""},
		{"/a`reboot`", "umount --lazy DIR", ""},
		{"/a\nb", "umount --lazy DIR", ""},
		{"/a\u2028b", "umount --lazy DIR", ""},
		{"", "umount --lazy DIR", ""},
		{"--all", "umount --lazy --all", ""},
	}
	for _, tt := range tests {
		hint := "It is full: " + Unmount.With(tt.value) + "; or `crictl rmi --prune`."
		if !strings.Contains(hint, "`"+tt.text+"`") {
			t.Errorf("%q: %s", tt.value, hint)
		}
		got := ""
		for _, c := range Unmount.Commands(hint) {
			got += fmt.Sprintf("%q", c.Argv)
		}
		if got != tt.argv {
			t.Errorf("%s: got %s, want %s", hint, got, tt.argv)
		}
	}
}

func TestCommandsOfHints(t *testing.T) {
	tests := []struct {
		hint, commands string
	}{
		{"`systemctl status containerd`, then `systemctl enable --now containerd`", "systemctl enable --now containerd"},
		{DeleteRule.With("inet", "x", "in", "3") + ", " + DeleteRule.With("inet", "x", "out", "4"),
			"nft delete rule inet x in handle 3; nft delete rule inet x out handle 4"},
		{AcceptPackets.With("inet", "x", "forward"), "nft chain inet x forward { policy accept ; }"},
		{RemoveProxyLine.With("/etc/default/kubelet"), "sed -i /https_proxy=/Id /etc/default/kubelet; systemctl daemon-reload; systemctl restart kubelet"},
		{"umount --lazy /x", ""},
		{"`umount /x`", ""},
		{"`umount --lazy /x /y`", ""},
		{"`kubeadm reset -f`, `rm -rf /etc/cni/net.d`", ""},
		{"`systemctl restart kubelet && reboot`", ""},
		{"`kubectl delete node NAME`", ""},
		{"`kubectl delete node w1`", "kubectl delete node w1"},
	}
	for _, tt := range tests {
		var got []string
		for _, c := range Commands(tt.hint) {
			got = append(got, c.String())
		}
		if text := strings.Join(got, "; "); text != tt.commands {
			t.Errorf("%s: got %q, want %q", tt.hint, text, tt.commands)
		}
	}
	if on := RenewClusterInfo.Commands(RenewClusterInfo.Text); len(on) != 2 || !on[1].ControlPlane {
		t.Errorf("%+v", on)
	}
}

// Every word in capitals that stands for a value is known, and every remedy can be filled in.
func TestRemediesAreWhole(t *testing.T) {
	capitals := regexp.MustCompile(`\b[A-Z]{3,}\b`)
	for _, r := range remedies {
		for _, word := range capitals.FindAllString(r.Text, -1) {
			if !placeholder.MatchString(word) {
				t.Errorf("%s: %s is no placeholder", r.Text, word)
			}
		}
		values := slices.Repeat([]string{"a value"}, len(placeholder.FindAllString(r.Text, -1)))
		if made, want := r.Commands(r.With(values...)), len(inQuotes.FindAllString(r.Text, -1)); len(made) != want || want == 0 {
			t.Errorf("%s: %q", r.Text, made)
		}
		if made := r.Commands(r.Text); len(values) > 0 && len(made) == len(inQuotes.FindAllString(r.Text, -1)) {
			t.Errorf("%s: unfilled, it has the commands %q", r.Text, made)
		}
	}
}
