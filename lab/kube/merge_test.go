package kube

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// work is the kubeconfig of a person who has another cluster, and names files relative to it.
const work = `apiVersion: v1
kind: Config
current-context: work
contexts:
- {name: work, context: {cluster: work, user: me, namespace: team}}
clusters:
- {name: work, cluster: {server: "https://work:6443", certificate-authority: work.crt}}
users:
- {name: me, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never}}}
`

const owner, stranger = "6f1d0f5c-2f4e-4c53-9a55-0d6f3c1e2b7a", "0a0d0f5c-2f4e-4c53-9a55-0d6f3c1e2b7a"

func merged(t *testing.T, person string, e Entry) string {
	t.Helper()
	out, err := Merge([]byte(person), kubeconfigFor("https://127.0.0.1:7443", nil), e)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func loaded(t *testing.T, text string) *clientcmdapi.Config {
	t.Helper()
	cfg, err := clientcmd.Load([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestMerge(t *testing.T) {
	for _, tt := range []struct {
		name, person string
		use          bool
		current      string
	}{
		{"beside others", work, false, "work"},
		{"beside others, as current", work, true, "k8slab-lab"},
		{"a new file", "", false, "k8slab-lab"},
		{"once more", merged(t, work, Entry{Owner: owner, Name: "k8slab-lab"}), false, "work"},
		{"once more, under another name", merged(t, work, Entry{Owner: owner, Name: "mine", Use: true}), false, "k8slab-lab"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := loaded(t, merged(t, tt.person, Entry{Owner: owner, Name: "k8slab-lab", Use: tt.use}))
			others := len(loaded(t, tt.person).Clusters)
			if strings.Contains(tt.person, owner) {
				others--
			}
			if len(cfg.Contexts) != others+1 || len(cfg.Clusters) != others+1 || len(cfg.AuthInfos) != others+1 {
				t.Errorf("it has %d contexts, %d clusters and %d users", len(cfg.Contexts), len(cfg.Clusters), len(cfg.AuthInfos))
			}
			in := cfg.Contexts["k8slab-lab"]
			if cfg.CurrentContext != tt.current || cfg.Clusters[in.Cluster].Server != "https://127.0.0.1:7443" || cfg.AuthInfos[in.AuthInfo].Token != "admin" {
				t.Errorf("current context %s, context %+v", cfg.CurrentContext, in)
			}
			if others > 0 && (cfg.Contexts["work"].Namespace != "team" || cfg.Clusters["work"].CertificateAuthority != "work.crt" || cfg.AuthInfos["me"].Exec.Command != "login") {
				t.Error("the other cluster has changed")
			}
		})
	}
}

func TestMergeKeepsTheNamespace(t *testing.T) {
	person := strings.Replace(merged(t, work, Entry{Owner: owner, Name: "old"}), "user: old", "user: old\n    namespace: dev", 1)
	if cfg := loaded(t, merged(t, person, Entry{Owner: owner, Name: "new"})); cfg.Contexts["new"].Namespace != "dev" || cfg.Contexts["old"] != nil {
		t.Errorf("contexts %+v", cfg.Contexts)
	}
}

func TestMergeRefuses(t *testing.T) {
	lab := kubeconfigFor("https://127.0.0.1:7443", nil)
	for name, tt := range map[string]struct {
		person, lab string
		entry       Entry
		want        string
	}{
		"a context of somebody else's": {work, string(lab), Entry{Owner: owner, Name: "work"}, "choose another name with --context"},
		"a user of somebody else's":    {work, string(lab), Entry{Owner: owner, Name: "me"}, "choose another name with --context"},
		"another lab of the name":      {merged(t, work, Entry{Owner: stranger, Name: "x"}), string(lab), Entry{Owner: owner, Name: "x"}, "choose another name with --context"},
		"a person's broken file":       {"clusters: [", string(lab), Entry{Owner: owner, Name: "x"}, "read kubeconfig"},
		"no user":                      {work, `{clusters: [{name: c, cluster: {server: "https://h"}}]}`, Entry{Owner: owner, Name: "x"}, "no user"},
	} {
		if out, err := Merge([]byte(tt.person), []byte(tt.lab), tt.entry); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
}

// What a person does to the entries, or beside them, does not keep them from being found again.
func TestUnmerge(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*clientcmdapi.Config)
		current string
	}{
		{"as merged", func(*clientcmdapi.Config) {}, ""},
		{"the context has another name", func(c *clientcmdapi.Config) {
			c.Contexts["dev"] = c.Contexts["k8slab-lab"]
			delete(c.Contexts, "k8slab-lab")
			c.CurrentContext = "dev"
		}, ""},
		{"another context is current", func(c *clientcmdapi.Config) { c.CurrentContext = "work" }, "work"},
		{"the person has removed the context", func(c *clientcmdapi.Config) { delete(c.Contexts, "k8slab-lab"); c.CurrentContext = "work" }, "work"},
		{"the current context is missing", func(c *clientcmdapi.Config) { c.CurrentContext = "gone" }, "gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := loaded(t, merged(t, work, Entry{Owner: owner, Name: "k8slab-lab", Use: true}))
			tt.change(cfg)
			changed, err := clientcmd.Write(*cfg)
			if err != nil {
				t.Fatal(err)
			}
			out, err := Unmerge(changed, owner)
			if err != nil {
				t.Fatal(err)
			}
			left := loaded(t, string(out))
			if len(left.Contexts) != 1 || len(left.Clusters) != 1 || len(left.AuthInfos) != 1 || left.Contexts["work"] == nil || left.CurrentContext != tt.current {
				t.Errorf("left is\n%s", out)
			}
		})
	}
	if out, err := Unmerge([]byte(work), owner); err != nil || string(out) != work {
		t.Errorf("a file without the lab changes: %s, %v", out, err)
	}
	others := merged(t, work, Entry{Owner: stranger, Name: "k8slab-lab"})
	if out, err := Unmerge([]byte(others), owner); err != nil || string(out) != others {
		t.Errorf("another lab's entries change: %s, %v", out, err)
	}
}

func TestRenew(t *testing.T) {
	person := merged(t, work, Entry{Owner: owner, Name: "k8slab-lab"})
	out, err := Renew([]byte(person), kubeconfigFor("https://127.0.0.1:9443", nil), owner)
	if err != nil {
		t.Fatal(err)
	}
	cfg := loaded(t, string(out))
	if cfg.Clusters["k8slab-lab"].Server != "https://127.0.0.1:9443" || cfg.Clusters["work"].Server != "https://work:6443" || cfg.CurrentContext != "work" {
		t.Errorf("got\n%s", out)
	}
	if again, err := Renew(out, kubeconfigFor("https://127.0.0.1:9443", nil), owner); err != nil || string(again) != string(out) {
		t.Errorf("renewed twice it changes: %s, %v", again, err)
	}
	if same, err := Renew([]byte(work), kubeconfigFor("https://127.0.0.1:9443", nil), owner); err != nil || string(same) != work {
		t.Errorf("it adds a lab that is not there: %s, %v", same, err)
	}
}
