#!/usr/bin/env bash
# down.sh [HOME...]: takes down the labs that end-to-end specs left, and removes their state directories: those named, or those of every
# suite that was killed. A suite that runs holds its directory's lock, and keeps its labs. Anybody can make a directory of such a name: only the
# caller's own, in which nobody else can make files, is believed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

(($#)) || set -- "${TMPDIR:-/tmp}"/e2e-*
left=0
for home; do
	[[ -d $home/e2e ]] || continue
	if [[ -L $home || ! -O $home || ! -O $home/lock || -L $home/lock || $(stat --format %a "$home") != 700 ]]; then
		echo "$home is left alone: it is not a suite's directory of this user" >&2
		continue
	fi
	exec {lock}<"$home/lock"
	if flock --nonblock "$lock"; then
		here=0
		for config in "$home"/e2e/*.yaml "$home"/?/e2e/*.yaml; do # some specs have a file system of their own
			state=${config%/e2e/*}
			lab=$state/k8slab/$(basename "$config" .yaml)
			[[ -d $lab ]] || continue
			echo "taking down $(basename "$lab"), left by a killed suite"
			XDG_STATE_HOME=$state timeout --kill-after 10 180 bin/labctl -c "$config" down --adopted || here=1
		done
		if ((here)); then
			echo "a lab is left; its state is in $home" >&2
			left=1
		else
			awk -v under="$home/" 'index($2, under) == 1 { print $2 }' /proc/mounts | tac | xargs --no-run-if-empty umount
			rm -rf --one-file-system -- "$home"
		fi
	fi
	exec {lock}>&-
done
exit "$left"
