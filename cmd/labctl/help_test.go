package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// everyCommand are all commands, by the words that call them.
func everyCommand(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	all := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, child := range cmd.Commands() {
			all[strings.TrimPrefix(child.CommandPath(), "labctl ")] = child
			walk(child)
		}
	}
	root := (&app{}).rootCommand()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	walk(root)
	return all
}

func TestHelpHasGroups(t *testing.T) {
	status, stdout, _ := labctl(t)
	_, help, _ := labctl(t, "--help")
	if status != 0 || stdout != help {
		t.Errorf("status %d; without a command it says\n%s", status, stdout)
	}
	last := -1
	for _, title := range []string{"The lab:", "Nodes:", "Diagnose and repair:", "Faults:", "Images:", "Other:"} {
		at := strings.Index(help, "\n"+title+"\n")
		if at <= last {
			t.Errorf("%q is missing or at another place", title)
		}
		last = at
	}
	if strings.Contains(help, "Additional Commands") {
		t.Errorf("a command is in no group:\n%s", help)
	}
}

// A command's line in help is one plain sentence without a full stop, that fits the line.
func TestShorts(t *testing.T) {
	odd := regexp.MustCompile(`\b(anew|mend\w*|of it)\b|[.;:]$|\n`)
	for name, cmd := range everyCommand(t) {
		switch {
		case cmd.Hidden || strings.HasPrefix(name, "completion ") || name == "completion" || strings.HasPrefix(name, "help"):
		case cmd.Short == "" || odd.MatchString(cmd.Short) || len(cmd.Short) > 100:
			t.Errorf("%s: %q", name, cmd.Short)
		}
	}
}

// samples are arguments that a command accepts, by the names in its usage line.
var samples = map[string]string{
	"NODE": "w1", "NAME": "before", "FILE": "before.db", "SRC": "w1:/etc/hostname", "DST": "copy", "COMMAND": "true", "ARGS": "get",
	"NAME[@NODE]": "missing-cni", "[FILE]": "before.db", "ID": "20260102T150405-repair", "SERVICE": "web",
}

// callOf are words that call the command as it wants to be called.
func callOf(name string, cmd *cobra.Command) []string {
	words := strings.Fields(name)
	required, _ := argumentNames(cmd)
	for _, r := range required {
		words = append(words, samples[r])
	}
	switch name {
	case "addons install":
		words[len(words)-1] = "flux"
	case "fault inject":
		words[len(words)-1] = "missing-cni"
	case "etcd snapshot restore":
		words = append(words, "--own-data", "--node", "w1")
	}
	return words
}

// raw is how Go and the kernel say what only a programmer understands.
var raw = regexp.MustCompile(`(open|mkdir|stat|lstat|mkdirat|openat|readdirent|chdir) /?[^ ]*: |no such file or directory|not a directory|invalid argument|panic`)

// call is the name of a system call in front of a path.
var call = regexp.MustCompile(`(open|mkdir|stat|lstat|mkdirat|openat|readdirent|chdir) /[^ ]*: |panic`)

// step is something that a user can do.
var step = regexp.MustCompile("`labctl |`sudo |-c FILE|run as root|run in the checkout|--help|name another|XDG_STATE_HOME")

// Without a cluster.yaml, and with one but without a lab, every command ends at once with a message that says what to do.
func TestMessagesWithoutALab(t *testing.T) {
	// They do not need a lab, or make one.
	free := map[string]bool{
		"up": true, "image build": true, "image push": true, "image pull": true, "image export": true, "image import": true, "image list": true,
		"image prune": true, "doctor": true, "host install": true, "host serve": true, "version": true, "lab list": true,
		"fault list": true, "serve": true, "vagrant box": true, "vagrant prepare": true, "vagrant machines": true, "plan": true, "status": true,
		"down": true, "addons": true, "addons list": true, "snapshot list": true, "onboard": true, "repair": true, "diagnose": true, "build-id": true,
	}
	noFile := map[string]bool{"up": true, "doctor": true, "image build": true, "image push": true, "image export": true, "serve": true, "vagrant box": true, "vagrant prepare": true, "vagrant machines": true,
		"plan": true, "status": true, "down": true, "addons": true, "addons list": true, "snapshot list": true, "onboard": true, "repair": true, "diagnose": true, "build-id": true}
	described, err := filepath.Abs(small)
	if err != nil {
		t.Fatal(err)
	}
	for name, cmd := range everyCommand(t) {
		group := cmd.HasSubCommands() && name != "addons"
		if group || strings.HasPrefix(name, "help") || strings.HasPrefix(name, "completion") {
			continue
		}
		check := func(what string, args []string) {
			t.Run(name+" "+what, func(t *testing.T) {
				alone(t)
				t.Chdir(t.TempDir())
				status, stdout, stderr := labctl(t, args...)
				if status != exitFailed && status != exitUsage || stdout != "" {
					t.Errorf("status %d, stdout %q", status, stdout)
				}
				if raw.MatchString(stderr) || !step.MatchString(stderr) {
					t.Errorf("labctl %s says\n%s", strings.Join(args, " "), stderr)
				}
			})
		}
		words := callOf(name, cmd)
		if !free[name] || noFile[name] {
			check("without cluster.yaml", words)
		}
		if !free[name] {
			check("without a lab", append([]string{"-c", described}, words...))
		}
	}
}

