# machine.sh: the steps that build.sh does as root on the machines of a foreign cluster, with `sh -s STEP`. build.sh puts the variables in front
# of it. The commands are those of kubeadm's manual: nothing here knows labctl.
set -eu
umask 022

# Container machines share their computer's kernel and memory, which these checks read.
ignored=SystemVerification,Mem,NumCPU

# layout makes another machine of it than labctl makes: another login, another port, nothing of the lab's own.
layout() {
	systemctl stop keepalived kubelet containerd 2>/dev/null || true
	login
	echo "$hosts" >>/etc/hosts

	# The plugin is a program of its own here, and the images are somewhere else.
	cp --remove-destination "$(readlink -f /opt/cni/bin/flannel)" /opt/cni/bin/flannel.new
	mv /opt/cni/bin/flannel.new /opt/cni/bin/flannel
	move_store
	# Kubernetes' image of etcd has etcdctl, and the lab's has not: here it is the administrator's own.
	cp --dereference /usr/bin/etcdctl /usr/local/bin/etcdctl
	rm -rf /usr/bin/labnode /usr/bin/etcdctl /usr/bin/etcdutl /usr/lib/k8slab/inventory.json /usr/lib/k8slab/kubeadm /usr/lib/k8slab/follow /var/lib/k8slab /var/log/k8slab* \
		/root/.kube /etc/cni/net.d/* /usr/sbin/keepalived /usr/lib/systemd/system/keepalived.service* /etc/keepalived
	systemctl daemon-reload
	case $role in
	jump) systemctl disable --quiet kubelet containerd ;;
	*) systemctl start containerd ;;
	esac
	# The last: whoever logged in as before is out now.
	rm -rf /root/.ssh /etc/ssh/sshd_config.d/k8slab.conf
	systemctl restart ssh
}

# bare is for a machine that waits for a cluster: what the owner of such a computer would tell kubelet. Containers have the cgroups and the swap
# of their computer.
bare() {
	echo 'KUBELET_EXTRA_ARGS="--fail-cgroupv1=false --fail-swap-on=false"' >/etc/default/kubelet
}

# login makes the user, and an SSH server that only the jump host reaches. What is not said here is as OpenSSH has it.
login() {
	useradd --create-home --shell /bin/bash "$user"
	install -d -m 0700 -o "$user" -g "$user" "/home/$user/.ssh"
	echo "$public_key" >"/home/$user/.ssh/authorized_keys"
	chown "$user:$user" "/home/$user/.ssh/authorized_keys"
	cat >/etc/ssh/sshd_config.d/home.conf <<-END
		Port $port
		PermitRootLogin no
		PasswordAuthentication no
		KbdInteractiveAuthentication no
		AllowUsers $user
		UseDNS no
	END
	ssh-keygen -A >/dev/null
	case $role in
	jump) return ;;
	esac
	if [ "$password" ]; then
		echo "$user:$password" | chpasswd
		echo "$user ALL=(ALL:ALL) ALL"
	else
		echo "$user ALL=(ALL:ALL) NOPASSWD: ALL"
	fi >"/etc/sudoers.d/$user"
	chmod 0440 "/etc/sudoers.d/$user"
	echo "sshd: $jump" >>/etc/hosts.allow
	echo 'sshd: ALL' >>/etc/hosts.deny
}

# move_store has containerd find the image's layers in a directory with another name, and hides the lab's own.
move_store() {
	mkdir -p /srv/images
	mount --bind /usr/share/k8slab/containerd /srv/images
	find /var/lib/containerd -lname '/usr/share/k8slab/*' | while read -r link; do
		target=$(readlink "$link")
		ln -sfn "/srv/images/${target#/usr/share/k8slab/containerd/}" "$link"
	done
	mount -t tmpfs -o size=4k,ro,mode=755 none /usr/share/k8slab
}

cluster_configuration() {
	cat <<-END
		apiVersion: kubeadm.k8s.io/v1beta4
		kind: ClusterConfiguration
		kubernetesVersion: $(kubeadm version -o short)
		controlPlaneEndpoint: $endpoint:6443
		networking: {podSubnet: 10.244.0.0/16}
	END
}

# init is the first control plane.
init() {
	cat >/root/kubeadm.yaml <<-END
		apiVersion: kubeadm.k8s.io/v1beta4
		kind: InitConfiguration
		localAPIEndpoint: {advertiseAddress: $ip}
		nodeRegistration: {name: $node}
		---
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		failCgroupV1: false # containers have the cgroups and the swap of their computer
		failSwapOn: false
		---
		apiVersion: kubeproxy.config.k8s.io/v1alpha1
		kind: KubeProxyConfiguration
		mode: nftables
		conntrack: {maxPerCore: 0} # a container may not change it
		---
	END
	cluster_configuration >>/root/kubeadm.yaml
	if [ "$etcd_host" ]; then
		echo "$etcd_files" | base64 -d | tar -xz -C /
		cat >>/root/kubeadm.yaml <<-END
			etcd:
			  external:
			    endpoints: ["https://$etcd_host:2379"]
			    caFile: /etc/kubernetes/pki/etcd/ca.crt
			    certFile: /etc/kubernetes/pki/apiserver-etcd-client.crt
			    keyFile: /etc/kubernetes/pki/apiserver-etcd-client.key
		END
	fi
	# By the time that the API server answers, kubelet has backed off to many seconds; started again it registers at once.
	until curl -sfk --max-time 2 https://127.0.0.1:6443/livez >/dev/null; do sleep 0.3; done && systemctl restart kubelet &
	kubeadm init --config /root/kubeadm.yaml --upload-certs --ignore-preflight-errors "$ignored" >/root/kubeadm-init.log 2>&1 || {
		kill $!
		tail -n 40 /root/kubeadm-init.log >&2
		exit 1
	}
	wait
	mkdir -p "/home/$user/.kube"
	cp /etc/kubernetes/admin.conf "/home/$user/.kube/config"
	chown -R "$user:$user" "/home/$user/.kube"
	echo "$flannel" | base64 -d | kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f - >/dev/null
}

# invite prints the join command, and on the second line the key of the certificates.
invite() {
	export KUBECONFIG=/etc/kubernetes/admin.conf
	kubeadm token create --print-join-command
	kubeadm init phase upload-certs --upload-certs --config /root/kubeadm.yaml | tail -n 1
}

join() {
	case $role in
	control-plane) set -- --control-plane --certificate-key "$certificate_key" --apiserver-advertise-address "$ip" ;;
	*) set -- ;;
	esac
	# shellcheck disable=SC2086 # the command is words
	$join_command --node-name "$node" --ignore-preflight-errors "$ignored" "$@" >/root/kubeadm-join.log 2>&1 || {
		tail -n 40 /root/kubeadm-join.log >&2
		exit 1
	}
}

# etcd is a machine with an etcd that kubelet runs alone, as in kubeadm's manual. It prints what a control plane needs of it.
etcd() {
	mkdir -p /etc/systemd/system/kubelet.service.d /var/lib/kubelet
	printf '[Service]\nExecStart=\nExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml\n' >/etc/systemd/system/kubelet.service.d/20-etcd.conf
	cat >/var/lib/kubelet/config.yaml <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		authentication: {anonymous: {enabled: false}, webhook: {enabled: false}}
		authorization: {mode: AlwaysAllow}
		cgroupDriver: systemd
		address: 127.0.0.1
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		staticPodPath: /etc/kubernetes/manifests
		failCgroupV1: false
		failSwapOn: false
	END
	systemctl daemon-reload
	systemctl restart kubelet
	{
		cluster_configuration
		cat <<-END
			etcd: {local: {serverCertSANs: [$ip], peerCertSANs: [$ip]}}
			---
			apiVersion: kubeadm.k8s.io/v1beta4
			kind: InitConfiguration
			nodeRegistration: {name: $node}
			localAPIEndpoint: {advertiseAddress: $ip}
		END
	} >/root/kubeadm.yaml
	for phase in etcd-ca etcd-server etcd-peer etcd-healthcheck-client apiserver-etcd-client; do
		kubeadm init phase certs "$phase" --config /root/kubeadm.yaml >&2
	done
	kubeadm init phase etcd local --config /root/kubeadm.yaml >&2
	tar -cz -C / etc/kubernetes/pki/etcd/ca.crt etc/kubernetes/pki/apiserver-etcd-client.crt etc/kubernetes/pki/apiserver-etcd-client.key | base64 -w 0
}

# ready waits until every node and CoreDNS are.
ready() {
	export KUBECONFIG=/etc/kubernetes/admin.conf
	kubectl wait --for=condition=Ready nodes --all --timeout=3m >/dev/null
	kubectl rollout status --namespace kube-flannel daemonset/kube-flannel-ds --timeout=2m >/dev/null
	kubectl rollout status --namespace kube-system deployment/coredns --timeout=2m >/dev/null
	kubectl get nodes -o wide
}

"$1"
