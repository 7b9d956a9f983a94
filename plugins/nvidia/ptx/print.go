package ptx

import (
	"fmt"
	"strconv"

	"github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"
)

// print writes the module: header, directives, declarations, code.
func (a *assembly) print() {
	k := &a.kernel
	t := make([]byte, 0, 80*len(a.code)+4096)
	for _, line := range a.header {
		t = fmt.Appendf(t, "// %s\n", line)
	}
	t = fmt.Appendf(t, ".version %d.%d\n.target %s\n.address_size 64\n\n", k.PTX/10, k.PTX%10, k.Target)
	for _, v := range a.shared {
		linkage, size := "", ""
		if v.bytes == 0 {
			linkage = ".extern "
		} else {
			size = strconv.Itoa(v.bytes)
		}
		t = fmt.Appendf(t, "%s.shared .align %d .b8 %s[%s];\n", linkage, v.align, v.name, size)
	}
	t = fmt.Appendf(t, ".visible .entry %s(", a.name)
	for i, p := range a.params {
		if i > 0 {
			t = append(t, ',')
		}
		if p.Type == TensorMap {
			t = fmt.Appendf(t, "\n\t.param .align 64 .%s %s[%d]", p.Type, p.Name, p.Type.Bytes())
			continue
		}
		t = fmt.Appendf(t, "\n\t.param .%s %s", p.Type, p.Name)
	}
	t = append(t, "\n)\n"...)
	if a.maxThreads > 0 {
		t = fmt.Appendf(t, ".maxntid %d, 1, 1\n", a.maxThreads)
	}
	if a.minCTAs > 0 {
		t = fmt.Appendf(t, ".minnctapersm %d\n", a.minCTAs)
	}
	if a.cluster > 0 {
		t = fmt.Appendf(t, ".reqnctapercluster %d, 1, 1\n", a.cluster)
	}
	t = append(t, "{\n"...)
	for c, class := range classes {
		if n := a.counts[c]; n > 0 {
			t = fmt.Appendf(t, "\t.reg .%s %s<%d>;\n", class.name, class.prefix, n)
		}
	}
	for i := range a.code {
		in := &a.code[i]
		switch in.op {
		case opLabel:
			t = append(append(append(t, '$'), a.labels[in.first].name...), ":\n"...)
		case opComment:
			t = append(append(append(t, "\t// "...), a.comments[in.first]...), '\n')
		default:
			t = append(a.appendInstruction(append(t, '\t'), in), '\n')
		}
	}
	k.Text = string(append(t, "}\n"...))
}

func (a *assembly) appendInstruction(t []byte, in *instruction) []byte {
	if in.guard != 0 {
		t = append(t, '@')
		if in.negate {
			t = append(t, '!')
		}
		t = append(a.appendRegister(t, in.guard-1), ' ')
	}
	row := &inst.Table()[in.op]
	t = append(t, row.Opcode...)
	next := in.first
	for i := range row.Operands {
		if i > 0 {
			t = append(t, ',')
		}
		t = append(t, ' ')
		if literal := row.Operands[i].Literal; literal != "" {
			t = append(t, literal...)
			continue
		}
		t = a.appendOperand(t, &a.operands[next])
		next++
	}
	return append(t, ';')
}

func (a *assembly) appendOperand(t []byte, o *Operand) []byte {
	if o.vector != 0 {
		t = append(t, '{')
		for i, id := range a.vectors[o.id : o.id+uint32(o.vector)] {
			if i > 0 {
				t = append(t, ", "...)
			}
			t = a.appendRegister(t, id)
		}
		return append(t, '}')
	}
	switch o.form {
	case inst.Pred, inst.B16, inst.B32, inst.B64, inst.F32, inst.F64:
		return a.appendRegister(t, o.id)
	case inst.Int:
		return strconv.AppendInt(t, o.value, 10)
	case inst.Float:
		t = append(t, "0f"...)
		for shift := 28; shift >= 0; shift -= 4 {
			t = append(t, "0123456789ABCDEF"[o.value>>shift&15])
		}
		return t
	case inst.Special:
		return append(t, specialNames[o.id]...)
	case inst.Special64:
		return append(t, special64Names[o.id]...)
	case inst.Symbol:
		return append(t, a.shared[o.id].name...)
	case inst.Label:
		return append(append(t, '$'), a.labels[o.id].name...)
	case inst.Name:
		return append(t, a.params[o.id].Name...)
	case inst.Param:
		return append(append(append(t, '['), a.params[o.id].Name...), ']')
	case inst.Tensor:
		t = append(a.appendRegister(append(t, '['), a.vectors[o.id]), ", {"...)
		for i, id := range a.vectors[o.id+1 : o.id+uint32(o.value)] {
			if i > 0 {
				t = append(t, ", "...)
			}
			t = a.appendRegister(t, id)
		}
		return append(t, "}]"...)
	case inst.Global, inst.Shared:
		t = a.appendRegister(append(t, '['), o.id)
		if o.value != 0 {
			t = strconv.AppendInt(append(t, '+'), o.value, 10)
		}
		return append(t, ']')
	default:
		return append(t, '?')
	}
}

// appendRegister prints a register by its number in its class. Before registers are numbered, it prints the order of
// creation.
func (a *assembly) appendRegister(t []byte, id uint32) []byte {
	n := int64(id)
	if a.number != nil {
		n = int64(a.number[id])
	}
	return strconv.AppendInt(append(t, classes[classOf(a.registers[id])].prefix...), n, 10)
}
