// Package reach connects ports of this computer with Services of the cluster. The way leads through the nodes' SSH servers, so that it is
// the same wherever the machines are, and for Services of every type.
package reach

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/kube"
	"k8slab/lab/session"
	"k8slab/lab/wait"
)

// Target says what to reach, and from where.
type Target struct {
	Service string      // NAME or NAMESPACE/NAME
	Port    string      // its name or number; "" is the only one
	Listen  string      // HOST:PORT of this computer; port 0 is a free one
	Failed  func(error) // is told of each connection that did not come about; it may be called concurrently
}

// Opened is a Service that can be reached.
type Opened struct {
	Service string `json:"service"` // NAMESPACE/NAME
	Port    int32  `json:"port"`
	Address string `json:"address"` // HOST:PORT of this computer
	URL     string `json:"url"`
}

// answerBudget bounds the wait for the first connection: nodes learn of a new Service, and of its pods, within seconds.
const answerBudget = 10 * time.Second

// Services is the way to the cluster's Services.
type Services struct {
	All     []kube.Service
	session *session.Session
}

// Find lists the Services. The way to them works until the session is closed.
func Find(ctx context.Context, s *session.Session, v *session.Admin) (Services, error) {
	all, err := v.Kube.Services(ctx)
	return Services{all, s}, err
}

// Open connects a port of this computer with a Service until stop is called. It waits until something answers there.
func (r Services) Open(ctx context.Context, t Target) (o Opened, stop func(), err error) {
	service, err := named(r.All, t.Service)
	if err != nil {
		return o, nil, err
	}
	port, err := portOf(service, t.Port)
	if err != nil {
		return o, nil, err
	}
	to := net.JoinHostPort(service.ClusterIP, strconv.Itoa(int(port.Number)))
	budget := answerBudget * time.Duration(r.session.TimeScale())
	what := fmt.Sprintf("service %s, port %d, to answer", service, port.Number)
	err = wait.For(ctx, what, budget, r.session.Pace(), func(ctx context.Context) error {
		conn, err := r.session.DialCluster(ctx, "tcp", to)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		return o, nil, fmt.Errorf("%w; next: labctl kubectl get endpointslices -n %s -l kubernetes.io/service-name=%s",
			err, service.Namespace, service.Name)
	}
	listener, err := net.Listen("tcp", t.Listen)
	if err != nil {
		return o, nil, fmt.Errorf("%w; next: name another port with --listen", err)
	}
	address := listener.Addr().String()
	o = Opened{Service: service.String(), Port: port.Number, Address: address, URL: scheme(port) + "://" + address}
	return o, r.session.Carry(ctx, listener, to, t.Failed), nil
}

// named is the Service of the name. Without a namespace it is that of the namespace default, or the only one of all.
func named(all []kube.Service, name string) (kube.Service, error) {
	wanted := name
	if !strings.Contains(name, "/") {
		wanted = "default/" + name
	}
	var names, same []string
	var found kube.Service
	for _, s := range all {
		switch names = append(names, s.String()); {
		case s.String() == wanted:
			return s, nil
		case s.Name == name:
			found, same = s, append(same, s.String())
		}
	}
	switch {
	case len(same) == 1:
		return found, nil
	case len(same) > 1:
		return found, fmt.Errorf("several namespaces have a service %s; next: name one of %s", name, strings.Join(same, ", "))
	}
	return found, config.Unknown("service", name, "the cluster has", names)
}

// portOf is the port of the name or number, or the only one.
func portOf(s kube.Service, which string) (kube.ServicePort, error) {
	var names []string
	for _, p := range s.Ports {
		number := strconv.Itoa(int(p.Number))
		if which != "" && (which == p.Name || which == number) || which == "" && len(s.Ports) == 1 {
			return p, reachable(s)
		}
		names = append(names, strings.TrimSpace(number+" "+p.Name))
	}
	switch {
	case len(names) == 0:
		return kube.ServicePort{}, fmt.Errorf("service %s has no TCP port", s)
	case which == "":
		return kube.ServicePort{}, fmt.Errorf("service %s has several ports; next: name one with --port: %s", s, strings.Join(names, ", "))
	}
	return kube.ServicePort{}, fmt.Errorf("service %s has no TCP port %q; next: name one with --port: %s", s, which, strings.Join(names, ", "))
}

// reachable says why nothing leads to the Service.
func reachable(s kube.Service) error {
	switch s.ClusterIP {
	case "":
		return fmt.Errorf("service %s is a name for something outside the cluster; next: open that", s)
	case "None":
		return fmt.Errorf("service %s is headless: it has no address; next: labctl kubectl port-forward -n %s service/%s PORT",
			s, s.Namespace, s.Name)
	}
	return nil
}

// scheme is that of the URL: what the port says, and http where it says nothing.
func scheme(p kube.ServicePort) string {
	if p.Protocol == "https" || strings.HasPrefix(p.Name, "https") || p.Protocol == "" && (p.Number == 443 || p.Number == 8443) {
		return "https"
	}
	return "http"
}
