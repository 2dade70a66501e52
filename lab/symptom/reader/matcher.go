package reader

// anchorLimit is how much of a phrase's longest part the automaton knows; the rest is compared when that much was found.
const anchorLimit = 14

// matcher finds the anchors of many phrases in one pass over a text (Aho-Corasick, as a table over the bytes that phrases use).
type matcher struct {
	class [256]uint8 // 0 for bytes in no phrase
	width int
	next  []int32   // state * width + class -> state
	found []int32   // state -> index into ends, 0 for none
	ends  [][]int32 // phrases whose anchor ends in a state
	size  []int     // length of each phrase's anchor in the automaton
}

// each calls yield with every phrase whose anchor is in text, and the anchor's offset.
func (m *matcher) each(text []byte, yield func(phrase int32, at int)) {
	state := int32(0)
	width := int32(m.width)
	for i, c := range text {
		state = m.next[state*width+int32(m.class[c])]
		if f := m.found[state]; f != 0 {
			for _, p := range m.ends[f] {
				yield(p, i+1-m.size[p])
			}
		}
	}
}

func newMatcher(ps []phrase) *matcher {
	m := &matcher{width: 1, ends: [][]int32{nil}}
	for _, p := range ps {
		for _, c := range []byte(anchorOf(p)) {
			if m.class[c] == 0 {
				m.class[c] = uint8(m.width)
				m.width++
			}
		}
	}
	m.addState()
	for i, p := range ps {
		m.add(int32(i), anchorOf(p))
	}
	m.link()
	return m
}

func anchorOf(p phrase) string {
	a := p.parts[p.anchor]
	return a[:min(len(a), anchorLimit)]
}

func (m *matcher) addState() int32 {
	m.next = append(m.next, make([]int32, m.width)...)
	m.found = append(m.found, 0)
	return int32(len(m.found) - 1)
}

func (m *matcher) add(phrase int32, anchor string) {
	state := int32(0)
	for _, c := range []byte(anchor) {
		at := state*int32(m.width) + int32(m.class[c])
		if m.next[at] == 0 {
			to := m.addState()
			m.next[at] = to
		}
		state = m.next[at]
	}
	m.size = append(m.size, len(anchor))
	if m.found[state] == 0 {
		m.ends = append(m.ends, nil)
		m.found[state] = int32(len(m.ends) - 1)
	}
	f := m.found[state]
	m.ends[f] = append(m.ends[f], phrase)
}

// link turns the tree into an automaton, breadth first: where a state has no way on, it takes that of its longest proper suffix.
func (m *matcher) link() {
	w := int32(m.width)
	suffix := make([]int32, len(m.found))
	queue := []int32{}
	for c := int32(1); c < w; c++ {
		if to := m.next[c]; to != 0 {
			queue = append(queue, to)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		m.inherit(state, suffix[state])
		for c := range w {
			to, back := m.next[state*w+c], m.next[suffix[state]*w+c]
			if to == 0 {
				m.next[state*w+c] = back
				continue
			}
			suffix[to] = back
			queue = append(queue, to)
		}
	}
}

// inherit adds the phrases that end in the suffix state to those of state.
func (m *matcher) inherit(state, suffix int32) {
	from := m.found[suffix]
	if from == 0 {
		return
	}
	if m.found[state] == 0 {
		m.found[state] = from
		return
	}
	f := m.found[state]
	m.ends[f] = append(append([]int32(nil), m.ends[f]...), m.ends[from]...)
}
