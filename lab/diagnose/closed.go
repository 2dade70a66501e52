package diagnose

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// closed is a set of ports of one node that do not open, from one or more others.
type closed struct {
	To, Result string
	Ports      []string
	From       []string
}

// closedPorts gathers the rows that should be open and are not. A probe over UDP gets no answer, so it says nothing.
func closedPorts(rows []PortRow) []closed {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b PortRow) int { return a.Port - b.Port })
	var pairs []closed // one from each
	for _, p := range rows {
		if p.Result == "open" || p.Result == "unknown" {
			continue
		}
		i := slices.IndexFunc(pairs, func(c closed) bool { return c.To == p.To && c.Result == p.Result && c.From[0] == p.From })
		if i < 0 {
			i = len(pairs)
			pairs = append(pairs, closed{To: p.To, Result: p.Result, From: []string{p.From}})
		}
		pairs[i].Ports = append(pairs[i].Ports, portName(p))
	}
	var all []closed
	for _, c := range pairs {
		i := slices.IndexFunc(all, func(o closed) bool { return o.To == c.To && o.Result == c.Result && slices.Equal(o.Ports, c.Ports) })
		if i < 0 {
			all = append(all, c)
		} else {
			all[i].From = append(all[i].From, c.From...)
		}
	}
	return all
}

// String says for example "cp3: 2379, 2380 timeout from cp1, cp2".
func (c closed) String() string {
	return fmt.Sprintf("%s: %s %s from %s", c.To, strings.Join(c.Ports, ", "), c.Result, fewOf(c.From, 6))
}

func portName(p PortRow) string {
	if p.Proto == "" || p.Proto == "tcp" {
		return strconv.Itoa(p.Port)
	}
	return strconv.Itoa(p.Port) + "/" + p.Proto
}
