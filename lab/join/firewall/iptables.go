package firewall

import (
	"slices"
	"strconv"
	"strings"

	"k8slab/lab/command"
)

// ParseIPTables reads what iptables-save prints: the filter table's chains and rules.
func ParseIPTables(text string) ([]Table, error) {
	table := Table{}
	inFilter := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "*"):
			inFilter = line == "*filter"
		case !inFilter:
		case strings.HasPrefix(line, ":"):
			fields := strings.Fields(line[1:])
			if len(fields) < 2 {
				continue
			}
			chain := &chain{name: fields[0], hook: builtInHooks[fields[0]], policy: accepts}
			if fields[1] == "DROP" {
				chain.policy = drops
			}
			table[fields[0]] = chain
		case strings.HasPrefix(line, "-A "):
			words := command.SplitQuoted(line)
			if chain := table[words[1]]; chain != nil {
				chain.rules = append(chain.rules, parseIPTablesRule(words[2:]))
			}
		}
	}
	if len(table) == 0 {
		return nil, nil
	}
	return []Table{table}, nil
}

var builtInHooks = map[string]string{"INPUT": "input", "OUTPUT": "output", "FORWARD": "forward"}

// parseIPTablesRule reads the arguments after the chain's name. What it does not know narrows the rule.
func parseIPTablesRule(words []string) rule {
	r := rule{}
	inverted := false
	for i := 0; i < len(words); i++ {
		option, value := words[i], ""
		if i+1 < len(words) {
			value = words[i+1]
		}
		if option == "!" {
			inverted = true
			continue
		}
		taken := r.condition(option, value, inverted)
		if inverted {
			r.invert(option)
		}
		inverted = false
		i += taken
		if option == "-j" || option == "-g" {
			break // what follows are the target's own options
		}
	}
	return r
}

// invert widens what a condition said to everything else, of which nothing certain is known.
func (r *rule) invert(option string) {
	switch option {
	case "-i", "-o", "-s", "-d", "--syn", "--state", "--ctstate": // judged where they are read
		return
	case "--dport", "--dports":
		r.ports = nil
	case "-p":
		r.proto = ""
	}
	r.narrowed = true
}

// condition reads one option and returns how many words its value has.
func (r *rule) condition(option, value string, inverted bool) int {
	switch option {
	case "-p":
		r.proto = value
	case "--dport", "--dports":
		r.ports = portList(value, ":")
	case "-i", "-o":
		r.device(map[string]side{"-i": inbound, "-o": outbound}[option], []string{value}, inverted)
	case "-s", "-d":
		r.way = append(r.way, condition{map[string]side{"-s": source, "-d": destination}[option], strings.Split(value, ","), inverted})
	case "--state", "--ctstate":
		r.never = r.never || !inverted && !strings.Contains(value, "NEW")
		r.narrowed = r.narrowed || inverted
	case "--dst-type":
		r.narrowed = r.narrowed || value != "LOCAL"
	case "--tcp-flags":
		return 2 // the mask and what must be set: SYN of a new connection, or what no new one has, where narrowed is right as well
	case "--syn":
		r.never = r.never || inverted
		return 0
	case "-m", "--comment", "--limit-burst":
	case "-j", "-g":
		r.act(option, value)
	default:
		r.narrowed = true
		if !strings.HasPrefix(option, "-") {
			return 0
		}
		if strings.HasPrefix(value, "-") || value == "!" {
			return 0
		}
	}
	return 1
}

// device is a condition on an interface. No packet of another machine meets lo.
func (r *rule) device(at side, names []string, not bool) {
	switch {
	case !slices.Contains(names, "lo"):
		r.way = append(r.way, condition{at, names, not})
	case !not:
		r.never = true
	}
}

func (r *rule) act(option, target string) {
	switch target {
	case "ACCEPT":
		r.verdict = accepts
	case "DROP", "REJECT":
		r.verdict = drops
	case "RETURN":
		r.verdict = returns
	case "LOG", "NFLOG", "MARK", "CONNMARK", "AUDIT", "TRACE", "CT", "NOTRACK", "SET":
		r.verdict = proceeds
	default:
		r.verdict, r.target = jumps, target
		if option == "-g" {
			r.verdict = gotos
		}
	}
}

// portList reads "22,80:90".
func portList(list, between string) []portRange {
	var ports []portRange
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, between)
		from, err := strconv.Atoi(first)
		if err != nil {
			from = -1 // a service's name: no port of ours has one
		}
		to := from
		if isRange {
			to, _ = strconv.Atoi(last)
		}
		ports = append(ports, portRange{from, to})
	}
	return ports
}

// TranslatesIPTables is Translates for what iptables-save prints.
func TranslatesIPTables(text string) bool {
	inNAT, met := false, map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "*") {
			inNAT = line == "*nat"
		}
		words := command.SplitQuoted(line)
		if inNAT && len(words) > 2 && words[0] == "-A" && slices.Contains(words, "KUBE-SERVICES") {
			met[words[1]] = true
		}
	}
	return met["PREROUTING"] && met["OUTPUT"]
}
