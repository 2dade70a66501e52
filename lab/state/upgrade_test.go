package state

import (
	"reflect"
	"testing"

	"k8slab/config"
)

func TestUpgradeIsRemembered(t *testing.T) {
	l := madeLab(t)
	if u, err := l.Upgrading(); u != nil || err != nil {
		t.Fatalf("before it began: %+v, %v", u, err)
	}
	want := Upgrade{From: "v1.36.3", To: "v1.37.2", Done: []string{"save"}}
	if err := l.Note(want); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Upgrading(); err != nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if err := l.Upgraded(config.Kubernetes{Version: "v1.37.2", Source: "modules"}); err != nil {
		t.Fatal(err)
	}
	made, err := l.Made()
	if err != nil || made.Kubernetes.Version != "v1.37.2" || made.Kubernetes.Source != "modules" {
		t.Errorf("made with %+v, %v", made.Kubernetes, err)
	}
	if u, err := l.Upgrading(); u != nil || err != nil {
		t.Errorf("after its end: %+v, %v", u, err)
	}
}
