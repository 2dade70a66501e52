package firewall

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// nftRuleset is the part of `nft --json list ruleset` that is read (libnftables-json(5)).
type nftRuleset struct {
	Nftables []struct {
		Chain *struct {
			Family, Table, Name, Type, Hook, Policy string
		} `json:"chain"`
		Rule *struct {
			Family, Table, Chain string
			Handle               int
			Expr                 []map[string]json.RawMessage `json:"expr"`
		} `json:"rule"`
	} `json:"nftables"`
}

// ParseNFT returns the tables that IPv4 packets meet, except those of the cluster itself.
func ParseNFT(text string) ([]Table, error) {
	var set nftRuleset
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		return nil, fmt.Errorf("its answer is not the JSON of a ruleset: %w", err)
	}
	tables := map[string]Table{}
	var order []string
	for _, item := range set.Nftables {
		if c := item.Chain; c != nil && judged(c.Family, c.Table) {
			key := c.Family + " " + c.Table
			if tables[key] == nil {
				tables[key] = Table{}
				order = append(order, key)
			}
			policy := accepts
			if c.Policy == "drop" {
				policy = drops
			}
			tables[key][c.Name] = &chain{name: key + " " + c.Name, family: c.Family, table: c.Table, hook: c.Hook, policy: policy}
		}
		if r := item.Rule; r != nil {
			if chain := tables[r.Family+" "+r.Table][r.Chain]; chain != nil {
				rules := parseNFTRule(r.Expr)
				if len(rules) == 1 {
					rules[0].handle = r.Handle
				}
				chain.rules = append(chain.rules, rules...)
			}
		}
	}
	var found []Table
	for _, key := range order {
		found = append(found, tables[key])
	}
	return found, nil
}

func judged(family, table string) bool {
	return (family == "ip" || family == "inet") && table != "kube-proxy" && !strings.HasPrefix(table, "flannel-")
}

// parseNFTRule reads a rule's expressions. It is several rules when it ends in a verdict map.
func parseNFTRule(expressions []map[string]json.RawMessage) []rule {
	r := rule{}
	for _, expression := range expressions {
		for kind, body := range expression {
			switch kind {
			case "match":
				r.match(body)
			case "vmap":
				return verdictMap(r, body)
			case "counter", "log", "comment":
			default:
				if !r.nftVerdict(kind, body) {
					r.narrowed = true
				}
			}
		}
	}
	return []rule{r}
}

// nftVerdict reads a verdict and says whether it was one.
func (r *rule) nftVerdict(kind string, body json.RawMessage) bool {
	switch kind {
	case "accept":
		r.verdict = accepts
	case "drop", "reject":
		r.verdict = drops
	case "return":
		r.verdict = returns
	case "jump", "goto":
		var to struct{ Target string }
		_ = json.Unmarshal(body, &to)
		r.verdict, r.target = verdict(kind), to.Target
	default:
		return false
	}
	return true
}

// nftLeft is what a match looks at.
type nftLeft struct {
	Payload *struct{ Protocol, Field string } `json:"payload"`
	Meta    *struct{ Key string }             `json:"meta"`
	CT      *struct{ Key string }             `json:"ct"`
}

func (l nftLeft) name() string {
	switch {
	case l.Payload != nil:
		return l.Payload.Protocol + " " + l.Payload.Field
	case l.Meta != nil:
		return "meta " + l.Meta.Key
	case l.CT != nil:
		return "ct " + l.CT.Key
	}
	return ""
}

