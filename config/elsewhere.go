package config

import (
	"errors"

	"go.yaml.in/yaml/v3"
)

// Moved is the text of a cluster.yaml as that of another lab, whose programs come from the directory to where they came from the directory
// from. Nothing else of it changes but comments and blanks.
func Moved(text []byte, name, from, to string) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	if len(root.Content) == 0 {
		return nil, errors.New("the file is empty")
	}
	file := root.Content[0]
	if at := valueOf(file, "name"); at.Kind == yaml.ScalarNode {
		at.SetString(name)
	} else {
		var key, value yaml.Node
		key.SetString("name")
		value.SetString(name)
		file.Content = append([]*yaml.Node{&key, &value}, file.Content...)
	}
	kubernetes := valueOf(file, "kubernetes")
	sources := append([]*yaml.Node{valueOf(kubernetes, "source")}, valueOf(kubernetes, "programs").Content...)
	for _, section := range []string{"etcd", "coredns", "containerd"} {
		sources = append(sources, valueOf(valueOf(file, section), "source"))
	}
	for _, at := range sources {
		if at.Kind == yaml.ScalarNode && at.Value == from {
			at.SetString(to)
		}
	}
	moved, err := yaml.Marshal(&root)
	if err != nil {
		return nil, err
	}
	_, _, err = Parse("cluster.yaml of lab "+name, moved)
	return moved, err
}

// Directories are the directories of this computer that the lab's programs come from, by the keys that name them.
func (c *Cluster) Directories() map[string]string {
	named := map[string]string{"kubernetes.source": c.Kubernetes.Source}
	for program, from := range c.Kubernetes.Programs {
		named["kubernetes.programs."+program] = from
	}
	for name, of := range c.Components() {
		named[name+".source"] = of.Source
	}
	for key, at := range named {
		if at == "" || at[0] != '/' {
			delete(named, key)
		}
	}
	return named
}
