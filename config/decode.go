package config

import (
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// autoNetwork stands for auto until a network is chosen: no range of the file's can be it.
var autoNetwork = netip.PrefixFrom(netip.IPv6Unspecified(), 0)

// decode stores the YAML value n into v and reports whatever does not fit. A
// null value counts as absent and leaves the default. Aliases are refused
// and never followed, so a small file cannot stand for a large value.
func (d *document) decode(path string, n *yaml.Node, v reflect.Value) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.report(path, "aliases are not accepted; write the value out")
	case isNull(n):
	case v.Type() == reflect.TypeFor[netip.Addr]():
		addr, err := netip.ParseAddr(n.Value)
		if !isText(n) || err != nil || !addr.Is4() {
			d.wrongType(path, n, "an IPv4 address such as 10.30.0.11")
			return
		}
		v.Set(reflect.ValueOf(addr))
	case path == "network.cidr" && isText(n) && n.Value == "auto":
		v.Set(reflect.ValueOf(autoNetwork))
	case v.Type() == reflect.TypeFor[netip.Prefix]():
		prefix, err := netip.ParsePrefix(n.Value)
		if !isText(n) || err != nil || !prefix.Addr().Is4() {
			d.wrongType(path, n, "an IPv4 range such as 10.30.0.0/24")
			return
		}
		v.Set(reflect.ValueOf(prefix))
	case v.Type() == reflect.TypeFor[time.Duration]():
		limit, err := time.ParseDuration(n.Value)
		if !isText(n) || err != nil {
			d.wrongType(path, n, "a duration such as 5m or 90s")
			return
		}
		v.SetInt(int64(limit))
	case v.Kind() == reflect.Struct:
		d.decodeStruct(path, n, v)
	case v.Kind() == reflect.Slice:
		d.decodeSlice(path, n, v)
	case v.Kind() == reflect.Map:
		d.decodeMap(path, n, v)
	case v.Kind() == reflect.Interface:
		d.decodeAny(path, n, v)
	default:
		d.decodeScalar(path, n, v)
	}
}

func (d *document) decodeScalar(path string, n *yaml.Node, v reflect.Value) {
	tag := ""
	if n.Kind == yaml.ScalarNode {
		tag = n.ShortTag()
	}
	switch v.Kind() {
	case reflect.String:
		if !isText(n) {
			d.wrongType(path, n, "text (in quotes when it looks like a number, date or true/false)")
			return
		}
		v.SetString(n.Value)
	case reflect.Bool:
		if tag != "!!bool" || n.Value != "true" && n.Value != "false" {
			d.wrongType(path, n, "true or false")
			return
		}
		v.SetBool(n.Value == "true")
	case reflect.Int:
		i, err := strconv.Atoi(n.Value)
		// YAML reads 010 and 0x10 as other numbers than a person may: only the
		// plain form is accepted.
		if tag != "!!int" || err != nil || strconv.Itoa(i) != n.Value {
			d.wrongType(path, n, "a whole number in plain digits")
			return
		}
		v.SetInt(int64(i))
	default:
		panic("config: no decoder for " + v.Type().String())
	}
}

func (d *document) decodeSlice(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode || n.ShortTag() != "!!seq" {
		d.wrongType(path, n, "a list")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		element := fmt.Sprintf("%s[%d]", path, i)
		d.lines[element] = item.Line
		d.decode(element, item, v.Index(i))
	}
}

func (d *document) decodeStruct(path string, n *yaml.Node, v reflect.Value) {
	fields := fieldsOf(v.Type())
	keys := keysOf(v.Type())
	accepted := strings.Join(keys, ", ")
	if n.Kind != yaml.MappingNode || n.ShortTag() != "!!map" {
		d.wrongType(path, n, "a mapping with the keys "+accepted)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.reportAt(key.Line, path, "a key must be a plain word; accepted keys: %s", accepted)
			continue
		}
		index := slices.Index(keys, key.Value)
		if index < 0 {
			d.unknownKey(path, key, keys)
			continue
		}
		if field := join(path, key.Value); d.begins(field, key) {
			d.decode(field, value, v.FieldByIndex(fields[index].Index))
		}
	}
}