// match reads a condition. What it does not know narrows the rule.
func (r *rule) match(body json.RawMessage) {
	var m struct {
		Op    string
		Left  nftLeft
		Right json.RawMessage
	}
	if json.Unmarshal(body, &m) != nil {
		r.narrowed = true
		return
	}
	not := m.Op == "!="
	words := nftWords(m.Right)
	is := func(word string) bool { return strings.Contains(" "+strings.Join(words, " ")+" ", " "+word+" ") }
	switch m.Left.name() {
	case "tcp dport", "udp dport", "th dport":
		if m.Left.Payload.Protocol != "th" {
			r.proto = m.Left.Payload.Protocol
		}
		r.ports = portList(strings.Join(words, ","), "-")
		r.narrowed = r.narrowed || not || strings.HasPrefix(strings.Join(words, ""), "@")
		if r.narrowed {
			r.ports = nil
		}
	case "meta l4proto", "ip protocol":
		if len(words) == 1 && !not {
			r.proto = words[0]
		} else {
			r.never = r.never || !not && !is("tcp") && !is("udp")
			r.narrowed = true
		}
	case "meta iifname", "meta iif":
		r.device(inbound, words, not)
	case "meta oifname", "meta oif":
		r.device(outbound, words, not)
	case "ip saddr":
		r.way = append(r.way, condition{source, words, not})
	case "ip daddr":
		r.way = append(r.way, condition{destination, words, not})
	case "ct state":
		r.never = r.never || is("new") == not
	case "meta nfproto":
		r.never = r.never || is("ipv4") == not
	default:
		r.narrowed = true
	}
}

// nftWords flattens the right side of a match: a word, a number, a list, a set, or a range, which becomes "from-to".
func nftWords(raw json.RawMessage) []string {
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return nil
	}
	return flatten(value)
}

func flatten(value any) []string {
	switch v := value.(type) {
	case []any:
		var words []string
		for _, item := range v {
			words = append(words, flatten(item)...)
		}
		return words
	case map[string]any:
		if limits, ok := v["range"].([]any); ok && len(limits) == 2 {
			return []string{strings.Join(append(flatten(limits[0]), flatten(limits[1])...), "-")}
		}
		if set, ok := v["set"]; ok {
			return flatten(set)
		}
		if prefix, ok := v["prefix"].(map[string]any); ok {
			return []string{fmt.Sprintf("%v/%v", prefix["addr"], prefix["len"])}
		}
		return []string{"@unknown"}
	}
	return []string{fmt.Sprint(value)}
}

// verdictMap turns `ct state vmap { established : accept, ... }` or one over ports into rules.
func verdictMap(r rule, body json.RawMessage) []rule {
	var m struct {
		Key  json.RawMessage
		Data struct {
			Set [][]json.RawMessage
		}
	}
	if json.Unmarshal(body, &m) != nil {
		return nil
	}
	var rules []rule
	for _, entry := range m.Data.Set {
		if len(entry) != 2 {
			continue
		}
		one := r
		one.way = slices.Clone(r.way)
		condition, err := json.Marshal(map[string]json.RawMessage{"op": json.RawMessage(`"=="`), "left": m.Key, "right": entry[0]})
		var action map[string]json.RawMessage
		if err != nil || json.Unmarshal(entry[1], &action) != nil {
			continue
		}
		one.match(condition)
		for kind, body := range action {
			one.nftVerdict(kind, body)
		}
		rules = append(rules, one)
	}
	return rules
}

// Translates reports whether a ruleset has kube-proxy's rules for Services, which packets of pods and the machine's own meet.
func Translates(ruleset string) (bool, error) {
	var set nftRuleset
	if err := json.Unmarshal([]byte(ruleset), &set); err != nil {
		return false, fmt.Errorf("its answer is not the JSON of a ruleset: %w", err)
	}
	hooks := map[string]string{} // of kube-proxy's translating chains, by name
	met := map[string]bool{}
	for _, item := range set.Nftables {
		if c := item.Chain; c != nil && c.Family == "ip" && c.Table == "kube-proxy" && c.Type == "nat" {
			hooks[c.Name] = c.Hook
		}
		if r := item.Rule; r != nil && r.Family == "ip" && r.Table == "kube-proxy" {
			met[hooks[r.Chain]] = true
		}
	}
	return met["prerouting"] && met["output"], nil
}
