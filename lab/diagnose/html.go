package diagnose

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// WriteHTML writes the report as one page.
func WriteHTML(w io.Writer, r Report) error {
	var text strings.Builder
	if err := WriteText(&text, r, 0, false); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "<!doctype html><meta charset=utf-8><title>labctl diagnose</title><pre>%s</pre>\n", html.EscapeString(text.String()))
	return err
}
