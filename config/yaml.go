package config

import (
	"bytes"
	"net/netip"

	"go.yaml.in/yaml/v3"
)

// YAML is a file that Parse reads as the same cluster. Of machines that labctl
// makes it has every default written out. Of a cluster that exists it is a file
// for a person to read and to keep.
func (c *Cluster) YAML() ([]byte, error) {
	if c.OverSSH() {
		return c.readable()
	}
	made := *c
	made.Machines = "" // which is the default
	return yaml.Marshal(&made)
}

// readable leaves out what Parse assumes anyway, and has a line for each node.
func (c *Cluster) readable() ([]byte, error) {
	assumed := defaultsWith(MachinesSSH)
	assumed.Name = "" // these say what the cluster is, so they are always there
	assumed.Network.PodSubnet, assumed.Network.ServiceSubnet = netip.Prefix{}, netip.Prefix{}
	var file, without, nothing yaml.Node
	for node, of := range map[*yaml.Node]any{&file: c, &without: assumed, &nothing: Node{}} {
		if err := node.Encode(of); err != nil {
			return nil, err
		}
	}
	leaveOut(&file, &without)
	for _, n := range valueOf(&file, "nodes").Content {
		leaveOut(n, &nothing)
		n.Style = yaml.FlowStyle
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(&file); err != nil {
		return nil, err
	}
	return text.Bytes(), encoder.Close()
}

// leaveOut removes from a mapping what the other has as well. A section of plain
// values gets a line.
func leaveOut(from, known *yaml.Node) {
	var kept []*yaml.Node
	from.Style = yaml.FlowStyle
	for i := 0; i+1 < len(from.Content); i += 2 {
		key, value := from.Content[i], from.Content[i+1]
		other := valueOf(known, key.Value)
		if value.Kind == yaml.MappingNode {
			leaveOut(value, other)
		}
		empty := value.Kind != yaml.ScalarNode && len(value.Content) == 0
		if empty || value.Kind == yaml.ScalarNode && value.Value == other.Value {
			continue
		}
		if value.Kind != yaml.ScalarNode {
			from.Style = 0
		}
		kept = append(kept, key, value)
	}
	from.Content = kept
}

// valueOf is the value of a mapping's key, empty where there is none.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return &yaml.Node{}
}