// A user who can write nowhere learns it from the first command that keeps a log.
func TestMessagesWithoutAHome(t *testing.T) {
	described, err := filepath.Abs(small)
	if err != nil {
		t.Fatal(err)
	}
	for name, cmd := range everyCommand(t) {
		if cmd.HasSubCommands() || strings.HasPrefix(name, "help") || strings.HasPrefix(name, "completion") || name == "host install" || name == "host serve" ||
			strings.HasPrefix(name, "image ") || name == "serve" || name == "fault list" || name == "vagrant machines" { // those only look
			continue
		}
		t.Run(name, func(t *testing.T) {
			alone(t)
			t.Chdir(t.TempDir())
			t.Setenv("XDG_STATE_HOME", "/dev/null/home")
			_, stdout, stderr := labctl(t, append([]string{"-c", described}, callOf(name, cmd)...)...)
			if call.MatchString(stdout + stderr) {
				t.Errorf("stdout %q, stderr %q", stdout, stderr)
			}
		})
	}
}

// Looks at a lab that does not exist are no errors of their own, but no raw errors either.
func TestLooksWithoutALab(t *testing.T) {
	described, err := filepath.Abs(small)
	if err != nil {
		t.Fatal(err)
	}
	for _, look := range []string{"plan", "status", "down", "addons", "snapshot list", "repair", "repair --dry-run", "diagnose", "fault list", "vagrant machines"} {
		t.Run(look, func(t *testing.T) {
			alone(t)
			t.Chdir(t.TempDir())
			_, stdout, stderr := labctl(t, append([]string{"-c", described}, strings.Fields(look)...)...)
			if raw.MatchString(stdout + stderr) {
				t.Errorf("stdout %q, stderr %q", stdout, stderr)
			}
			if look == "down" && !strings.Contains(stderr, `nothing to remove: lab "small" does not exist`) {
				t.Errorf("stderr %q", stderr)
			}
		})
	}
}

func TestFaultListIsReadable(t *testing.T) {
	alone(t)
	t.Chdir(t.TempDir()) // no cluster.yaml
	status, stdout, stderr := labctl(t, "fault", "list")
	if status != 0 || stderr != "" || !strings.HasPrefix(stdout, "FAULT ") || !strings.Contains(stdout, "ACTIVE ON\n") || !strings.Contains(stdout, "unknown\n") {
		t.Errorf("status %d, stderr %q, stdout\n%.500s", status, stderr, stdout)
	}
	for line := range strings.Lines(stdout) {
		if len([]rune(strings.TrimSuffix(line, "\n"))) > 80 {
			t.Errorf("more than 80 columns: %s", line)
		}
	}
	if status, _, stderr := labctl(t, "-c", "none.yaml", "fault", "list"); status != exitUsage || !strings.Contains(stderr, "none.yaml") {
		t.Errorf("a file that was asked for: status %d, %q", status, stderr)
	}
}

