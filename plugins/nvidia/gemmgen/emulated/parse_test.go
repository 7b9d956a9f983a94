package emulated

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// program is a parsed kernel.
type program struct {
	code      []instruction
	registers int
	// offset is the place of each parameter. staticShared is the bytes of shared variables.
	offset       map[string]int
	staticShared int
}

// instruction is a line of the kernel.
type instruction struct {
	text, opcode string
	operands     []operand
	// guard is the register of the predicate, -1 without one. jump is the target of a branch, -1 for others.
	guard, jump int
	negate      bool
	barrier     bool
	// do executes the instruction for one thread, together for the lanes of a warp.
	do       func(t *thread, in *instruction)
	together func(lanes []*thread, in *instruction) error
}

type kind uint8

const (
	register kind = iota
	immediate
	special
	address
	vector
	param
)

// operand is an operand of an instruction.
type operand struct {
	kind  kind
	index int // of the register or the special register; of the address's base
	value uint64
	mask  uint64    // of the register's width
	parts []operand // of a vector
	name  string    // of a parameter
}

var (
	line   = regexp.MustCompile(`^(?:@(!?)(%p\d+) )?(\S+?)(?: (.*))?;$`)
	params = regexp.MustCompile(`\.param \.[a-z](\d+) (\w+)`)
	shared = regexp.MustCompile(`\.shared \.align (\d+) \.b8 (\w+)\[(\d*)\];`)
	reg    = regexp.MustCompile(`^%([phrdfg])(\d+)$`)
	number = regexp.MustCompile(`^-?\d+$`)
)

var specials = []string{"%tid.x", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%laneid"}

var masks = map[byte]uint64{
	'p': 1, 'h': math.MaxUint16, 'r': math.MaxUint32, 'f': math.MaxUint32, 'd': math.MaxUint64, 'g': math.MaxUint64,
}

// parser is the state of parse.
type parser struct {
	p       *program
	index   map[string]int // of registers
	labels  map[string]int
	symbols map[string]int // addresses of shared variables
}

func parse(text string) (*program, error) {
	r := &parser{p: &program{offset: map[string]int{}}, index: map[string]int{}, labels: map[string]int{},
		symbols: map[string]int{}}
	at := 0
	for _, m := range params.FindAllStringSubmatch(text, -1) {
		bits, _ := strconv.Atoi(m[1])
		at = (at + bits/8 - 1) / (bits / 8) * (bits / 8)
		r.p.offset[m[2]] = at
		at += bits / 8
	}
	for _, m := range shared.FindAllStringSubmatch(text, -1) {
		align, _ := strconv.Atoi(m[1])
		size, _ := strconv.Atoi("0" + m[3])
		r.p.staticShared = (r.p.staticShared + align - 1) / align * align
		r.symbols[m[2]] = r.p.staticShared
		r.p.staticShared += size
	}
	_, body, found := strings.Cut(text, "\n{\n")
	if !found {
		return nil, fmt.Errorf("no kernel in the text")
	}
	var lines []string
	for l := range strings.Lines(body) {
		l = strings.TrimSpace(l)
		switch {
		case l == "" || l == "}" || strings.HasPrefix(l, "//") || strings.HasPrefix(l, "."):
		case strings.HasPrefix(l, "$") && strings.HasSuffix(l, ":"):
			r.labels[strings.TrimSuffix(l, ":")] = len(lines)
		default:
			lines = append(lines, l)
		}
	}
	for _, l := range lines {
		in, err := r.instruction(l)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", l, err)
		}
		r.p.code = append(r.p.code, in)
	}
	r.p.registers = len(r.index)
	return r.p, nil
}

func (r *parser) instruction(text string) (in instruction, err error) {
	m := line.FindStringSubmatch(text)
	if m == nil {
		return in, fmt.Errorf("not an instruction")
	}
	in = instruction{text: text, opcode: m[3], guard: -1, jump: -1, negate: m[1] == "!", barrier: m[3] == "bar.sync"}
	if m[2] != "" {
		in.guard = r.register(m[2]).index
	}
	if in.opcode == "bra" || in.opcode == "bra.uni" {
		target, ok := r.labels[m[4]]
		if !ok {
			return in, fmt.Errorf("no label %s", m[4])
		}
		in.jump = target
		return in, nil
	}
	for _, s := range split(m[4]) {
		o, err := r.operand(s)
		if err != nil {
			return in, err
		}
		in.operands = append(in.operands, o)
	}
	if in.barrier || in.opcode == "ret" {
		return in, nil
	}
	if in.do, in.together = find(in.opcode); in.do == nil && in.together == nil {
		return in, fmt.Errorf("the instruction is not known")
	}
	return in, nil
}

// split divides operands at commas outside braces.
func split(s string) (parts []string) {
	depth, from := 0, 0
	for i, c := range s {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, strings.TrimSpace(s[from:i]))
			from = i + 1
		}
	}
	if rest := strings.TrimSpace(s[from:]); rest != "" {
		parts = append(parts, rest)
	}
	return parts
}

func (r *parser) register(name string) operand {
	i, ok := r.index[name]
	if !ok {
		i = len(r.index)
		r.index[name] = i
	}
	return operand{kind: register, index: i, mask: masks[name[1]]}
}

func (r *parser) operand(s string) (operand, error) {
	for i, name := range specials {
		if s == name {
			return operand{kind: special, index: i}, nil
		}
	}
	symbol, isSymbol := r.symbols[s]
	switch {
	case reg.MatchString(s):
		return r.register(s), nil
	case isSymbol:
		return operand{kind: immediate, value: uint64(symbol)}, nil
	case number.MatchString(s):
		v, err := strconv.ParseInt(s, 10, 64)
		return operand{kind: immediate, value: uint64(v)}, err
	case strings.HasPrefix(s, "0f"):
		v, err := strconv.ParseUint(s[2:], 16, 32)
		return operand{kind: immediate, value: v}, err
	case strings.HasPrefix(s, "{"):
		o := operand{kind: vector}
		for _, part := range split(strings.Trim(s, "{}")) {
			o.parts = append(o.parts, r.register(part))
		}
		return o, nil
	case strings.HasPrefix(s, "[%"):
		base, offset, _ := strings.Cut(strings.Trim(s, "[]"), "+")
		v, err := strconv.ParseInt("0"+strings.TrimPrefix(offset, "-"), 10, 64)
		if strings.HasPrefix(offset, "-") {
			v = -v
		}
		return operand{kind: address, index: r.register(base).index, value: uint64(v)}, err
	case strings.HasPrefix(s, "["):
		return operand{kind: param, name: strings.Trim(s, "[]")}, nil
	}
	return operand{}, fmt.Errorf("operand %s is not known", s)
}