// begins keeps where the field's key stands. It reports a key that is there twice.
func (d *document) begins(field string, key *yaml.Node) bool {
	if d.written(field) {
		// Which of the two was meant is unknown, so the field is not checked further.
		d.bad[field] = true
		d.reportAt(key.Line, field, "the key is already on line %d; keep one of them", d.line(field))
		return false
	}
	d.lines[field] = key.Line
	return true
}

// decodeMap takes any keys. A key without a value counts as absent.
func (d *document) decodeMap(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode || n.ShortTag() != "!!map" {
		d.wrongType(path, n, "a mapping")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !isText(key) {
			d.reportAt(key.Line, path, "found %s as a key; use text (in quotes when it looks like a number, date or true/false)", describe(key))
			continue
		}
		if field := join(path, keyName(key.Value)); d.begins(field, key) && !isNull(value) {
			of := reflect.New(v.Type().Elem()).Elem()
			d.decode(field, value, of)
			v.SetMapIndex(reflect.ValueOf(key.Value), of)
		}
	}
}

// decodeAny takes whatever JSON has.
func (d *document) decodeAny(path string, n *yaml.Node, v reflect.Value) {
	var of any
	switch tag := n.ShortTag(); {
	case n.Kind == yaml.MappingNode:
		of = map[string]any{}
	case n.Kind == yaml.SequenceNode:
		of = []any{}
	case tag == "!!bool":
		of = false
	case tag == "!!int":
		of = 0
	case tag == "!!float":
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			v.Set(reflect.ValueOf(f))
			return
		}
		d.wrongType(path, n, "a number in plain digits")
		return
	default:
		of = ""
	}
	typed := reflect.New(reflect.TypeOf(of)).Elem()
	d.decode(path, n, typed)
	v.Set(typed)
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

func (d *document) unknownKey(path string, key *yaml.Node, keys []string) {
	if key.Value == "<<" {
		d.reportAt(key.Line, path, "merge keys (<<) are not accepted; write the keys out")
		return
	}
	message := "unknown key; "
	if near := Nearest(key.Value, keys); near != "" {
		message += "did you mean " + near + "? "
		// The value meant for the near key is not in it: checks that rely on
		// that key would report mistakes the file does not have.
		d.bad[join(path, near)] = true
	}
	d.reportAt(key.Line, join(path, keyName(key.Value)), "%saccepted keys: %s", message, strings.Join(keys, ", "))
}

// keyName is a key as it is shown.
func keyName(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return quote(key)
}

func (d *document) wrongType(path string, n *yaml.Node, want string) {
	d.report(path, "found %s; use %s", describe(n), want)
}

// describe names a YAML value for a message.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!str":
		return "the text " + quote(n.Value)
	case "!!int", "!!float":
		return "the number " + quote(n.Value)
	case "!!bool":
		return "the boolean " + quote(n.Value)
	case "!!timestamp":
		return "the date " + quote(n.Value)
	}
	return "the tagged value " + quote(n.ShortTag()+" "+n.Value)
}

// isNull tells `key:`, `key: ~` and `key: null`, but not a value tagged as null.
func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style&yaml.TaggedStyle == 0 && n.ShortTag() == "!!null"
}

func isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str"
}

// fieldsOf lists the fields of a struct that the file has, with those of structs
// that are inlined.
func fieldsOf(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
		return f.Anonymous || f.Tag.Get("yaml") == "-"
	})
}

// keysOf lists the YAML keys of a struct, in the order of its fields.
func keysOf(t reflect.Type) (keys []string) {
	for _, f := range fieldsOf(t) {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		keys = append(keys, key)
	}
	return keys
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
