package reader

import (
	"slices"
	"strings"
	"testing"

	"k8slab/lab/symptom"
)

const (
	fetch = `Nov 24 21:51:02 w2 containerd[205]: time="2026-11-24T21:51:02Z" level=info msg="fetch failed" error="failed to do request: Head \"https://registry-1.docker.io/v2/library/nginx/manifests/latest\": dial tcp: lookup registry-1.docker.io: Temporary failure in name resolution" host=registry-1.docker.io` + "\n"
	pull  = `Nov 24 21:51:03 w2 kubelet[301]: E1124 21:51:03.1 301 log.go:32] "PullImage from image service failed" err="failed to pull and unpack image \"docker.io/library/nginx:latest\": failed to resolve reference \"docker.io/library/nginx:latest\"" image="nginx"` + "\n"
	wait  = `Nov 24 21:51:09 w2 kubelet[301]: E1124 21:51:09.1 301 pod_workers.go:1324] "Error syncing pod, skipping" err="failed to \"StartContainer\" for \"web\" with ImagePullBackOff: \"Back-off pulling image \\\"nginx\\\": ErrImagePull\"" pod="default/web" podUID="8a"` + "\n"
	calm  = "Nov 24 21:52:00 w2 kubelet[301]: I1124 21:52:00.1 301 server.go:1] \"Starting to listen\"\n"

	wants  = "Nov 24 21:51:02 w1 kernel: kubelet invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=-999\n"
	trace  = "Nov 24 21:51:02 w1 kernel:  oom_kill_process+0x21c/0x3f0\n"
	killed = "Nov 24 21:51:02 w1 kernel: Memory cgroup out of memory: Killed process 812 (kubelet) total-vm:1412kB\n"
)

// An API server that has just started does not know yet which pods a node has.
func TestNodeAuthorizerThatLags(t *testing.T) {
	const line = `Nov 26 14:24:08 cp1 kubelet[2364]: E1126 14:24:08.758645 2364 reflector.go:227] "Failed to watch" err="configmaps \"kube-proxy\" is forbidden: User \"system:node:cp1\" cannot watch resource \"configmaps\" in API group \"\" in the namespace \"kube-system\"`
	if got := symptomsOf(judge(t, line+`: no relationship found between node 'cp1' and this object" type="*v1.ConfigMap"`+"\n"+calm)); len(got) > 0 {
		t.Errorf("a lag: %v", got)
	}
	if got := symptomsOf(judge(t, line+`" type="*v1.ConfigMap"`+"\n")); len(got) == 0 {
		t.Error("a missing right is not found")
	}
}

// An API server that starts on a slow computer refuses tokens that it believes a moment later. No authority is wrong.
func TestTokenThatIsNotBelievedYet(t *testing.T) {
	const line = `2026-11-28T14:14:12.137329115Z stderr F E1128 14:14:12.136844       1 authentication.go:75] "Unable to authenticate the request" err="`
	const ended = `2026-11-28T14:14:13.137329115Z stderr F F1128 14:14:13.136844       1 hooks.go:210] PostStartHook "start-service-ip-repair-controllers" failed: unable to perform initial IP and Port allocation check` + "\n"
	if got := symptomsOf(judge(t, line+`invalid bearer token"`+"\n"+ended)); len(got) > 0 {
		t.Errorf("a token: %v", got)
	}
	if got := symptomsOf(judge(t, line+`[x509: certificate signed by unknown authority]"`+"\n")); !slices.Contains(got, symptom.X509UnknownAuthority) {
		t.Errorf("a certificate: %v", got)
	}
}

// containerd reads a configuration of the pod network at the first of several writes, and does not say that it is whole later.
func TestConfigurationThatIsBeingWritten(t *testing.T) {
	const (
		failed  = `msg="failed to reload cni configuration after receiving fs change event(WRITE         \"/etc/cni/net.d/10-flannel.conflist\")" `
		failure = `error="cni config load failed: failed to load CNI config list file /etc/cni/net.d/10-flannel.conflist: error parsing configuration list: `
		written = `Nov 28 06:43:29 w2 containerd[218]: time="2026-11-28T06:43:29Z" level=error ` + failed + failure
	)
	if got := symptomsOf(judge(t, written+`unexpected end of JSON input: invalid cni config: failed to load cni config"`+"\n")); len(got) > 0 {
		t.Errorf("half of it: %v", got)
	}
	if got := symptomsOf(judge(t, written+`invalid character 'x': invalid cni config: failed to load cni config"`+"\n")); !slices.Contains(got, symptom.CNIStaleConfig) {
		t.Errorf("what cannot be read: %v", got)
	}
}

