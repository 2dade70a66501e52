package diagnose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/event"
)

// redacted are the facts without secrets, wherever one may be. Whatever is shown or saved is made from them, so that a bundle gives the
// same findings as the live cluster.
func redacted(f fact.Facts) (fact.Facts, error) {
	var out fact.Facts
	data, err := redactedJSON(f.WithoutTexts())
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return fact.Facts{}, fmt.Errorf("redact the facts: %w", err)
	}
	for i, m := range f.Machines {
		if m.Inside == nil {
			continue
		}
		texts := slices.Clone(m.Inside.Texts)
		for k := range texts {
			texts[k].Text = event.Redact(texts[k].Text)
		}
		out.Machines[i].Inside.Texts = texts
	}
	return out, nil
}

// redactedJSON redacts string by string: half a private key in one must not hide the others.
func redactedJSON(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var tree any
	numbers := json.NewDecoder(bytes.NewReader(data))
	numbers.UseNumber()
	if err := numbers.Decode(&tree); err != nil {
		return nil, err
	}
	return json.Marshal(redactTree(tree))
}

func redactTree(v any) any {
	switch v := v.(type) {
	case string:
		return event.Redact(v)
	case []any:
		for i := range v {
			v[i] = redactTree(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = redactTree(v[key])
		}
	}
	return v
}
