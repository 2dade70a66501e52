package state

import (
	"encoding/json"
	"reflect"
	"strings"
)

// fieldDifferences compares two structs of one type, field by field. Of each difference it sets the field's key, and both values in one line.
func fieldDifferences(was, now any) (all []Difference) {
	before, after := reflect.ValueOf(was), reflect.ValueOf(now)
	for i := range before.NumField() {
		if made, is := inText(before.Field(i).Interface()), inText(after.Field(i).Interface()); made != is {
			key, _, _ := strings.Cut(before.Type().Field(i).Tag.Get("yaml"), ",")
			all = append(all, Difference{Key: key, Made: made, Now: is})
		}
	}
	return all
}

// inText is the value in JSON, text without its quotes, and "" for a value that is absent.
func inText(value any) string {
	if v := reflect.ValueOf(value); v.Kind() == reflect.String {
		return v.String()
	}
	text, err := json.Marshal(value)
	if err != nil || string(text) == "null" || string(text) == "{}" {
		return ""
	}
	return string(text)
}
