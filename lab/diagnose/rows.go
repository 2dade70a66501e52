package diagnose

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8slab/lab/diagnose/fact"
	"k8slab/lab/diagnose/siterule"
	"k8slab/lab/event"
	joining "k8slab/lab/join"
	"k8slab/lab/kube"
)

// NewReport judges the facts of a live cluster.
func NewReport(f fact.Facts) (Report, error) { return NewReportWith(nil, f) }

// NewReportWith is NewReport, with a site's own rules beside the catalogue.
func NewReportWith(rules *siterule.Set, f fact.Facts) (Report, error) {
	safe, err := redacted(f)
	if err != nil {
		return Report{}, err
	}
	r := Report{Source: "live", rules: rules}
	r.fill(safe)
	r.settle(f.Time)
	return r, nil
}

// fill judges facts, and shows what they say of each node.
func (r *Report) fill(f fact.Facts) {
	j := newJudgement(&f, r.rules)
	r.Lab, r.Time = f.Lab, f.Time
	r.Findings = j.findings(inOrder)
	slices.Sort(j.unread)
	for _, text := range j.unread {
		r.Unread = append(r.Unread, event.Redact(text))
	}
	for i := range f.Machines {
		m := &f.Machines[i]
		r.Nodes = append(r.Nodes, nodeRow(m, f.API.Nodes))
		if m.Inside == nil {
			continue
		}
		for _, d := range m.Inside.Dials {
			if to := j.machines[d.To]; joined(m) && (to == nil || joined(to) || silent(to)) {
				if answer := j.through(m, d); answer != nil {
					d.Result, d.Millis = answer.Result, answer.Millis
					if d.Result == "refused" { // an answer all the same
						d.Result = "open"
					}
				}
				r.Ports = append(r.Ports, PortRow{From: m.Name, To: d.To, Port: d.Port, Proto: d.Proto, Result: d.Result, Millis: d.Millis})
			}
		}
		r.Attempts = append(r.Attempts, attemptRows(m)...)
	}
	for _, m := range f.Etcd.Members {
		r.Members = append(r.Members, memberRow(m, &f, j.leaderIndex()))
	}
}

// through is the dial through the tunnel to the peer, which proves what a datagram cannot; nil for none.
func (j *judgement) through(m *fact.Machine, d fact.Dial) *fact.Dial {
	far, known := j.podNet(d.To)
	if d.Proto != "udp" || !known {
		return nil
	}
	i := slices.IndexFunc(m.Inside.Overlay, func(o fact.Dial) bool { return o.To == far.Addr().String() })
	if i < 0 {
		return nil
	}
	return &m.Inside.Overlay[i]
}

func nodeRow(m *fact.Machine, nodes []kube.Node) NodeRow {
	row := NodeRow{Name: m.Name, Role: m.Role, IP: m.IP, Machine: m.State, SSH: m.SSH}
	for _, n := range nodes {
		if n.Name == m.Name {
			row.Ready, row.Version = n.ReadyStatus, n.KubeletVersion
		}
	}
	n := m.Inside
	if n == nil {
		return row
	}
	row.Kubelet, row.ClockOffset = n.Facts.Kubelet.Active, offset(m).Seconds()
	if row.Version == "" {
		row.Version = n.Facts.KubeletVersion
	}
	for _, c := range n.Checks {
		if c.ID == joining.CheckCRI {
			row.Runtime, row.RuntimeResult = oneLine(c.Evidence), string(c.Result)
		}
	}
	row.DiskFree = share(n.Filesystem.FreeBytes, n.Filesystem.Bytes)
	row.MemoryFree = share(n.Memory.Available, n.Memory.Total)
	if n.Etcd != nil {
		row.FsyncP99 = n.Etcd.FsyncP99
	}
	return row
}

func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func memberRow(m fact.Member, f *fact.Facts, leader uint64) MemberRow {
	row := MemberRow{
		Name: m.Name, ID: fmt.Sprintf("%x", m.ID), PeerURL: strings.Join(m.PeerURLs, ","), Learner: m.Learner, Started: m.Started, Leader: m.Leader,
		RaftIndex: m.RaftIndex, Rate: m.Rate, DBSize: m.DBSize, Alarms: m.Alarms, Error: m.Error,
	}
	if leader > m.RaftIndex && m.Healthy {
		row.Behind = leader - m.RaftIndex
	}
	for i := range f.Machines {
		if slices.Contains(m.PeerURLs, peerURL(&f.Machines[i])) {
			row.Node = f.Machines[i].Name
		}
	}
	return row
}

var attemptNumber = regexp.MustCompile(`^attempt (\d+) of \d+$`)

// attemptRows reads the join engine's events. Each phase comes once in an attempt, so a phase that comes again begins the next attempt.
func attemptRows(m *fact.Machine) []AttemptRow {
	var rows []AttemptRow
	for _, e := range m.Inside.Records {
		if e.State == event.Started && (len(rows) == 0 || begins(rows[len(rows)-1], joining.Phase(e.Phase))) {
			rows = append(rows, AttemptRow{Node: m.Name, Number: len(rows) + 1, Started: e.Time})
		}
		if len(rows) == 0 {
			continue
		}
		row := &rows[len(rows)-1]
		at := e.Time.Sub(row.Started).Round(time.Millisecond).Seconds()
		switch e.State {
		case event.Started:
			row.Phases = append(row.Phases, PhaseRow{Name: e.Phase, At: at})
		case event.Progress:
			if n := attemptNumber.FindStringSubmatch(e.Detail); n != nil {
				row.Number, _ = strconv.Atoi(n[1]) // the pattern has digits only
			}
		case event.Done, event.Failed:
			row.Elapsed = at
			if i := slices.IndexFunc(row.Phases, func(p PhaseRow) bool { return p.Name == e.Phase && p.Elapsed == 0 }); i >= 0 {
				row.Phases[i].Elapsed = math.Round(1000*(at-row.Phases[i].At)) / 1000
			}
			if e.State == event.Failed {
				row.Evidence = event.Redact(e.Detail)
			}
		}
	}
	finish(rows, m.Inside.Facts.Outcome)
	return rows
}

// begins reports whether the phase begins another attempt: the present attempt has failed, or had this phase already.
func begins(row AttemptRow, phase joining.Phase) bool {
	return row.Evidence != "" && phase != joining.PhaseRepair && phase != joining.PhaseClean ||
		phase == joining.PhasePreflight && slices.ContainsFunc(row.Phases, func(p PhaseRow) bool { return p.Name == string(phase) })
}

// finish adds the outcome: of a series that failed it is the first attempt's, else the last one's.
func finish(rows []AttemptRow, o *joining.Outcome) {
	if o == nil || len(rows) == 0 {
		return
	}
	if o.Joined {
		rows[len(rows)-1].Joined, rows[len(rows)-1].Evidence = true, ""
		return
	}
	rows[0].Symptom = o.Symptom
	if o.Evidence != "" {
		rows[0].Evidence = o.Evidence
	}
}
