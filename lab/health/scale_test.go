package health_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"k8slab/config"
	"k8slab/lab/diagnose"
	"k8slab/lab/diagnose/fact"
	"k8slab/lab/event"
	"k8slab/lab/health"
	"k8slab/lab/node"
	"k8slab/lab/session"
	"k8slab/lab/state"
)

// scaleFile is the cluster.yaml that this program diagnoses in a process of its own, apart from the servers: its memory is measured.
const scaleFile = "K8SLAB_SCALE_FILE"

func TestMain(m *testing.M) {
	if file := os.Getenv(scaleFile); file != "" {
		if err := diagnoseScaled(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// packedSize is about what labnode is in gzip's format.
const packedSize = 13 << 20

// BenchmarkDiagnoseOverSSH diagnoses machines that exist: SSH servers of this process that say what a real healthy node said. The API is down.
// With -benchtime 1x each size is diagnosed once. The servers' part of the work is in the time.
func BenchmarkDiagnoseOverSSH(b *testing.B) {
	for _, kept := range []bool{false, true} {
		for _, count := range []int{50, 200, 500} {
			b.Run(fmt.Sprintf("kept=%t/nodes=%d", kept, count), func(b *testing.B) {
				file := scaledCluster(b, count, kept)
				for b.Loop() {
					began := time.Now()
					cmd := exec.Command(os.Args[0])
					cmd.Env = append(os.Environ(), scaleFile+"="+file, "HOME="+filepath.Dir(file), "XDG_STATE_HOME="+filepath.Dir(file), "SSH_AUTH_SOCK=",
						"GOMEMLIMIT=240MiB") // as labctl sets it
					out, err := cmd.CombinedOutput()
					if err != nil || !strings.Contains(string(out), fmt.Sprintf("collected %d", count)) {
						b.Fatalf("%v: %s", err, out)
					}
					_, most, _ := strings.Cut(string(out), "VmHWM:")
					kib, err := strconv.ParseFloat(strings.Fields(most)[0], 64)
					if err != nil {
						b.Fatalf("%v: %s", err, out)
					}
					b.ReportMetric(kib/1024, "MiB")
					b.ReportMetric(cmd.ProcessState.UserTime().Seconds()+cmd.ProcessState.SystemTime().Seconds(), "cpu-s")
					b.ReportMetric(time.Since(began).Seconds()*1000/float64(count), "ms/node")
				}
			})
		}
	}
}

func diagnoseScaled(file string) error {
	described, _, err := config.Load(file)
	if err != nil {
		return err
	}
	lab, err := state.Read(described)
	if err != nil {
		return err
	}
	logins := node.NewLogins(node.LoginOptions{KnownHosts: filepath.Join(filepath.Dir(file), "known"), AcceptNew: true})
	defer logins.Close()
	packed, err := os.ReadFile(filepath.Join(filepath.Dir(file), "labnode.gz"))
	if err != nil {
		return err
	}
	s, err := session.OpenSSH(lab, event.NewStream(), session.Options{
		Logins: logins, Packed: func(string) ([]byte, error) { return packed, nil }, Mutated: func(what string) error { return fmt.Errorf("%s: refused", what) },
	})
	if err != nil {
		return err
	}
	defer s.Close()
	facts := diagnose.Collect(context.Background(), health.Sources(s, health.DiagnoseOptions{}))
	report, err := diagnose.NewReport(facts)
	if err != nil {
		return err
	}
	collected := 0
	for _, m := range facts.Machines {
		if m.Inside != nil {
			collected++
		} else if m.SSH+m.Labnode != "" {
			fmt.Println(m.Name, m.SSH, m.Labnode)
		}
	}
	fmt.Printf("collected %d, %d findings\n", collected, len(report.Findings))
	status, err := os.ReadFile("/proc/self/status") // what wait says of a child's memory includes its parent's
	fmt.Println(string(status))
	return err
}

// scaledCluster starts an SSH server for each node, and returns the path of their cluster.yaml.
func scaledCluster(b *testing.B, count int, kept bool) string {
	dir := b.TempDir()
	key := must(node.GenerateKey())(b)
	write(b, filepath.Join(dir, "key"), key)
	write(b, filepath.Join(dir, "labnode.gz"), packedNoise(b))
	inside := healthyNode(b)
	var text strings.Builder
	fmt.Fprintf(&text, "name: scaled\nmachines: ssh\nssh: {identity_file: %s, keep_labnode: %t}\n", filepath.Join(dir, "key"), kept)
	text.WriteString("kubernetes: {version: v1.36.3}\n" +
		"network: {endpoint: '10.9.0.1:6443', pod_subnet: 10.244.0.0/16, service_subnet: 10.96.0.0/12}\nnodes:\n")
	signer := must(ssh.ParsePrivateKey(must(node.GenerateKey())(b)))(b)
	for i := range count {
		name, role := fmt.Sprintf("w%d", i), "worker"
		if i < 3 {
			name, role = fmt.Sprintf("cp%d", i+1), "control-plane"
		}
		port := serveScaled(b, signer, inside, name, kept)
		fmt.Fprintf(&text, "  - {name: %s, role: %s, ip: 10.9.%d.%d, ssh: {host: 127.0.0.1, port: %d}}\n", name, role, i/200, i%200+1, port)
	}
	file := filepath.Join(dir, "cluster.yaml")
	write(b, file, []byte(text.String()))
	return file
}

// healthyNode is what a worker of a real healthy lab said.
func healthyNode(b *testing.B) fact.Node {
	f := must(os.Open("../diagnose/testdata/real/healthy.json.gz"))(b)
	defer f.Close()
	var facts fact.Facts
	if err := json.NewDecoder(must(gzip.NewReader(f))(b)).Decode(&facts); err != nil {
		b.Fatal(err)
	}
	return *facts.Machines[len(facts.Machines)-1].Inside
}

// serveScaled answers what a diagnosis asks of a machine, and returns the port.
func serveScaled(b *testing.B, host ssh.Signer, inside fact.Node, name string, kept bool) int {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(b)
	b.Cleanup(func() { _ = listener.Close() })
	inside.Facts.Node = name
	said := must(json.Marshal(inside))(b)
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	config.AddHostKey(host)
	go func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, channels, requests, err := ssh.NewServerConn(raw, config)
				if err != nil {
					return
				}
				go ssh.DiscardRequests(requests)
				for request := range channels {
					if request.ChannelType() != "session" {
						_ = request.Reject(ssh.ConnectionFailed, "connection refused")
						continue
					}
					if channel, requests, err := request.Accept(); err == nil {
						go answerScaled(channel, requests, said, kept)
					}
				}
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

func answerScaled(channel ssh.Channel, requests <-chan *ssh.Request, said []byte, kept bool) {
	defer channel.Close()
	for r := range requests {
		if r.Type != "exec" {
			_ = r.Reply(false, nil)
			continue
		}
		_ = r.Reply(true, nil)
		status := byte(0)
		switch line := string(r.Payload[4:]); {
		case line == "true":
		case strings.Contains(line, "uname -m"):
			receiveScaled(channel, kept)
		case strings.Contains(line, "/labnode collect "):
			_, _ = channel.Write(said)
		default:
			_, _ = fmt.Fprintln(channel.Stderr(), "not here")
			status = 1
		}
		_, _ = channel.SendRequest("exit-status", false, []byte{0, 0, 0, status})
		return
	}
}

// receiveScaled is the other end of the script that puts labnode on a machine.
func receiveScaled(channel ssh.Channel, kept bool) {
	from := bufio.NewReader(channel)
	_, _ = fmt.Fprintln(channel, "x86_64")
	line, err := from.ReadString('\n')
	if err != nil {
		return
	}
	if !kept {
		_, _ = fmt.Fprintln(channel, "send")
		size, _ := strconv.ParseInt(strings.Fields(line)[0], 10, 64)
		if _, err := io.CopyN(io.Discard, from, size); err != nil {
			return
		}
	}
	_, _ = fmt.Fprintln(channel, "have /root/labnode")
	if !kept {
		_, _ = io.Copy(io.Discard, from)
	}
}

// packedNoise is as large as labnode in gzip's format.
func packedNoise(b *testing.B) []byte {
	noise := make([]byte, packedSize)
	_, _ = rand.Read(noise)
	var packed bytes.Buffer
	to := gzip.NewWriter(&packed)
	if _, err := to.Write(noise); err != nil {
		b.Fatal(err)
	}
	if err := to.Close(); err != nil {
		b.Fatal(err)
	}
	return packed.Bytes()
}

func must[T any](v T, err error) func(*testing.B) T {
	return func(b *testing.B) T {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
		return v
	}
}

func write(b *testing.B, file string, content []byte) {
	b.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		b.Fatal(err)
	}
}
