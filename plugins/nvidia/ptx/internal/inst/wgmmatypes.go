package inst

import "fmt"

// wgmmaTypes returns the multiplications of a warpgroup with the largest extent along n for tf32 and int8, whose
// operands are always contiguous along k.
func wgmmaTypes() (rows []Instruction) {
	one := Operand{Literal: "1"}
	for _, t := range []struct {
		k                    int
		sums, a, b, name, as string
		form                 Form
		signs                []Operand // the factors of a and b, which integers do not have
	}{
		{8, "f32", "tf32", "tf32", "K8F32TF32", "tf32", F32, ops(one, one)},
		{32, "s32", "s8", "s8", "K32S32S8", "int8", B32, nil},
	} {
		operands := ops(dstVec(t.form, wgmmaMaxN/2), src("a", B64), src("b", B64), src("add", Pred))
		rows = append(rows, row(fmt.Sprintf("WgmmaM64N%d%s", wgmmaMaxN, t.name),
			fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s", wgmmaMaxN, t.k, t.sums, t.a, t.b), sm90a,
			fmt.Sprintf("d = a · b, plus d if add; descriptors of a 64×%d and b %d×%d in %s", t.k, t.k, wgmmaMaxN, t.as),
			append(operands, t.signs...)...))
	}
	return rows
}
