package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"k8slab/scenarios"
)

// faultListSchema is the version of the list as JSON: docs/schema/fault-list.v1.json describes it.
const faultListSchema = "k8slab.fault-list/v1"

// faultList is what `fault list -o json` prints.
type faultList struct {
	Schema string   `json:"schema"`
	Faults []listed `json:"faults"`
}

// listed is a fault in `fault list`.
type listed struct {
	Name    string   `json:"name"`
	Story   string   `json:"story"` // what it imitates, with its source
	Roles   []string `json:"roles"`
	Outside bool     `json:"outside"`           // the node is reset before, since the fault blocks joins
	Upgrade string   `json:"upgrade,omitempty"` // when in an upgrade it is met: before, during
	Symptom string   `json:"symptom"`           // the cause that a diagnosis has to name; "" is that nothing is wrong
	Detail  string   `json:"detail,omitempty"`
	Recover []string `json:"recover"`
	Stops   bool     `json:"stops"`             // a person has to act before labctl recovers
	Remedy  string   `json:"remedy,omitempty"`  // the commands of labctl's hint that the person runs
	ByHand  string   `json:"by_hand,omitempty"` // what the person does that no command does
	Alone   string   `json:"alone"`             // what kubeadm alone does
	On      string   `json:"on,omitempty"`      // the node that it is on now

	Existing bool   `json:"existing"`            // it may be made in a cluster that labctl did not make
	LabsOnly string `json:"labs_only,omitempty"` // why not
}

func (a *app) faultListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the faults: what each imitates, its diagnosis and its recovery",
		Long: `List the faults: what each imitates, the diagnosis that names it, the command of labctl that ends it, and the node where it is active.
A recovery in brackets works only after a person has acted, and by hand is what no command of labctl ends. A fault "only in labs" is not made in a cluster that labctl did not make (machines: ssh). Without a cluster.yaml the list cannot tell where faults are active.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in, known, err := a.activeFaults(cmd)
			if err != nil {
				return err
			}
			rows := listFaults(in)
			return a.print(faultList{faultListSchema, rows}, func(w io.Writer) { printFaults(w, rows, known) })
		},
	}
}

// activeFaults are the faults in the lab. They are not known if there is no cluster.yaml and no file was named with -c.
func (a *app) activeFaults(cmd *cobra.Command) (in []scenarios.Injected, known bool, err error) {
	injected, err := a.record()
	if err != nil {
		if _, missing := os.Stat(a.file); errors.Is(missing, fs.ErrNotExist) && !cmd.Flags().Changed("config") {
			return nil, false, nil
		}
		return nil, false, err
	}
	in, err = injected.Faults()
	return in, true, err
}

func listFaults(in []scenarios.Injected) (rows []listed) {
	for _, f := range scenarios.All() {
		row := listed{
			Name: f.Name, Story: f.Story, Outside: f.Outside, Upgrade: string(f.Upgrade), Symptom: string(f.Symptom), Detail: f.Detail, Recover: []string{}, Stops: f.Stops(), Remedy: f.Remedy.Text,
			ByHand: f.ByHand, Alone: f.WithoutLabctl(), Existing: f.LabsOnly() == "", LabsOnly: f.LabsOnly(),
		}
		for _, r := range f.Roles {
			row.Roles = append(row.Roles, string(r))
		}
		for _, call := range f.Calls("NODE") {
			row.Recover = append(row.Recover, "labctl "+strings.Join(call, " "))
		}
		for _, i := range in {
			if i.Fault == f.Name {
				row.On = strings.TrimPrefix(row.On+", "+i.Node, ", ")
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// printFaults writes a line of columns for each fault, and its story below. It fits 80 columns: what does not fit its column goes below, too.
func printFaults(w io.Writer, rows []listed, known bool) {
	const faultWidth, diagnosisWidth, recoveryWidth = 22, 30, 13
	line := func(fault, diagnosis, recovery, on string) {
		if len(fault) > faultWidth {
			_, _ = fmt.Fprintln(w, fault)
			fault = ""
		}
		text := fmt.Sprintf("%-*s  %-*s  %-*s  %s", faultWidth, fault, diagnosisWidth, diagnosis, recoveryWidth, recovery, on)
		_, _ = fmt.Fprintln(w, strings.TrimRight(text, " "))
	}
	line("FAULT", "DIAGNOSIS", "RECOVERY", "ACTIVE ON")
	for _, r := range rows {
		on := "unknown"
		if known {
			on = cmp.Or(r.On, "–")
		}
		recovery, below := r.recovery(), ""
		if len(recovery) > recoveryWidth {
			recovery, below = "see below", recovery
		}
		line(r.Name, cmp.Or(r.Symptom, "nothing"), recovery, on)
		writeWrapped(w, "  ", r.Story)
		if r.LabsOnly != "" {
			writeWrapped(w, "  only in labs: ", r.LabsOnly)
		}
		if below != "" {
			writeWrapped(w, "  recovery: ", below)
		}
	}
}

// recovery is the labctl commands that recover from the fault, in brackets if labctl refuses them until a person has acted.
func (r listed) recovery() string {
	if len(r.Recover) == 0 {
		return "by hand"
	}
	var calls []string
	for _, c := range r.Recover {
		calls = append(calls, strings.TrimPrefix(c, "labctl "))
	}
	text := strings.Join(calls, ", ")
	if r.Stops {
		text = "[" + text + "]"
	}
	return text
}
