package join

// What the kernel and systemd of a lab node show.

const tcpHeading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

const fibTrie = `Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     +-- 10.30.0.0/24 2 0 2
        |-- 10.30.0.21
           /32 host LOCAL
        |-- 10.30.0.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
        |-- 127.0.0.1
           /32 host LOCAL
`

const kubeletUnit = `Id=kubelet.service
LoadState=loaded
ActiveState=inactive
SubState=dead
UnitFileState=enabled
ExecStart={ path=/usr/bin/kubelet ; argv[]=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf" KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml
EnvironmentFiles=/var/lib/kubelet/kubeadm-flags.env (ignore_errors=yes)
EnvironmentFiles=/etc/default/kubelet (ignore_errors=yes)
FragmentPath=/usr/lib/systemd/system/kubelet.service
DropInPaths=/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf
NeedDaemonReload=no
`

const containerdUnit = `Id=containerd.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
ExecStart={ path=/usr/bin/containerd ; argv[]=/usr/bin/containerd ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }
Environment=
FragmentPath=/usr/lib/systemd/system/containerd.service
NeedDaemonReload=no
`
