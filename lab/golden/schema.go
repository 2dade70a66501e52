package golden

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Schema is a JSON Schema that documents what a command writes. Each struct has a definition of its type's name.
type Schema struct {
	compiled *jsonschema.Schema
	defs     map[string]definition
}

type definition struct {
	Required             []string
	Properties           map[string]any
	AdditionalProperties *bool
}

// ReadSchema reads the schema at path.
func ReadSchema(t *testing.T, path string) *Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	compiled, err := c.Compile(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Defs map[string]definition `json:"$defs"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	return &Schema{compiled, document.Defs}
}

// Check fails the test unless v, as JSON, is what the schema says.
func (s *Schema) Check(t *testing.T, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err == nil {
		err = s.compiled.Validate(value)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, data)
	}
}

// CheckType fails the test unless the schema has the fields of the struct and of all structs in it, no others, and requires those that
// are always there.
func (s *Schema) CheckType(t *testing.T, of reflect.Type) {
	t.Helper()
	done := map[string]bool{}
	s.checkType(t, of, done)
	for name, d := range s.defs {
		if d.Properties != nil && !done[name] {
			t.Errorf("the schema defines %s, which is no type", name)
		}
	}
}

func (s *Schema) checkType(t *testing.T, of reflect.Type, done map[string]bool) {
	t.Helper()
	for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[time.Time]() || done[of.Name()] {
		return
	}
	done[of.Name()] = true
	d := s.defs[of.Name()]
	if d.AdditionalProperties == nil || *d.AdditionalProperties {
		t.Errorf("%s is not defined, or may have more fields", of.Name())
	}
	fields := 0
	for i := range of.NumField() {
		f := of.Field(i)
		if !f.IsExported() {
			continue
		}
		fields++
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if _, found := d.Properties[name]; !found {
			t.Errorf("%s lacks the field %q; a new field needs a change of the schema", of.Name(), name)
		}
		if must := slices.Contains(d.Required, name); must == strings.Contains(options, "omitempty") {
			t.Errorf("%s: that %q is required is %v", of.Name(), name, must)
		}
		s.checkType(t, f.Type, done)
	}
	if len(d.Properties) != fields || len(d.Required) > fields {
		t.Errorf("%s: the schema has %d fields, the type %d", of.Name(), len(d.Properties), fields)
	}
}
