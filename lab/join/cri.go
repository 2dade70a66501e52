package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"k8slab/lab/symptom"
	"k8slab/lab/wait"
)

const (
	// criLimit bounds all questions to the runtime together. A stopped process accepts connections and never answers: this notices it.
	criLimit = 3 * time.Second
	// criCall bounds one question, as kubeadm's preflight does. A healthy containerd answers in milliseconds.
	criCall = 2 * time.Second
	// settle is how long a runtime that has just started may show an empty image file system.
	settle = 800 * time.Millisecond
)

// criError is a runtime that does not serve CRI. Its check is the result of checkCRI.
type criError struct{ check Check }

func (e *criError) Error() string { return e.check.Evidence }

func (p *preflight) findCRI(ctx context.Context) (criFacts, error) {
	socket, check := p.m.runtimeSocket(p.t)
	if check.Result != "" {
		return criFacts{}, &criError{check}
	}
	facts, err := p.m.talkCRI(ctx, socket)
	if err != nil {
		return criFacts{}, &criError{p.judgeCRI(ctx, socket, err)}
	}
	return facts, nil
}

// The ways in which a runtime fails to serve CRI, beside those of gRPC.
var (
	errNoSocket = errors.New("the socket does not exist")
	errRefuses  = errors.New("nothing answers")
)

// oldCRIError is a runtime that speaks only CRI v1alpha2.
type oldCRIError struct{ version string }

func (e *oldCRIError) Error() string { return e.version + " speaks only CRI v1alpha2" }

// talkCRI asks the runtime everything that the checks need.
func (m Machine) talkCRI(ctx context.Context, socket string) (criFacts, error) {
	if !m.Exists(socket) {
		return criFacts{}, errNoSocket
	}
	conn, err := m.Dial(ctx, "unix", m.Path(socket))
	if err != nil {
		return criFacts{}, fmt.Errorf("%w: %w", errRefuses, lastCause(err))
	}
	_ = conn.Close()
	client, err := m.dialCRI(socket)
	if err != nil {
		return criFacts{}, err
	}
	defer client.Close()
	version, err := runtimeVersion(ctx, client, m.Patience()*criCall)
	if err != nil {
		return criFacts{}, err
	}
	facts := criFacts{socket: socket, version: version}
	m.askRuntime(ctx, client, &facts)
	return facts, nil
}

func runtimeVersion(ctx context.Context, client *grpc.ClientConn, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := runtimeapi.NewRuntimeServiceClient(client).Version(ctx, &runtimeapi.VersionRequest{})
	if err == nil {
		return answer.RuntimeName + " " + answer.RuntimeVersion, nil
	}
	if status.Code(err) == codes.Unimplemented {
		var old runtimeapi.VersionResponse // v1alpha2 has the same messages under another name
		if client.Invoke(ctx, "/runtime.v1alpha2.RuntimeService/Version", &runtimeapi.VersionRequest{}, &old) == nil {
			return "", &oldCRIError{old.RuntimeName + " " + old.RuntimeVersion}
		}
	}
	return "", err
}

func (m Machine) dialCRI(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///runtime",
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return m.Dial(ctx, "unix", m.Path(socket)) }))
}

// judgeCRI names why a runtime does not serve CRI: dead, hanging, without CRI, and too old are different answers.
func (p *preflight) judgeCRI(ctx context.Context, socket string, err error) Check {
	if old, ok := errors.AsType[*oldCRIError](err); ok {
		return blocked(symptom.RuntimeVersionUnsupported, "install containerd 1.6.4 or newer (2.2 or newer for Kubernetes 1.36)", "%v", old)
	}
	message := status.Convert(err).Message()
	switch code := status.Code(err); {
	case errors.Is(err, errNoSocket):
		return p.runtimeDead(ctx, socket, "the socket "+socket+" does not exist")
	case errors.Is(err, errRefuses):
		return p.runtimeDead(ctx, socket, fmt.Sprintf("%s: %v", socket, err))
	case code == codes.DeadlineExceeded:
		return p.runtimeDead(ctx, socket, fmt.Sprintf("%s accepts connections but did not answer within %s", socket, p.patience*criCall))
	case code == codes.Unimplemented:
		return p.pluginOff(ctx, socket, message)
	}
	return p.runtimeDead(ctx, socket, fmt.Sprintf("%s: %s", socket, message))
}

// runtimeDead is a runtime with which no word can be exchanged.
func (p *preflight) runtimeDead(ctx context.Context, socket, evidence string) Check {
	r := runtimeAt(socket)
	if r.unit == "" {
		return blocked(symptom.RuntimeSocketMissing, "start the container runtime and read its journal", "%s", evidence)
	}
	u, err := p.units(ctx)
	if err != nil {
		return blocked(symptom.RuntimeSocketMissing, "systemctl enable --now "+r.unit, "%s (%v)", evidence, err)
	}
	if u.runtime.absent() {
		return blocked(symptom.RuntimeSocketMissing, "install containerd: apt-get install containerd.io, or your distribution's package; or CRI-O",
			"%s: %s is not installed", evidence, r)
	}
	return fixable(symptom.RuntimeSocketMissing, fmt.Sprintf("systemctl unmask %[1]s; systemctl enable %[1]s; %[2]s", r.unit, r.restarting()),
		"%s; %s is %s%s", evidence, r, u.runtime.state(), p.m.lastWords(ctx, r))
}

