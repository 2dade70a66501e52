package scenarios

import "context"

// image is a container image that a fault removes from a node.
type image struct {
	name string // script that prints it
}

// ofImage begins each script about an image: $1 is the name under which the node keeps it meanwhile, since nothing could pull it again.
const ofImage = `
	note=` + keptFiles + `/image
	images() { ctr --namespace k8s.io images "$@"; }
`

const keptImage = "fault.invalid/kept:1"

// remove takes the image's name away, so that nothing finds it any more.
func (i image) remove(ctx context.Context, t Target) error {
	return t.shell(ctx, t.Node, ofImage+`
		image=$(`+i.name+`)
		test -n "$image"
		mkdir -p "${note%/*}"
		images tag --force "$image" "$1"
		echo "$image" >"$note"
		images rm --sync "$image"`, keptImage)
}

// bringBack gives the image its name again, if nobody has.
func (i image) bringBack(ctx context.Context, t Target) error {
	return t.shell(ctx, t.Node, ofImage+`
		test -e "$note" || exit 0
		image=$(cat "$note")
		test -n "$(images ls --quiet "name==$image")" || images tag "$1" "$image"
		images rm --sync "$1"
		rm "$note"`+tidy, keptImage)
}
