package diagnose

import (
	"slices"
	"testing"
	"time"

	"k8slab/lab/diagnose/fact"
	joining "k8slab/lab/join"
	"k8slab/lab/symptom"
)

// What a machine's own measurements show, on a healthy cluster of three control planes and two workers.
func TestOrgans(t *testing.T) {
	organ := func(f *fact.Facts, o fact.Organ) { m := f.Machine("w1"); m.Inside.Organs = append(m.Inside.Organs, o) }
	for _, tt := range []struct {
		name   string
		damage func(*fact.Facts)
		want   []want
		level  symptom.Level
	}{
		{"all work", func(f *fact.Facts) { organ(f, fact.Organ{Name: fact.OrganSandbox}) }, nil, ""},
		{"a measurement names the cause", func(f *fact.Facts) {
			organ(f, fact.Organ{Name: fact.OrganForwarding, Error: "dropped",
				Named: []joining.Defect{{Symptom: symptom.FirewallBlocked, Where: "nftables", Text: "dropped", Hint: "let it through"}}})
		}, []want{{id: symptom.FirewallBlocked, node: "w1"}}, symptom.Fail},
		{"the runtime's own words name the cause", func(f *fact.Facts) {
			organ(f, fact.Organ{Name: fact.OrganSandbox, Error: `run a sandbox: failed to setup network for sandbox "x": plugin type="flannel" failed (add): ` +
				`failed to load flannel 'subnet.env' file: open /run/flannel/subnet.env: no such file or directory`})
		}, []want{{id: symptom.FlannelSubnetEnvMissing, node: "w1"}}, symptom.Fail},
		{"nothing fails of it yet", func(f *fact.Facts) {
			organ(f, fact.Organ{Name: fact.OrganCertificates, Named: []joining.Defect{{Symptom: symptom.CertificateExpired, Where: "port 10259", Text: "old", Warn: true}}})
		}, []want{{id: symptom.CertificateExpired, node: "w1"}}, symptom.Warn},
		{"a warning does not make less of a failure", func(f *fact.Facts) {
			organ(f, fact.Organ{Name: fact.OrganCertificates, Named: []joining.Defect{
				{Symptom: symptom.CertificateExpired, Where: "port 6443", Text: "old"}, {Symptom: symptom.CertificateExpired, Where: "port 10259", Text: "old", Warn: true}}})
		}, []want{{id: symptom.CertificateExpired, node: "w1"}}, symptom.Fail},
		{"a join is at work", func(f *fact.Facts) {
			f.Machine("w1").Inside.Facts.JoinUnit = "active"
			organ(f, fact.Organ{Name: fact.OrganForwarding, Named: []joining.Defect{{Symptom: symptom.FirewallBlocked, Where: "nftables", Text: "dropped"}}})
		}, nil, ""},
		{"a unit does not start with the machine", func(f *fact.Facts) { starts(f.Machine("w1"), "containerd", "disabled") },
			[]want{{id: symptom.FileChanged, node: "w1"}}, symptom.Warn},
		{"a unit cannot start again", func(f *fact.Facts) { starts(f.Machine("w1"), "containerd", "masked") },
			[]want{{id: symptom.FileChanged, node: "w1"}}, symptom.Fail},
		{"kubelet's own certificate is over, and the API server does not know it any more", func(f *fact.Facts) {
			m := f.Machine("w1")
			m.Inside.Certificates = append(m.Inside.Certificates, fact.Certificate{File: "/var/lib/kubelet/pki/kubelet-client-current.pem", NotAfter: midday.Add(-time.Minute)})
			fail(m, joining.Check{ID: "node", Result: joining.Blocked, Symptom: symptom.APIServerUnreachable, Evidence: "get node w1: Unauthorized"})
			journal(m, "kubelet", time.Minute, `E0301 11:59:00.1 7 reflector.go:1] "Failed to watch" err="failed to list *v1.Node: Unauthorized"`)
		}, []want{{id: symptom.CertificateExpired, node: "w1"}, {id: symptom.APIServerUnreachable, node: "w1", becauseOf: symptom.CertificateExpired}}, symptom.Fail},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := healthyFacts(2)
			tt.damage(&f)
			found := Judge(f)
			if got := outlined(found); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%v\nwant\n%v", got, tt.want)
			}
			if len(found) > 0 && (found[0].Level != tt.level || found[0].Meaning == "" || found[0].Hint == "") {
				t.Errorf("%+v", found[0])
			}
		})
	}
}

func starts(m *fact.Machine, unit, how string) {
	u := m.Inside.Units[unit]
	u.Boot = how
	m.Inside.Units[unit] = u
}

// What a message may mean is no cause by itself: runc, of which the file is empty, says nothing of drivers.
func TestGuessIsNoCause(t *testing.T) {
	const says = `failed to start sandbox "c6": failed to create containerd task: failed to create shim task: OCI runtime create failed: unable to retrieve OCI runtime error (open /run/containerd/c6/log.json: no such file or directory): fork/exec /usr/sbin/runc: exec format error`
	if id := specific(says, ""); id != "" {
		t.Error(id)
	}
	if id := specific(`runc create failed: expected cgroupsPath to be of format "slice:prefix:name" for systemd cgroups, got "/kubepods" instead`, ""); id != symptom.CgroupDriverMismatch {
		t.Error(id)
	}
}
