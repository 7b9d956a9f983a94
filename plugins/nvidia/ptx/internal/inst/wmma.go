package inst

// wmma is the matrix instructions on fragments whose layout only they know (PTX ISA, "Warp Level Matrix Instructions:
// wmma.load, wmma.store, wmma.mma"), for fp16 with fp32 sums.
func wmma() (rows []Instruction) {
	for _, m := range []struct{ name, opcode string }{{"A", "a"}, {"B", "b"}} {
		for _, layout := range []struct{ name, opcode string }{{"Row", "row"}, {"Col", "col"}} {
			rows = append(rows, row("WmmaLoad"+m.name+layout.name,
				"wmma.load."+m.opcode+".sync.aligned."+layout.opcode+".m16n16k16.global.f16", sm70v63,
				"d = the lane's part of a 16×16 matrix in fp16, whose contiguous lines are stride elements apart",
				dstVec(B32, 8), src("addr", Global), src("stride", i32)))
		}
	}
	for _, layout := range []struct{ name, opcode string }{
		{"RowRow", "row.row"}, {"RowCol", "row.col"}, {"ColRow", "col.row"}, {"ColCol", "col.col"},
	} {
		rows = append(rows, row("WmmaMma"+layout.name, "wmma.mma.sync.aligned."+layout.opcode+".m16n16k16.f32.f32", sm70v63,
			"d = a · b + c over a warp: 16×16×16, a and b in fp16", dstVec(F32, 8), vec("a", B32, 8), vec("b", B32, 8),
			vec("c", F32, 8)))
	}
	return append(rows,
		row("WmmaLoadCRow", "wmma.load.c.sync.aligned.row.m16n16k16.global.f32", sm70v63,
			"d = the lane's part of a 16×16 matrix in fp32, whose rows are stride elements apart",
			dstVec(F32, 8), src("addr", Global), src("stride", i32)),
		row("WmmaStoreDRow", "wmma.store.d.sync.aligned.row.m16n16k16.global.f32", sm70v63,
			"the 16×16 matrix in fp32 at addr, whose rows are stride elements apart, = a",
			src("addr", Global), vec("a", F32, 8), src("stride", i32)),
	)
}