func TestFaultListKnowsWhere(t *testing.T) {
	alone(t)
	dir := filepath.Join(os.Getenv("XDG_STATE_HOME"), "k8slab", "small")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "faults.json"), []byte(`[{"fault":"missing-cni","node":"w1"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stdout, _ := labctl(t, "-c", small, "fault", "list")
	if !regexp.MustCompile(`(?m)^missing-cni .* w1$`).MatchString(stdout) || !regexp.MustCompile(`(?m)^stale-cni .* –$`).MatchString(stdout) {
		t.Errorf("got\n%s", stdout)
	}
}

// A file that a user names is replaced only with --force.
func TestNoSilentOverwrite(t *testing.T) {
	alone(t)
	file := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"etcd", "snapshot", "save", file}, {"diagnose", "--bundle", file}, {"fault", "run", "missing-cni", "--junit", file}, {"soak", "--junit", file},
		{"fault", "run", "missing-cni", "--results", file}, {"bench", "missing-cni", "--results", file},
	} {
		status, _, stderr := labctl(t, append([]string{"-c", small}, args...)...)
		if want := file + " exists: name another file, or replace it with --force"; status != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %q", args, status, stderr)
		}
		if _, _, stderr = labctl(t, append(append([]string{"-c", small}, args...), "--force")...); strings.Contains(stderr, "exists") || !strings.Contains(stderr, "the lab is not up") {
			t.Errorf("%s --force: %q", args, stderr)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "precious" {
		t.Errorf("%q, %v", data, err)
	}
}

// fakeLab is as much of a lab as kubectl needs. Its kubectl prints what it was called with.
func fakeLab(t *testing.T) {
	t.Helper()
	dir, image := filepath.Join(os.Getenv("XDG_STATE_HOME"), "k8slab", "small"), t.TempDir()
	bin := filepath.Join(image, "root", "usr", "bin")
	for _, d := range []string{dir, bin} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		filepath.Join(dir, "kubeconfig"): "", filepath.Join(dir, "image"): image, filepath.Join(dir, "id"): "x",
		filepath.Join(bin, "kubectl"): "#!/bin/sh\n[ \"$1\" != __complete ] || { printf 'pods\\tthe pods\\n:4\\n'; exit; }\nprintf '<%s>' \"$@\" >\"$OUT\"\nexit 3\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKubectlTakesItsOwnFlags(t *testing.T) {
	alone(t)
	fakeLab(t)
	out := filepath.Join(t.TempDir(), "out")
	t.Setenv("OUT", out)
	for line, want := range map[string]string{
		"-c " + small + " kubectl get pods -A":                    "<get><pods><-A>",
		"-c " + small + " kubectl -- get pods -A":                 "<get><pods><-A>",
		"-v --config=" + small + " kubectl -n x get -o json -v=6": "<-n><x><get><-o><json><-v=6>",
		"-c " + small + " kubectl logs p -c main -- x":            "<logs><p><-c><main><--><x>",
		"-c " + small + " kubectl -- --help":                      "<--help>",
		"-c " + small + " kubectl exec p -- kubectl get":          "<exec><p><--><kubectl><get>",
	} {
		status, _, stderr := labctl(t, strings.Fields(line)...)
		got, err := os.ReadFile(out)
		if status != 3 || string(got) != want || err != nil {
			t.Errorf("%s: status %d, stderr %q, %v, kubectl got %s", line, status, stderr, err, got)
		}
	}
	if status, stdout, _ := labctl(t, "-c", small, "kubectl", "--help"); status != 0 || !strings.Contains(stdout, "kubectl -- --help") {
		t.Errorf("help: status %d, %s", status, stdout)
	}
	if status, _, stderr := labctl(t, "-o", "yaml", "kubectl", "get"); status != exitUsage || !strings.Contains(stderr, `"yaml"`) {
		t.Errorf("labctl's own flag: status %d, %s", status, stderr)
	}
	if status, stdout, _ := labctl(t, "__complete", "-c", small, "kubectl", "get", "po"); status != 0 || stdout != "pods\tthe pods\n:4\n" {
		t.Errorf("completion: status %d, %q", status, stdout)
	}
}

func TestRemoteCommand(t *testing.T) {
	for words, want := range map[string]string{"": "", "ls -l": "ls -l", "-- ls -l": "ls -l", "sh -c -- x": "sh -c -- x", "-- -x": "-x"} {
		got, err := remoteCommand(strings.Fields(words))
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, %v", words, got, err)
		}
	}
}

func TestPlaceOf(t *testing.T) {
	for text, want := range map[string]place{
		"w1:/tmp/x": {"w1", "/tmp/x"}, "w1:": {"w1", ""}, "./a:b": {"", "./a:b"}, "dir/a:b": {"", "dir/a:b"}, "-": {"", "-"}, ":x": {"", ":x"}, "w1:a:b": {"w1", "a:b"},
	} {
		if got := placeOf(text); got != want {
			t.Errorf("%q: got %+v", text, got)
		}
	}
}

func TestNodeThatIsNoMember(t *testing.T) {
	alone(t)
	for name, want := range map[string]string{
		"w2":  "w2 is to be onboarded: run `labctl onboard w2`",
		"w11": `no node "w11"; did you mean "w1"? The lab has cp1, w1`,
		"db":  `no node "db"; the lab has cp1, w1`,
	} {
		if status, _, stderr := labctl(t, "-c", later, "join", name); status != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %s", name, status, stderr)
		}
	}
}
