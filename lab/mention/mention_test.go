package mention

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func program() *cobra.Command {
	nothing := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "labctl", Args: cobra.NoArgs, Run: nothing}
	root.PersistentFlags().StringP("config", "c", "", "")
	etcd := &cobra.Command{Use: "etcd"}
	etcd.AddCommand(&cobra.Command{Use: "members", Args: cobra.NoArgs, Run: nothing})
	up := &cobra.Command{Use: "up", Args: cobra.NoArgs, Run: nothing}
	up.Flags().String("until", "", "")
	up.Flags().Bool("keep", true, "")
	logs := &cobra.Command{Use: "logs NODE", Args: cobra.ExactArgs(1), Run: nothing}
	logs.Flags().BoolP("follow", "f", false, "")
	root.AddCommand(etcd, up, logs)
	return root
}

func TestProblems(t *testing.T) {
	tests := []struct{ text, want string }{
		{"`labctl etcd status` follows it", "there is no command status"},
		{"next: labctl etcd status", "there is no command status"},
		{"see labctl etcd status X", "there is no command status"},
		{"next: labctl logs cp1, or labctl explode", "there is no command explode"},
		{"Run \"labctl explode\" first", "there is no command explode"},
		{"`docker save x | labctl load -`", "there is no command load"},
		{"    $ labctl explode", "there is no command explode"},
		{"    export X=$(labctl explode)", "there is no command explode"},
		{"put it back, or labctl rejoin X while it lasts", "there is no command rejoin"},
		{"`labctl up --no-such`", "there is no flag --no-such"},
		{"it is labctl up --no-such that does", "there is no flag --no-such"},
		{"`labctl -x up`", "there is no flag -x"},
		{"`labctl up w1`", "unknown command"},
		{"`labctl logs w1 w2`", "accepts 1 arg"},
		{"run bin/labctl explode", "there is no command explode"},

		{"Where no daemon answers, labctl starts one and labctl creates another.", ""},
		{"a labctl that another one runs", ""},
		{"`labctl etcd members`, `labctl logs`, `labctl up --keep=false`, `labctl -c FILE up --until join`", ""},
		{"next: labctl logs NODE -f; labctl up", ""},
		{"`labctl up` shows it; labctl up makes it; labctl etcd and others", ""},
		{"`labctl logs NODE...`, `labctl …`, `labctl X --no-such`", ""},
		{"    labctl up --until machines   # then explode", ""},
		{"    vagrant up   # bin/labctl up adopts them; also: bin/labctl etcd members", ""},
		{"    lab/   checks, which labctl up makes too", ""},
		{"next: labctl up first, then wait", ""},
		{"labctl: it failed", ""},
		{"`labctl logs w1 --follow | grep labctl`", ""},
		{"`labctl logs X -f`", ""},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			problems, _ := Problems(program(), ofMarkdown("here", tt.text)[0])
			switch got := strings.Join(problems, "\n"); {
			case tt.want == "" && got != "":
				t.Errorf("got %s", got)
			case tt.want != "" && (len(problems) != 1 || !strings.Contains(got, tt.want)):
				t.Errorf("got %q, want one %q", problems, tt.want)
			}
		})
	}
}

func TestStringsOfPrograms(t *testing.T) {
	const source = "package p\nvar a = \"see `labctl etc\" + \"d \" + f(\"labctl explode X\") + \"`\"\nvar b = s(\"next: labctl up --no-such %d\", 1)\nvar c = `\n  labctl up w9`"
	var got []string
	for _, text := range ofGo("a.go", source) {
		problems, _ := Problems(program(), text)
		got = append(got, problems...)
	}
	for i, want := range []string{"a.go:2:", "there is no command explode", "there is no flag --no-such", "unknown command"} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%d: %q is not in %q", i, want, got)
		}
	}
}

func TestPagesAndScreens(t *testing.T) {
	for _, s := range []string{unmarked("<p>See <code>labctl explode</code> &amp; wait"), plainText("\x1b[36m`labctl \\\n        explode`\x1b[0m"),
		"```\nlabctl explode\n```", "a `labctl\nexplode` b"} {
		if problems, _ := Problems(program(), ofMarkdown("here", s)[0]); len(problems) != 1 {
			t.Errorf("%q: %q", s, problems)
		}
	}
}
