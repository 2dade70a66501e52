package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Service is a Service with the TCP ports that its cluster address serves.
type Service struct {
	Namespace, Name string
	ClusterIP       string // "None" of a headless one, "" of a mere name for something outside
	Ports           []ServicePort
}

// ServicePort is a TCP port of a Service.
type ServicePort struct {
	Name     string // "" where there is no other
	Number   int32
	Protocol string // of the application, such as https; "" where it does not say
}

func (s Service) String() string { return s.Namespace + "/" + s.Name }

// Services lists the Services of all namespaces, in the order of namespaces and names.
func (c *Client) Services(ctx context.Context) ([]Service, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	list, err := c.set.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}
	all := make([]Service, 0, len(list.Items))
	for _, item := range list.Items {
		s := Service{Namespace: item.Namespace, Name: item.Name, ClusterIP: item.Spec.ClusterIP}
		for _, p := range item.Spec.Ports {
			if p.Protocol != corev1.ProtocolTCP && p.Protocol != "" {
				continue
			}
			protocol := ""
			if p.AppProtocol != nil {
				protocol = *p.AppProtocol
			}
			s.Ports = append(s.Ports, ServicePort{p.Name, p.Port, protocol})
		}
		all = append(all, s)
	}
	return all, nil
}
