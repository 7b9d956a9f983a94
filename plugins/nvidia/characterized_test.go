package nvidia

import (
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/plugins/nvidia/records"
)

// A kernel that is twice as slow in the characterization is predicted so, where nothing else limits it.
func TestCharacterizationCounts(t *testing.T) {
	header, _, _ := strings.Cut(string(records.TritonH200Timed), "\n")
	predict := func(row string) float64 {
		a := open(t, arch.OpenRequest{Arch: "sm90", Device: "h200", Characterization: []byte(header + "\n" + row + "\n")})
		c := gemm.Config{BlockM: 128, BlockN: 256, BlockK: 64, NumWarps: 8, NumStages: 3, GroupM: 8, SplitK: 1, Kernel: KernelTriton}
		var e [1]arch.Estimate
		if err := a.Estimate(t.Context(), e[:], gemm.New(4096, 4096, 16384), []gemm.Config{c}); err != nil {
			t.Fatal(err)
		}
		return float64(e[0].Cycles)
	}
	slow := predict("128,256,64,3,8,0,1,242.8,722.8,242.8,722.8,242.8,722.8") / predict("128,256,64,3,8,0,1,122.8,362.8,122.8,362.8,122.8,362.8")
	if slow < 1.95 || slow > 2.05 {
		t.Errorf("twice as slow by itself is %v times as slow", slow)
	}
}

// What is no characterization is refused with the place and what to do, and never half used.
func TestCharacterizationRefuses(t *testing.T) {
	header := strings.Join(timedFile.columns, ",") + "\n"
	for name, c := range map[string]struct {
		file string
		rung arch.Rung
		want string
	}{
		"empty":             {"", "", "no header"},
		"another table":     {"bm,bn\n1,2\n", "", "no column bk"},
		"no kernels":        {header, "", "no kernels"},
		"cut off":           {header + "128,256,64,3", "", "the characterization"},
		"not a number":      {header + "128,256,64,3,8,0,1,x,60,28,71,28,71\n", "", `line 2: one_2048 is "x"`},
		"a negative time":   {header + "128,256,64,3,8,0,1,24,-60,28,71,28,71\n", "", `one_6144 is "-60"`},
		"infinite":          {header + "128,256,64,3,8,0,1,24,60,28,+Inf,28,71\n", "", `chip_6144 is "+Inf"`},
		"half a block":      {header + "128,25.5,64,3,8,0,1,24,60,28,71,28,71\n", "", `bn is "25.5"`},
		"on a lower rung":   {header, arch.RungCompiled, "rung compiled knows no characterization"},
		"not for the model": {header + "128,256,64,3,8,0,0,24,60,28,71,28,71\n", "", `ctas is "0"`},
	} {
		p, err := Provider()
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Open(t.Context(), arch.OpenRequest{Arch: "sm90", Device: "h200", Rung: c.rung, Characterization: []byte(c.file)})
		if diag.KindOf(err) != diag.Input || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The decoder survives anything.
func FuzzCharacterization(f *testing.F) {
	f.Add([]byte(strings.Join(timedFile.columns, ",") + "\n128,256,64,3,8,0,1,24,60,28,71,28,71\n"))
	f.Add(records.TritonH200Timed[:2000])
	f.Add([]byte("bm,bn,bk\n1,2\n"))
	d := device{quantities: shipped, clock: 1.98e9, sms: 132, target: 90}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := d.readTimed(data)
		if (err == nil) != (len(table) > 0) {
			t.Errorf("%d kernels, %v", len(table), err)
		}
		for key, k := range table {
			for _, v := range []float64{k.fixed, k.one.short, k.one.long, k.chip.short, k.chip.long, k.full.short, k.full.long} {
				if !(v >= 0) {
					t.Errorf("%+v: %+v", key, k)
				}
			}
		}
	})
}