func constraint(memcg string) string {
	return "Nov 24 21:51:02 w1 kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=" + memcg +
		",task_memcg=" + memcg + "/system.slice/kubelet.service,task=kubelet,pid=812,uid=0\n"
}

func TestUsersOwnPodsAreNoCause(t *testing.T) {
	for name, text := range map[string]string{
		"a pull":        fetch + pull + wait + calm,
		"again":         strings.Repeat(fetch+pull+wait, 20) + strings.Repeat(calm, 20),
		"alone":         wait,
		"events of all": "NAMESPACE  LAST SEEN  TYPE  REASON  OBJECT  MESSAGE\ndefault       2m          Warning   Failed    pod/web   Failed to pull image \"nginx\": failed to resolve reference \"docker.io/library/nginx:latest\"\ndefault       2m          Warning   Failed    pod/web   Error: ErrImagePull\n",
		"events of one": "LAST SEEN   TYPE      REASON    OBJECT    MESSAGE\n2m          Warning   Failed    pod/web   Error: ImagePullBackOff\n",
		"a list of all": "NAMESPACE     NAME                      READY   STATUS             RESTARTS   AGE\nshop          web-7d5b5c6d8f-x2x2x      0/1     ImagePullBackOff   0          9m\n",
		"a list":        "NAME   READY   STATUS         RESTARTS   AGE\nweb    0/1     ErrImagePull   0          9m\n",
		"its memory":    "NAMESPACE   NAME   READY   STATUS      RESTARTS   AGE\ndefault     web    0/1     OOMKilled   3          9m\n",
		"described":     "  Warning  Failed   12s   kubelet  Failed to pull image \"nginx\": rpc error: code = Unknown desc = failed to pull and unpack image\n  Warning  Failed   12s   kubelet  Error: ErrImagePull\n",
	} {
		if got := symptomsOf(judge(t, text)); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	system := strings.NewReplacer("default/web", "kube-system/kube-proxy-7k", "library/nginx", "flannel/flannel", `image="nginx"`,
		`image="flannel"`, `\"nginx`, `\"flannel`)
	for name, text := range map[string]string{
		"a system pod's":          system.Replace(fetch + pull + wait),
		"beside a user's":         strings.Repeat(fetch+pull+wait, 3) + system.Replace(pull),
		"the sandbox of a user's": `E1124 21:51:09.1 301 pod_workers.go:1324] "Error syncing pod, skipping" err="failed to pull image \"registry.k8s.io/pause:3.10\": not found" pod="default/web"` + "\n",
		"nobody knows whose":      "Error: ErrImagePull\n",
	} {
		if got := symptomsOf(judge(t, text)); !slices.Contains(got, symptom.ImagePullFailure) &&
			!slices.Contains(got, symptom.SandboxImageMisconfigured) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The failed pull of a user's image does not explain other failures.
func TestUsersPullExplainsNothing(t *testing.T) {
	text := strings.Repeat(fetch+pull+wait, 3) + strings.Repeat("E1124 21:51:10.1 301 kubelet.go:1] \"Container runtime network not ready\" networkReady=\"NetworkReady=false reason:NetworkPluginNotReady\"\n", 3)
	if got := symptomsOf(unsuspected(judge(t, text))); !slices.Equal(got, []symptom.ID{symptom.CNINotInitialized}) {
		t.Errorf("%v", got)
	}
}

func TestOfAnotherMachine(t *testing.T) {
	const inside = "Nov 24 21:50:00 w1 systemd[1]: Detected virtualization lxc-libvirt.\n"
	report := func(memcg string) string { return wants + trace + constraint(memcg) + killed }
	for _, tt := range []struct {
		name, text string
		want       []symptom.ID
	}{
		{"the node's own", report("/"), []symptom.ID{symptom.OutOfMemory}},
		{"its kubelet's", report("/system.slice"), []symptom.ID{symptom.OutOfMemory}},
		{"another container's", report("/machine.slice/lab2-w1.libvirt-lxc"), nil},
		{"a pod's, of its own limit", report("/kubepods.slice/kubepods-burstable.slice"), nil},
		{"the node's own, then another's", report("/") + report("/machine/lab2-w1.libvirt-lxc"), []symptom.ID{symptom.OutOfMemory}},
		{"another's, then the node's own", report("/machine/lab2-w1.libvirt-lxc") + report("/"), []symptom.ID{symptom.OutOfMemory}},
		{"the computer's, read in a container", inside + report("/"), nil},
		{"the computer's, read before systemd began", report("/") + inside, nil},
		{"a container's own service", inside + "Nov 24 21:51:02 w1 systemd[1]: kubelet.service: Failed with result 'oom-kill'.\n",
			[]symptom.ID{symptom.OutOfMemory}},
	} {
		got := symptomsOf(unsuspected(judge(t, strings.Repeat(calm, 10)+tt.text+calm)))
		if len(tt.want) == 0 && len(got) > 0 || len(tt.want) > 0 && !slices.Contains(got, tt.want[0]) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestStartsAndEnds(t *testing.T) {
	const (
		once  = `E1124 21:33:58.1 301 kubelet.go:1680] "Image garbage collection failed once. Stats initialization may not have completed yet" err="invalid capacity 0 on image filesystem"` + "\n"
		event = "default       9m          Warning   InvalidDiskCapacity   node/cp1   invalid capacity 0 on image filesystem\n"
		gone  = `E1124 21:40:00.1 301 x.go:1] "Failed" err="failed to write: openat2 /sys/fs/cgroup/cpu,cpuacct/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod3f8a3a52_9a1d.slice/cpu.cfs_quota_us: no such file or directory"` + "\n"
		ended = `W1124 21:40:00.1 301 container.go:606] Failed to update stats for container "/kubepods.slice/cri-containerd-x.scope": openat2 /sys/fs/cgroup/memory/kubepods.slice/cri-containerd-` +
			"43292913f26767fe834aabf4c6b3f9ca19e68c42a8ae8a5cc16000b36115bbba.scope/memory.kmem.tcp.max_usage_in_bytes: no such file or directory, continuing to push stats\n"
		lacks = `E1124 21:40:00.1 301 x.go:1] "Failed" err="failed to write: openat2 /sys/fs/cgroup/cpu,cpuacct/kubepods.slice/cpu.cfs_quota_us: no such file or directory"` + "\n"
	)
	for name, text := range map[string]string{
		"each start of a kubelet": strings.Repeat(once+calm, 6), "events of each start": strings.Repeat(event, 6),
		"the cgroup of a pod that ended": gone + strings.Repeat(calm, 5), "of a container": ended + strings.Repeat(calm, 5),
	} {
		if got := symptomsOf(judge(t, text)); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := symptomsOf(judge(t, lacks+strings.Repeat(calm, 5))); !slices.Contains(got, symptom.CgroupControllerMissing) {
		t.Errorf("a file that the node lacks: %v", got)
	}
}

// What etcd has recovered from is no cause. Most of such complaints are from its start, when it replays its log.
func TestEtcdGoesOn(t *testing.T) {
	const (
		learners = `{"level":"error","ts":"2026-11-25T13:22:10.816759Z","caller":"etcdserver/server.go:2090","msg":"Validation on configuration change failed","shouldApplyV3":false,"error":"membership: too many learner members in cluster"}` + "\n"
		removed  = `{"level":"warn","ts":"2026-11-25T13:22:10.798352Z","caller":"membership/cluster.go:511","msg":"skipped attributes update of removed member","cluster-id":"6fe2e8","updated-peer-id":"4530982c773d2260"}` + "\n"
		corrupt  = `{"level":"error","ts":"2026-11-25T13:19:49.289213Z","logger":"bbolt","caller":"bbolt@v1.4.3/db.go:292","msg":"both meta pages are invalid, meta0: invalid database, meta1: invalid database"}` + "\npanic: failed to open database\n"
		alone    = `{"level":"warn","ts":"2026-11-25T16:29:26.430362Z","caller":"etcdserver/server.go:1830","msg":"failed to publish local member to cluster through raft","local-member-id":"4530982c773d2260","error":"etcdserver: request timed out"}` + "\n"
		unknown  = `{"level":"warn","ts":"2026-11-25T16:29:57.364224Z","caller":"rafthttp/peer_status.go:66","msg":"peer became inactive (message send to peer failed)","peer-id":"550ea4d64bb81a06","error":"failed to dial 550ea4d64bb81a06 on stream Message (peer 550ea4d64bb81a06 failed to find local node d9bba733b0f852b5)"}` + "\n"
		active   = `{"level":"info","ts":"2026-11-25T16:29:57.502703Z","caller":"rafthttp/peer_status.go:53","msg":"peer became active","peer-id":"550ea4d64bb81a06"}` + "\n"
		behind   = `{"level":"warn","ts":"2026-11-25T16:47:25.639184Z","caller":"etcdhttp/peer.go:161","msg":"failed to promote a member","member-id":"aa63af894a23db4e","error":"etcdserver: can only promote a learner member which is in sync with leader"}` + "\n" +
			`{"level":"error","ts":"2026-11-25T16:47:25.638636Z","caller":"etcdserver/server.go:1601","msg":"rejecting promote learner: learner is not ready","learner-ready-percent":0,"ready-percent-threshold":0.9}` + "\n"
		promoted = `{"level":"info","ts":"2026-11-25T16:47:26.196076Z","caller":"membership/cluster.go:550","msg":"promote member","cluster-id":"6f8e055880704249","local-member-id":"d9bba733b0f852b5","promoted-member-id":"aa63af894a23db4e"}` + "\n"
		serves   = `{"level":"info","ts":"2026-11-25T13:22:11.224504Z","caller":"etcdserver/server.go:1820","msg":"published local member to cluster through raft","local-member-id":"4530982c773d2260"}` + "\n"
	)
	for _, tt := range []struct {
		text string
		want []symptom.ID
	}{
		{learners + removed + serves, nil}, {corrupt + serves, nil}, {alone + serves, nil}, {unknown + active, nil}, {behind + promoted, nil},
		{behind, []symptom.ID{symptom.EtcdLearnerNotInSync}},
		{active + unknown, []symptom.ID{symptom.EtcdStaleMember}}, {alone, []symptom.ID{symptom.EtcdNoQuorum, symptom.EtcdUnreachable}},
		{serves + learners, []symptom.ID{symptom.EtcdTooManyLearners}}, {serves + removed, []symptom.ID{symptom.EtcdStaleMember}},
		{serves + corrupt, []symptom.ID{symptom.EtcdDataCorrupt}},
	} {
		if got := symptomsOf(unsuspected(judge(t, tt.text))); !slices.Equal(got, tt.want) {
			t.Errorf("%v, want %v of\n%s", got, tt.want, tt.text)
		}
	}
}

// A complaint that the kubelet would repeat is over if the kubelet writes other lines for a while. If it writes nothing, the complaint
// stands.
func TestNoMoreComplaints(t *testing.T) {
	const (
		complaint = `Nov 24 21:51:10 w1 kubelet[301]: E1124 21:51:10.1 301 kubelet.go:1] "Container runtime network not ready" networkReady="NetworkReady=false reason:NetworkPluginNotReady"` + "\n"
		soon      = `Nov 24 21:51:20 w1 kubelet[301]: I1124 21:51:20.1 301 reconciler.go:1] "Volume attached"` + "\n"
		later     = `Nov 24 21:52:20 w1 kubelet[301]: I1124 21:52:20.1 301 reconciler.go:1] "Volume attached"` + "\n"
		others    = "Nov 24 21:52:20 w1 sshd[7]: Accepted publickey for root\n"
		probe     = "kube-system   76s   Warning   Unhealthy   pod/etcd-cp1   Liveness probe failed: Get \"http://127.0.0.1:2381/livez\": context deadline exceeded\n"
		busy      = `Nov 24 23:55:47 w1 kubelet[227]: E1124 23:55:47.0 227 kubelet.go:2809] "Housekeeping took longer than expected" err="housekeeping took too long" expected="1s" actual="10.6s"` + "\n"
	)
	for _, tt := range []struct {
		name, text string
		want       []symptom.ID
	}{
		{"it went on", complaint + soon + later, nil},
		{"it ended soon", complaint + soon, []symptom.ID{symptom.CNINotInitialized}},
		{"others went on", complaint + soon + others, []symptom.ID{symptom.CNINotInitialized}},
		{"it said so again", complaint + later + strings.Replace(complaint, "21:51:10", "21:52:25", 1),
			[]symptom.ID{symptom.CNINotInitialized}},
		{"a probe that failed once", probe, nil},
		{"a client of sshd that went away",
			"Nov 24 21:51:10 cp3 sshd[3749]: error: kex_exchange_identification: Connection closed by remote host\n", nil},
		{"a client that got no answer", "kex_exchange_identification: Connection closed by remote host\n",
			[]symptom.ID{symptom.NodeUnreachable}},
		{"a busy kubelet", strings.Repeat(busy, 5), nil},
	} {
		if got := symptomsOf(unsuspected(judge(t, tt.text+strings.Repeat("\n", 2)))); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
