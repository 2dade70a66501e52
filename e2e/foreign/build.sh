#!/usr/bin/env bash
# build.sh FILE: a cluster that kubeadm's own commands made, on machines with another layout than labctl's: machine.sh has the commands.
# FILE is the cluster.yaml that this script writes. labctl makes bare machines of it, and knows nothing of the cluster on them: take them down
# with `labctl -c FILE down`. What a user would know is in the directory FILE.home: id_ed25519, password (empty: sudo asks for none), nodes (lines
# of MACHINE NODE IP ROLE). Needs root, and writes to the state directory of labctl's as every lab.
#
# In the environment: LABCTL, NETWORK (10.70.0), CONTROL_PLANES (3), WORKERS (2), ETCD (empty, or external: on a machine of its own), SUDO (free, or
# password), DOMAIN (the end of the nodes' names, such as .home.lan), KUBERNETES (a version), BARE (1: machines without a cluster).
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
file=$(readlink -f "$1")
home=$file.home
labctl=${LABCTL:-$here/../../bin/labctl}
network=${NETWORK:-10.70.0}
name=$(basename "$file" .yaml)
user=ops
endpoint=k8s.home.lan
umask 077

say() { printf '%4d s  %s\n' "$SECONDS" "$*" >&2; }
lab() { "$labctl" -c "$file" "$@"; }

# The nodes' names are not those of the machines.
describe() {
	local machine=0 names=(north south east west nas pi hut den)
	mkdir -p "$home"
	rm -f "$home"/*
	ssh-keygen -q -t ed25519 -N '' -C "$user@home" -f "$home/id_ed25519"
	if [[ ${SUDO:-free} == password ]]; then
		head -c 12 /dev/urandom | base64 >"$home/password"
	else
		: >"$home/password"
	fi
	printf 'name: %s\nlibvirt: {uri: "lxc:///system"}\nnetwork: {cidr: %s.0/24}\n' "$name" "$network" >"$file"
	[[ -z ${KUBERNETES:-} ]] || echo "kubernetes: {version: $KUBERNETES, source: modules}" >>"$file"
	echo 'nodes:' >>"$file"
	add() { # ROLE NODE MAKER'S-ROLE
		machine=$((machine + 1))
		echo "m$machine $2 $network.$((60 + machine)) $1" >>"$home/nodes"
		echo "  - {name: m$machine, role: $3, ip: $network.$((60 + machine))}" >>"$file"
	}
	for ((i = 0; i < ${CONTROL_PLANES:-3}; i++)); do add control-plane "${names[i]}${DOMAIN:-}" control-plane; done
	for ((i = 0; i < ${WORKERS:-2}; i++)); do add worker "${names[${CONTROL_PLANES:-3} + i]}${DOMAIN:-}" worker; done
	[[ ${ETCD:-} != external ]] || add etcd vault control-plane
	add jump gate worker
}

# hosts is what name servers would say: the API's name has the addresses of all control planes.
hosts() {
	awk -v endpoint="$endpoint" '{ print $3, $2; if ($4 == "control-plane") print $3, endpoint }' "$home/nodes"
}

# first prints a field of the first machine of the role: 1 machine, 2 node, 3 address.
first() { awk -v role="$1" -v field="$2" '$4 == role { print $field; exit }' "$home/nodes"; }

# on MACHINE STEP [NAME=VALUE...] does a step of machine.sh, as somebody at its console would. Nothing of it is on a command line.
on() {
	local machine=$1 step=$2 node ip role port=2222 controller pair
	shift 2
	read -r _ node ip role < <(grep "^$machine " "$home/nodes")
	[[ $role != jump ]] || port=22
	controller=$(lab host exec -- virsh -q -c lxc:///system domid "$name-$machine")
	{
		for pair in "node=$node" "ip=$ip" "role=$role" "port=$port" "user=$user" "endpoint=$endpoint" "password=$(<"$home/password")" \
			"jump=$(first jump 3)" "etcd_host=$(first etcd 3)" "$@"; do
			printf "%s='%s'\n" "${pair%%=*}" "${pair#*=}" # no value has a quote
		done
		cat "$here/machine.sh"
	} | nsenter --target="$(cut -d ' ' -f 1 "/proc/$controller/task/$controller/children")" --mount --net --pid --uts --ipc --cgroup -- \
		env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh -c 'cd /root; exec sh -s "$1"' sh "$step"
}

# each ROLE FUNCTION [ARGUMENT...] calls it for all machines of the role ("." is any), at the same time.
each() {
	local role=$1 pids=() pid machine
	shift
	for machine in $(awk -v role="$role" '$4 ~ role { print $1 }' "$home/nodes"); do
		"$1" "$machine" "${@:2}" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid"; done
}

describe
lab up --until machines >"$home/up.log" 2>&1 || { cat "$home/up.log" >&2; exit 1; }
say machines
each . on layout "hosts=$(hosts)" "public_key=$(<"$home/id_ed25519.pub")"
say layout
if [[ ${BARE:-} ]]; then
	each 'control-plane|worker' on bare
	exit 0
fi
etcd_files=
[[ ${ETCD:-} != external ]] || etcd_files=$(on "$(first etcd 1)" etcd)
one=$(first control-plane 1)
on "$one" init "etcd_files=$etcd_files" "flannel=$(base64 -w 0 <"$here/flannel.yaml")"
say "init $(first control-plane 2)"
{ read -r join_command && read -r certificate_key; } < <(on "$one" invite)
invitation=("join_command=$join_command" "certificate_key=$certificate_key")
each worker on join "${invitation[@]}" &
workers=$!
for machine in $(awk '$4 == "control-plane" { print $1 }' "$home/nodes"); do
	[[ $machine != "$one" ]] || continue
	on "$machine" join "${invitation[@]}"
	say "join $machine"
done
wait "$workers"
say workers
on "$one" ready
say ready
