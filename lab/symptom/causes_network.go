package symptom

// networkCauses are the roads between machines.
var networkCauses = []Symptom{
	{
		ID:      APIServerUnreachable,
		Meaning: "The API server's address does not answer, and no more specific cause was found.",
		Hint: "`curl -k https://HOST:6443/livez` from here and from a control plane; there `crictl ps -a --name kube-apiserver` " +
			"and its log. " +
			"Refused: it is down or the address is wrong; timeout: look at routes and firewalls.",
		Sources: []string{"kubernetes/kubeadm#2740"},
		patterns: together(
			except(proves(
				":6443: connect: connection refused", ":6443: connection refused", ":8443: connect: connection refused",
				":16443: connect: connection refused", ":6443: i/o timeout", ":6443: connect: no route to host",
				":6443: connect: connection timed out", ":6443: connect: network is unreachable",
				":6443: getsockopt: connection refused", ":6443: getsockopt: no route to host",
				":6443 was refused - did you specify the right host or port",
				"The connection to the server*was refused - did you specify the right host or port",
				":6443*net/http: TLS handshake timeout", ":6443*Client.Timeout exceeded while awaiting headers",
				":6443*context deadline exceeded", ":6443*: EOF", ":6443*: unexpected EOF", ":6443: read: connection reset by peer",
				":6443: connect: connection reset", ":6443*net/http: request canceled", ":443: connect: connection refused*leases",
				"couldn't validate the identity of the API Server*timed out",
				"couldn't validate the identity of the API Server*deadline exceeded", "Unable to connect to the server: dial tcp",
				"Unable to connect to the server: EOF", "Unable to connect to the server: net/http",
				"Failed to request cluster info, will try again*dial tcp", "Failed to connect to API Server",
				"abort connecting to API servers after timeout", "Unable to register node*with API server*dial tcp",
				"Failed to contact API server", "Failed to ensure lease exists, will retry*dial tcp",
				"Failed to request cluster info*Client.Timeout",
				"error execution phase preflight*client rate limiter Wait returned an error: context deadline exceeded",
				"Kubernetes API server*not ready", "http2: client connection lost", "couldn't validate the identity of the API Server",
				":443: i/o timeout*kubernetes", "The connection to the server*timed out", "kube-apiserver is not ready",
				"dial tcp *:6443: connect", ":6443 - connection refused", "Failed connect to*:6443", "Connection refused*6443",
				"6443: Connection timed out", "No route to host*6443", ":9443: connect: connection refused",
				"Unable to connect to the server",
			), "localhost:8080", "did not match*apiserver", "GET https://localhost:6443/livez 200", "in-cluster authentication configuration"),
			seldomRight("failed to get initial cluster info", "context deadline exceeded", "localhost:8080 was refused"),
			except(proves(
				"/api/v1/*: EOF", "/api/v1/*unexpected EOF", "/api/v1/*connect: connection refused", "/api/v1/*: i/o timeout",
				"/api/v1/*no route to host", "/api/v1/*TLS handshake timeout", "/api/v1/*request canceled", "/apis/*: EOF",
				"/apis/*unexpected EOF", "/apis/*connect: connection refused", "/apis/*: i/o timeout", "/apis/*no route to host",
				"/apis/*TLS handshake timeout", "/apis/*request canceled",
			), "SubnetManager", "flannel", "calico", "cilium", "localhost:8080", "such host", "lookup", "in-cluster authentication configuration"),
			// The API server as pods see it; what a network add-on says of it tells of the add-on.
			except(proves(
				"https://10.*.0.1:443/*i/o timeout", "https://10.*.0.1:443/*: connect: ", "https://10.*.0.1:443/*getsockopt",
				"https://172.20.0.1:443/*i/o timeout", "https://10.152.183.1:443/*i/o timeout", "dial tcp 10.96.0.1:443: i/o timeout",
			), "SubnetManager", "flannel", "calico", "cilium"),
			proves(
				"has no server available!",
				"Entering FAULT STATE", "Failed to connect to * port 6443", "port 6443: Connection refused",
				"port 6443: No route to host", "port 6443 failed: Connection refused", "port 6443: Connection timed out",
				"apiserver*is DOWN", "Failed to connect to * port 8443", "could not bootstrap the admin user*timed out",
				"could not bootstrap the admin user*deadline", "timed out waiting for the apiserver",
				"Error creating leases*connection refused",
				"error execution phase addon", "error execution phase bootstrap-token",
				"error execution phase control-plane-join/update-status", "Waiting for API server timed out",
				"k8s-api*is unreachable", ":6443: connect: host is down", ":6443*read: operation timed out",
				":6443*http: server closed",
			),
			proves(
				"error execution phase upload-config/kubeadm",
			),
		),
	},
	{
		ID:      FirewallBlocked,
		Meaning: "A firewall of the host or the cloud drops traffic that the cluster needs.",
		Hint: "Open 6443, 10250 and the overlay's port (8472/udp for Flannel, 4789/udp, 179) between nodes, 2379-2380 between " +
			"control planes: " +
			"`firewall-cmd --permanent --add-port=6443/tcp … && firewall-cmd --reload`, `ufw allow 6443/tcp`, or the cloud's " +
			"security group.",
		Sources: []string{"kubernetes/kubernetes#100797"},
		patterns: together(
			proves(
				"REJECT*dpt:6443", "DROP*DPT=6443", "DPT=6443", "DPT=2380", "DPT=2379", "DPT=10250", "DPT=8472", "UFW BLOCK",
				"FINAL_REJECT", "filter_IN_public_DENY", "reject-with icmp-host-prohibited", "host administratively prohibited",
				"icmp admin prohibited", "communication administratively prohibited", "6443/tcp filtered", "2380/tcp filtered",
				"10250/tcp filtered", "8472/udp filtered", "security group*6443", "port*blocked by firewall", "6443*Packet filtered",
				"connect: operation not permitted", ":10250: connect: no route to host", ":10250: i/o timeout",
				":2380: i/o timeout", ":2379: i/o timeout",
				"sendmsg: operation not permitted", "firewalld*REJECT", "kernel: *IN=*OUT=*DPT=",
				":10250: connect: connection timed out", ":2380: connect: connection timed out",
				"nc: connect to*port 6443 (tcp) failed: Connection timed out", "nc: connect to*port 6443 (tcp) timed out",
				"8472*operation not permitted", "admin prohibited",
			),
			seldomRight("[WARNING Firewalld]", "firewalld is active, please ensure ports",
				"firewalld.service Active: active"),
			proves(
				"Destination Host Prohibited", "Communication prohibited by filter", "blocked by iptables",
				"firewall*blocking", "port*closed*firewall", "10250: connect: connection timed out",
			),
		),
	},
	{
		ID:      DNSResolutionFailure,
		Meaning: "A name that the join needs, most often the control plane's, does not resolve on this machine.",
		Hint:    "`getent hosts NAME`; fix the DNS server in /etc/resolv.conf or add the name to /etc/hosts, then join again.",
		Sources: []string{"kubernetes-sigs/kind#2099"},
		patterns: together(
			except(endsTheWait(
				": no such host", "lookup *: server misbehaving", "Temporary failure in name resolution", "lookup*on*: i/o timeout",
				"lookup*read: connection refused", "Name or service not known", "Could not resolve host", "lookup*: Temporary failure",
				"lookup*: dial udp", "lookup*: no answer from DNS", "could not resolve host", "nodename nor servname provided",
				"lookup*: device or resource busy", "lookup*: connection refused",
			), "[WARNING", "registry", "gcr.io", "docker.io", "ghcr.io", "quay.io", "registry.k8s.io", "dl.k8s.io", "pkgs.k8s.io", "pull",
				"storage.googleapis", "stable-1.txt", "ErrImage"),
			seldomRight("nameserver limits were exceeded*none", "no such host"),
			proves(
				"systemd/resolve/resolv.conf: no such file", "/etc/resolv.conf: no such file", "detected for zone \".\"",
				"getaddrinfo failed", "plugin/loop: Loop", "plugin/errors: 2*i/o timeout",
				"Could not resolve the name", "cannot resolve host", "unknown host",
			),
			proves(
				"more than twice, loop detected",
			),
		),
	},
	{
		ID:      ProxyInterference,
		Meaning: "An HTTP proxy captures traffic that is meant for the cluster.",
		Hint: "Add the API server's address, the node, service and pod networks, .svc and .cluster.local to NO_PROXY of the shell, " +
			"the kubelet and the runtime " +
			"(`systemctl show -p Environment containerd kubelet`), or unset HTTPS_PROXY for the join.",
		Sources: []string{"kubernetes/kubeadm#2145"},
		patterns: together(
			proves(
				"proxyconnect tcp", "Proxy Authentication Required", "407 Proxy", "Access Denied*squid", "X-Squid-Error",
				"via proxy*failed", "malformed HTTP response*proxy", "Unable to connect to the server: Service Unavailable",
				"unable to connect to the server: Forbidden", "Unable to connect to the server: Gateway Timeout",
				"http: server gave HTTP response to HTTPS client*proxy", "unexpected EOF*proxy", "<title>*proxy", "ERR_ACCESS_DENIED",
				"ERR_CANNOT_FORWARD", "proxy*503 Service Unavailable", "proxy*502 Bad Gateway", "proxy*504 Gateway",
				"unable to connect to proxy", "Unable to connect to the server: Bad Gateway", "HTTP code 403 from proxy after CONNECT",
				"Received HTTP code*from proxy", "kubeadm*: Forbidden: proxy", "proxy error from", "Network Error (tcp_error)",
				"kubeadm*: Gateway Time-out", "cluster-info*: Service Unavailable",
				"couldn't validate the identity of the API Server*: Service Unavailable",
				"couldn't validate the identity of the API Server*: Bad Gateway", "identity of the API Server*: Proxy Error",
				"Tunnel or SSL Forbidden", "X-Cache: MISS from", "cluster-info*: Forbidden\n",
			),
			seldomRight("[WARNING HTTPProxy]", "[WARNING HTTPProxyCIDR]", "If that is not intended, adjust your proxy settings",
				"HTTPS_PROXY=", "https_proxy=",
				"may lead to malfunctional cluster setup"),
			proves(
				"Proxy CONNECT aborted", "Unable to establish SSL connection*proxy", "Connection to the proxy*failed",
				"zscaler", "Blue Coat", "407 authenticationrequired", "proxy: 40", "proxy: 50", "through the proxy*failed",
			),
		),
	},
	{
		ID:      AdvertiseAddressWrong,
		Meaning: "A cluster address belongs to the wrong interface (such as loopback or NAT), so other nodes cannot reach it.",
		Hint: "Name the right one: `kubeadm init --apiserver-advertise-address=IP` (joining: localAPIEndpoint.advertiseAddress, " +
			"and --node-ip for the kubelet); " +
			"with VirtualBox or Vagrant never the NAT address 10.0.2.15; then `kubeadm reset -f` and again.",
		Sources: []string{"kubernetes/kubeadm#1359", "kubernetes/kubeadm#2275"},
		patterns: together(
			proves(
				"https://10.0.2.15:6443", "10.0.2.15:2380", "10.0.2.15:2379",
				"couldn't validate the identity of the API Server*127.0.0.1:6443", "10.0.2.15:6443",
				"https://127.0.0.1:6443*cluster-info", "https://localhost:8443/*kubeadm-config",
				"https://127.0.0.1:*configmaps/kubeadm-config", "https://localhost:6443/*configmaps", "https://127.0.1.1:6443",
				"127.0.1.1:2380", "127.0.1.1:6443",
				"advertise-address*loopback", "advertise address*invalid", "advertiseAddress*is not*valid",
				"couldn't use*as \"apiserver-advertise-address\", must be ipv4 or ipv6 address",
				"cannot use \"0.0.0.0\" as the bind address for the API Server", "apiserver-advertise-address*must be",
				"bind: cannot assign requested address", "listen tcp *: cannot assign requested address",
				"node IP*not found in the host's network interfaces", "not found in the host's network interfaces",
				"unable to select an IP from default routes", "unable to select an IP", "nodeIP can't be loopback", "nodeIP can't be",
				"wrong network interface", "no default routes found in", "node IP: *invalid",
				"Unable to connect to the server: dial tcp 127.0.0.1:6443", "[discovery]*127.0.0.1:6443",
				"Failed to request cluster info*127.0.0.1:6443", "Failed to request cluster info*localhost:6443", "can't be multicast",
				"unable to get IP address*interface", "failed to get node IP",
				"tls: first record does not look like a TLS handshake*advertise", "failed to validate nodeIP",
			),
			seldomRight("10.0.2.15"),
			proves(
				"autodetected IPv4 address*10.0.2.15",
			),
			proves(
				"Using interface with name * and address 10.0.2.15", "Using * as external address 10.0.2.15",
				"Using 10.0.2.15 as external",
			),
			seldomRight(
				"node-ip=10.0.2.15", "--advertise-address=10.0.2.15",
			),
		),
	},
}
