package ptx

import (
	"bytes"
	"flag"
	"fmt"
	"math/bits"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia/ptx/internal/inst"
)

func TestConstructorsAreGenerated(t *testing.T) {
	want := must.Get(inst.Constructors())(t)
	got := must.Get(os.ReadFile("zinstructions.go"))(t)
	must.That(t, bytes.Equal(got, want),
		"zinstructions.go is not what the instruction table gives: run go generate ./plugins/nvidia/ptx")
}

// TestInstructionText gives every constructor its operands, of each form that these may have, and compares the lines
// that it prints with testdata/instructions.ptx. -update writes the file: hold what changed against the PTX ISA.
func TestInstructionText(t *testing.T) {
	var lines []byte
	for i := range inst.Table() {
		row := &inst.Table()[i]
		if strings.HasPrefix(row.Opcode, "wgmma.mma_async") { // TestWgmma covers these
			continue
		}
		for n, more := 0, true; more; n++ {
			b, operands := New("k"), []reflect.Value{}
			more = false
			for _, o := range row.Operands {
				more = more || bits.OnesCount32(uint32(o.Forms)) > n+1
				if o.Literal == "" {
					operands = append(operands, reflect.ValueOf(operandOf(b, o, n)))
				}
			}
			emit := reflect.ValueOf(b).MethodByName(row.Name)
			if row.Name == "" { // vectors of loads and stores
				emit = reflect.ValueOf(func(x, y Operand) {
					if row.Writes() > 0 {
						b.Load(parts(b, x), y)
					} else {
						b.Store(x, parts(b, y))
					}
				})
			}
			emit.Call(operands)
			a := &assembly{Builder: b}
			if a.verifyOperands(); len(a.errs)+len(b.errs) > 0 || int(b.code[0].op) != i {
				t.Errorf("%s: %v %v", row.Opcode, a.errs, b.errs)
			}
			lines = append(append(lines, a.line(0)...), '\n')
		}
	}
	const path = "testdata/instructions.ptx"
	if flag.Lookup("update").Value.String() == "true" {
		must.Do(t, os.WriteFile(path, lines, 0o644))
	}
	want := bytes.Split(must.Get(os.ReadFile(path))(t), []byte("\n"))
	for i, got := range bytes.Split(lines, []byte("\n")) {
		must.That(t, i < len(want) && bytes.Equal(got, want[i]), "line %d of %s is not %s", i+1, path, got)
	}
}

// operandOf returns an operand of the n-th form that a position takes, or of the last one.
func operandOf(b *Builder, o inst.Operand, n int) Operand {
	form := o.Forms & -o.Forms
	for rest := o.Forms &^ form; n > 0 && rest != 0; n-- {
		form = rest & -rest
		rest &^= form
	}
	one := map[inst.Form]func() Operand{inst.Pred: b.Pred, inst.B16: b.B16, inst.B32: b.B32, inst.B64: b.B64,
		inst.F32: b.F32, inst.F64: b.F64}[form]
	switch {
	case o.Vector > 0:
		return b.Vec(b.Regs(o.Vector, one)...)
	case one != nil:
		return one()
	}
	switch form {
	case inst.Float:
		return Float(1.5)
	case inst.Special:
		return NctaidY
	case inst.Special64:
		return Clock64
	case inst.Symbol:
		return b.DynamicShared("smem", 16)
	case inst.Label:
		return b.Label("x")
	case inst.Param:
		return b.Param("word", U32)
	case inst.Name:
		b.Param("tensors", TensorMap)
		return b.ParamName("tensors")
	case inst.Global:
		return Global(b.B64(), 8)
	case inst.Shared:
		return Shared(b.B32(), -4)
	case inst.Tensor:
		return b.Tensor(b.B64(), b.B32(), b.B32(), b.B32())
	default:
		return Int(-4)
	}
}

// parts are the registers of a vector.
func parts(b *Builder, v Operand) []Operand {
	list := make([]Operand, v.vector)
	for i, id := range b.vectors[v.id : v.id+uint32(v.vector)] {
		list[i] = Operand{form: v.form, id: id}
	}
	return list
}

// TestWgmma: the multiplication of an extent and type is that instruction, with half as many sums per thread.
func TestWgmma(t *testing.T) {
	for n := 8; n <= 256; n += 8 {
		for _, kind := range []string{"f16", "bf16", "e4m3", "e5m2", "tf32", "s8"} {
			if n < 256 && (kind == "tf32" || kind == "s8") {
				continue
			}
			b := New("k")
			register, k, sum, prefix, end := b.F32, 32, "f32", "f", ", 1, 1;"
			var transposed []Operand
			switch kind {
			case "f16", "bf16":
				k, end, transposed = 16, ", 1, 1, 0, 1;", []Operand{Int(0), Int(1)}
			case "tf32":
				k = 8
			case "s8":
				register, sum, prefix, end = b.B32, "s32", "r", ";"
			}
			b.Wgmma(n, kind, b.Vec(b.Regs(n/2, register)...), b.B64(), b.B64(), b.Pred(), transposed...)
			a := &assembly{Builder: b}
			a.verifyOperands()
			must.Need(t, len(a.errs)+len(b.errs) <= 0, "%d: %v %v", n, a.errs, b.errs)
			start := fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s {%%%s0, ", n, k, sum, kind, kind, prefix)
			end = fmt.Sprintf("%%%s%d}, %%d%d, %%d%d, %%p%d", prefix, n/2-1, n/2, n/2+1, n/2+2) + end
			got := a.line(0)
			must.That(t, strings.HasPrefix(got, start) && strings.HasSuffix(got, end), "got %s", got)
		}
	}
	for _, n := range []int{0, 4, 12, 264} {
		b := New("k")
		b.Wgmma(n, "f16", b.Vec(b.F32()), b.B64(), b.B64(), b.Pred(), Int(0), Int(0))
		must.That(t, len(b.errs) != 0, "there is a wgmma with an extent of %d", n)
	}
}