// pluginOff is a runtime that answers without CRI: the plugin is switched off or did not load. Its journal says which.
func (p *preflight) pluginOff(ctx context.Context, socket, message string) Check {
	r := runtimeAt(socket)
	evidence := "the runtime answers but serves no CRI: " + message
	if r.unit != "containerd" { // no other has it as a plugin
		return blocked(symptom.CRIPluginDisabled, r.restarting(), "%s", evidence)
	}
	hint := `remove "cri" from disabled_plugins in /etc/containerd/config.toml; systemctl restart containerd`
	if text, err := p.m.Read(containerdConfig); err == nil {
		if _, changed := enableCRI(text); changed {
			evidence += "; " + containerdConfig + " disables it"
		}
	}
	return fixable(symptom.CRIPluginDisabled, hint, "%s%s", evidence, p.m.lastWords(ctx, r))
}

// lastWords are the last lines of the runtime's journal as a part of evidence.
func (m Machine) lastWords(ctx context.Context, r criRuntime) string {
	if lines := m.journal(ctx, r.service(), 3); lines != "" {
		return "; its last lines: " + strings.ReplaceAll(lines, "\n", " | ")
	}
	return ""
}

// errSilent is a runtime that did not answer in time. It proves nothing about the runtime's state.
var errSilent = errors.New("the runtime did not answer in time")

// askRuntime asks the questions that only a runtime with CRI can answer, all at once.
func (m Machine) askRuntime(ctx context.Context, client *grpc.ClientConn, facts *criFacts) {
	run, image := runtimeapi.NewRuntimeServiceClient(client), runtimeapi.NewImageServiceClient(client)
	limit := m.Patience() * criCall
	var wg sync.WaitGroup
	ask := func(question func(context.Context)) {
		wg.Go(func() {
			call, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			question(call)
		})
	}
	ask(func(ctx context.Context) {
		answer, err := run.Status(ctx, &runtimeapi.StatusRequest{})
		facts.problem = runtimeProblem(answer, err)
		facts.network = unmet(answer, runtimeapi.NetworkReady, "it says that its network is not ready")
	})
	ask(func(ctx context.Context) {
		config, err := run.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
		if err == nil && config.Linux != nil {
			facts.driver = strings.ToLower(config.Linux.CgroupDriver.String())
		}
	})
	ask(func(ctx context.Context) {
		list, err := image.ListImages(ctx, &runtimeapi.ListImagesRequest{})
		facts.imagesErr = err
		for _, i := range list.GetImages() {
			facts.images = append(facts.images, i.RepoTags...)
		}
	})
	ask(func(ctx context.Context) {
		// One answer may take longer than settle.
		facts.imageFSError = wait.For(ctx, "the runtime's image file system", settle, 100*time.Millisecond, func(context.Context) (err error) {
			facts.imageFS, facts.imageFSSize, err = m.imageFilesystem(ctx, image)
			return err
		})
	})
	wg.Wait()
}

// runtimeProblem is the reason that the runtime gives for not being ready. Its network is not ready before the join; that has its own
// check.
func runtimeProblem(answer *runtimeapi.StatusResponse, err error) string {
	if err != nil {
		return "it does not tell its status: " + status.Convert(err).Message()
	}
	return unmet(answer, runtimeapi.RuntimeReady, "it says that it is not ready")
}

// unmet is the reason that the runtime gives for not meeting the condition.
func unmet(answer *runtimeapi.StatusResponse, kind, without string) string {
	for _, condition := range answer.GetStatus().GetConditions() {
		if condition.Type == kind && !condition.Status {
			return cmp.Or(strings.TrimSpace(condition.Reason+" "+condition.Message), without)
		}
	}
	return ""
}

// emptyError is a file system without capacity. Restarting the runtime does not help.
type emptyError struct{ mountpoint string }

func (e *emptyError) Error() string { return e.mountpoint + " has capacity 0" }

// imageFilesystem returns where the runtime keeps images and the size of that file system; an error when either is nothing.
func (m Machine) imageFilesystem(ctx context.Context, client runtimeapi.ImageServiceClient) (string, uint64, error) {
	info, err := client.ImageFsInfo(ctx, &runtimeapi.ImageFsInfoRequest{})
	if code := status.Code(err); code == codes.DeadlineExceeded || code == codes.Canceled {
		return "", 0, errSilent
	}
	if err != nil {
		return "", 0, errors.New(status.Convert(err).Message())
	}
	for _, fs := range info.ImageFilesystems {
		mountpoint := fs.GetFsId().GetMountpoint()
		if mountpoint == "" {
			continue
		}
		s, err := m.Space(m.Path(mountpoint))
		if err != nil {
			return mountpoint, 0, err
		}
		if s.Bytes == 0 {
			return mountpoint, 0, &emptyError{mountpoint}
		}
		return mountpoint, s.Bytes, nil
	}
	return "", 0, errors.New("it knows no image file system")
}
