package tensile_test

import (
	"math"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/logic"
	"github.com/origami-gemm/origami/formats/tensile"
	"github.com/origami-gemm/origami/internal/testing/must"
)

// classic is a list as Tensile writes it, with what makes reading hard: an anchor, a device that is a number, two kinds
// of sizes, infinite and missing speeds, a SolutionIndex that is not the place, and range logic.
const classic = `- {MinimumRequiredVersion: 4.4.0}
- vega10
- gfx900
- [Device 6863, 6862, 'Vega 10 [Radeon Instinct MI25]']
- OperationType: GEMM
  DataType: 0
  UseBeta: true
  HighPrecisionAccumulate: false
  Batched: true
  TotalIndices: 4
  NumIndicesC: 3
  IndexAssignmentsA: [3, 0, 2]
  IndexAssignmentsB: [3, 1, 2]
- - &common {MacroTile0: 64, MacroTile1: 32, DepthU: 8, SolutionIndex: 7, PrefetchGlobalRead: true}
  - *common
  - {MacroTile0: 128, MacroTile1: 128, DepthU: 16, SolutionNameMin: big, WorkGroup: [16, 16, 1]}
- [2, 3, 0, 1]
- - - [256, 3136, 64, 128]
    - [2, 9959.89]
  - - [9, 1, 1, 196, 9, 9, 196, 196]
    - [0, .inf]
  - - - 512
      - 16
      - 1
      - 512
    - [1, 0.0]
- - - -1
    - - - 64
        - - - 128
            - [[32, 0], [-1, 1]]
          - [-1, [[-1, 1]]]
      - - -1
        - - - -1
            - [[4, 0], [64, 1], [-1, 2]]
`

const unbatched = `- {MinimumRequiredVersion: 2.4.0}
- vega10
- gfx900
- OperationType: GEMM
  DataType: 4
  UseBeta: true
  NumIndicesC: 2
  IndexAssignmentsA: [0, 2]
  IndexAssignmentsB: [1, 2]
- [{SolutionNameMin: only}]
- [2, 0, 1]
- - - [5124, 700, 2048]
    - [0, 10000.5]
- [[-1, [[-1, [[-1, 0]]]]]]
`

func TestClassic(t *testing.T) {
	l := read(t, classic)
	must.That(t, l.Arch == "gfx900" && l.Type.String() == "Cijk_Alik_Bljk_SB" && l.Unit == "GFLOPS" && len(l.Exact) == 3 &&
		l.Kernels[0].Name == "MT64x32x8 #0" && l.Kernels[1].Name == "MT64x32x8 #1" && l.Kernels[2].Name == "big" &&
		l.Exact[1].Speed == math.Inf(1) && len(l.Exact[1].LD) == 4 && l.Leaves() == 6 && l.Fallback == logic.Model, "%+v", l)
	for _, x := range []struct {
		size   logic.Size
		kernel int
		layer  logic.Layer
	}{
		{logic.Size{256, 3136, 64, 128}, 2, logic.LayerExact}, {logic.Size{512, 16, 1, 512}, 1, logic.LayerExact},
		{logic.Size{9, 1, 1, 196}, 0, logic.LayerExact}, // whatever the leading dimensions are
		// Order: batch, sum, then i and j.
		{logic.Size{128, 32, 5, 64}, 0, logic.LayerRange}, {logic.Size{128, 33, 5, 64}, 1, logic.LayerRange},
		{logic.Size{129, 1, 5, 64}, 1, logic.LayerRange}, {logic.Size{129, 64, 5, 65}, 1, logic.LayerRange},
		{logic.Size{1, 4, 1, 9999}, 0, logic.LayerRange}, {logic.Size{1, 99999, 1, 9999}, 2, logic.LayerRange},
	} {
		if k, layer := l.Lookup(x.size); k != x.kernel || layer != x.layer {
			t.Errorf("%v: kernel %d of %s, want %d of %s", x.size, k, layer, x.kernel, x.layer)
		}
	}
	u := read(t, unbatched)
	if k, layer := u.Lookup(logic.Size{5124, 700, 1, 2048}); k != 0 || layer != logic.LayerExact ||
		u.Type.String() != "Cij_Aik_Bjk_HB" {
		t.Error(k, layer, u.Type)
	}
}

func TestUnitsAndLibraryTypes(t *testing.T) {
	head := strings.SplitAfter(classic, "- - - -1\n")[0]
	head = strings.TrimSuffix(head, "- - - -1\n")
	for _, x := range []struct{ arch, tail, unit, fallback, device string }{
		{"gfx942", "- null\n- null\n- DeviceEfficiency\n- GridBased\n", "", "nearest", ""},
		{"{Architecture: gfx942, IsAPU: 0}", "- null\n- null\n- DeviceEfficiency\n- null\n- Equality\n", "", "model",
			"IsAPU 0"},
		{"'{Architecture: gfx942, CUCount: 80}'", "- null\n- null\n- ExperimentalStreamK\n- GridBased\n",
			"% of the peak of 304 CUs at 2.1 GHz", "nearest", "CUCount 80"},
		{"gfx908", "- null\n- null\n- CUEfficiency\n", "% of the peak of the CUs in use", "model", ""},
		{"gfx906", "- null\n", "GFLOPS", "model", ""},
	} {
		l := read(t, strings.Replace(head, "gfx900", x.arch, 1)+x.tail)
		must.That(t, l.Unit == x.unit && string(l.Fallback) == x.fallback && l.Device == x.device &&
			strings.HasPrefix(l.Arch, "gfx9"), "%s: %q, %s, %s@%s", x.tail, l.Unit, l.Fallback, l.Arch, l.Device)
	}
}

// mapping is the form of hipBLASLt: solutions have what differs from the default.
const mapping = `MinimumRequiredVersion: 4.33.0
ScheduleName: gfx950
ArchitectureName: gfx950
DeviceNames: [Device 75a0]
ProblemType: {OperationType: GEMM, DataType: 7, DestDataType: 7, ComputeDataType: 0, UseBeta: true,
  HighPrecisionAccumulate: true, Activation: true, NumIndicesC: 3, IndexAssignmentsA: [0, 3, 2],
  IndexAssignmentsB: [1, 3, 2]}
DefaultSolution: {MacroTile0: 256, MacroTile1: 256, DepthU: 64, WorkGroupMapping: 8}
Solutions:
- {SolutionNameMin: wide}
- {SolutionNameMin: tall, MacroTile0: 64}
IndexOrder: [2, 3, 0, 1]
ExactLogic:
- [[4096, 512, 1, 8192], [1, 0.0]]
RangeLogic: null
LibraryType: Equality
PerfMetric: DeviceEfficiency
`

func TestMapping(t *testing.T) {
	l := read(t, mapping)
	must.That(t, l.Type.String() == "Cijk_Ailk_Bjlk_BBS_BH" && l.Kernels[1].Parameters["MacroTile0"] == 64 &&
		l.Kernels[1].Parameters["MacroTile1"] == 256 && l.Kernels[0].Parameters["MacroTile0"] == 256 &&
		l.Exact[0].Kernel == 1 && l.Unit == "", "%+v", l)
}

// predicted is a library whose kernels a model ranks: it has no sizes.
const predicted = `MinimumRequiredVersion: 4.33.0
ScheduleName: gfx950
ArchitectureName: gfx950
DeviceNames: [Device 75a0]
ProblemType: {OperationType: GEMM, DataType: 4, DestDataType: 4, ComputeDataType: 0, UseBeta: true,
  HighPrecisionAccumulate: true, Activation: true, NumIndicesC: 3, IndexAssignmentsA: [0, 3, 2],
  IndexAssignmentsB: [3, 1, 2]}
DefaultSolution: {WavefrontSize: 64, WorkGroupMapping: 6, GlobalSplitU: 0, StreamK: 0}
Solutions:
- {SolutionNameMin: wide, MacroTile0: 256, MacroTile1: 160, DepthU: 64, WorkGroup: [64, 4, 1]}
- {SolutionNameMin: small, MacroTile0: 32, MacroTile1: 64, DepthU: 128, WorkGroup: [16, 4, 1], GlobalSplitU: 3}
- {SolutionNameMin: dealt, MacroTile0: 256, MacroTile1: 256, DepthU: 64, WorkGroup: [32, 8, 1], StreamK: 3}
- {SolutionNameMin: untold}
IndexOrder: null
ExactLogic: null
RangeLogic: null
LibraryType: Prediction
PerfMetric: DeviceEfficiency
`

// The kernels of a Prediction library are candidates. Kernels of other libraries are known by name alone.
func TestPrediction(t *testing.T) {
	l := read(t, predicted)
	var got []string
	for _, k := range l.Kernels {
		if got = append(got, k.Name); k.Config.BlockM > 0 {
			got = append(got, k.Config.String())
		}
	}
	want := "wide 160x256x64 w4 s1 g6 small 64x32x128 w1 s1 g6 k3 dealt 256x256x64 w4 s1 g6 stream_k=1 untold"
	must.Equal(t, strings.Join(got, " "), want)
	if k, layer := l.Lookup(logic.Size{4096, 4096, 1, 4096}); k >= 0 || layer != logic.LayerModel {
		t.Error(k, layer)
	}
	c := read(t, mapping).Kernels[0].Config
	must.That(t, c.BlockM == 0, "%v", c)
}

func TestBadFiles(t *testing.T) {
	change := func(text, from, to string) string {
		t.Helper()
		must.Need(t, strings.Count(text, from) != 0, "%v", from)
		return strings.Replace(text, from, to, 1)
	}
	for says, text := range map[string]string{
		"bad.yaml:2: the file is not valid YAML":                            "a: 1\n b: [\n",
		"bad.yaml:3: the file is not valid YAML: did not find expected key": "a: 1\nb: {x: 1}\n  c: 3\n",
		"bad.yaml: the file is empty; give a library logic":                 "",
		"bad.yaml:1: the file is no library logic":                          "GlobalParameters: {}\n",
		"bad.yaml:1: the list has 2 parts":                                  "- 1\n- 2\n",
		`bad.yaml:5: the file is for the operation "ConvolutionForward"`:    change(classic, "GEMM", "ConvolutionForward"),
		"bad.yaml:5: the file is for the contraction Cij_Aikl_Bjkl, which is no GEMM": change(classic,
			"NumIndicesC: 3\n  IndexAssignmentsA: [3, 0, 2]\n  IndexAssignmentsB: [3, 1, 2]",
			"NumIndicesC: 2\n  IndexAssignmentsA: [0, 2, 3]\n  IndexAssignmentsB: [1, 2, 3]"),
		"bad.yaml:19: there is no kernel 3; the file has 3 kernels, numbered from 0": change(
			classic, "[2, 9959.89]", "[3, 9959.89]"),
		`bad.yaml:19: a speed is "fast" and no number`:                   change(classic, "9959.89", "fast"),
		"bad.yaml:18: an exact size has 5 numbers; it has 4, or 8":       change(classic, "64, 128]\n", "64, 128, 1]\n"),
		`bad.yaml:18: a size is "0"; it is a whole number of at least 1`: change(classic, "[256, 3136", "[0, 3136"),
		`bad.yaml:18: a size is "2.5"`:                                   change(classic, "[256, 3136", "[2.5, 3136"),
		"bad.yaml:17: the index order is [2 3 0 0]; it lists the 4 indices once each": change(
			classic, "[2, 3, 0, 1]", "[2, 3, 0, 0]"),
		"bad.yaml:34: the threshold 4 follows 4; thresholds grow": change(
			classic, "[64, 1], [-1, 2]", "[4, 1], [-1, 2]"),
		"bad.yaml:34: there is no kernel 9":                       change(classic, "[-1, 2]]", "[-1, 9]]"),
		"bad.yaml:6: DataType is 99, and no type has that number": change(classic, "DataType: 0", "DataType: 99"),
		"bad.yaml:8: ProblemType has the key UseBeta twice": change(
			classic, "UseBeta: true", "UseBeta: true\n  UseBeta: true"),
	} {
		l, err := tensile.Read("bad.yaml", []byte(text))
		must.That(t, l == nil && err != nil && strings.Contains(err.Error(), says) && diag.KindOf(err) == diag.Input,
			"%v, want %s", err, says)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(classic))
	f.Add([]byte(unbatched))
	f.Add([]byte(mapping))
	f.Add([]byte(predicted))
	own := must.Get(build(f, logic.Options{Ranges: true, Fallback: logic.Nearest}).Map())(f)
	f.Add(own)
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := tensile.Read("fuzz", text)
		if err != nil {
			return
		}
		l.Lookup(logic.Size{100, 200, 1, 300})
		for _, write := range []func() ([]byte, error){l.Classic, l.Map} {
			out := must.Get(write())(t)
			back, err := tensile.Read("back", out)
			must.Do(t, err)
			must.Need(t, len(back.Kernels) == len(l.Kernels) && len(back.Exact) == len(l.Exact) && back.Leaves() == l.Leaves(),
				"something was lost:\n%s", out)
		}
	})
}

func TestNames(t *testing.T) {
	for text, want := range map[string]string{
		"Cijk_Ailk_Bjlk_SB":                            "fp32",
		"Cijk_Ailk_Bjlk_HB":                            "fp16",
		"Cijk_Alik_Bljk_HHS_BH":                        "fp16",
		"Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs":  "bf16",
		"Cijk_Ailk_Bljk_SB_Bias_HAS_SAV_UserArgs":      "fp32",
		"Cijk_Alik_Bljk_HSS_BH":                        "fp16 with fp32 results",
		"Cijk_Alik_Bljk_F8F8S_BH_SR":                   "no hardware multiplies fp8 operands into fp8 results",
		"Cijk_Alik_Bljk_F8S_BH":                        "fp8 with fp32 results",
		"Cijk_Alik_Bljk_F8B8SS_BH_SAB_UserArgs":        "A is fp8 and B is fp8_e5m2",
		"Cijk_Alik_Bljk_4xi8BH":                        "int8",
		"Cijk_Alik_Bljk_I8II_BH":                       "int8",
		"Cijk_Alik_Bljk_DB":                            "no model knows Tensile's data type D",
		"Cijkl_Aijml_Bmkl_SI":                          "fp32",
		"Cij_Akil_Bkjl_BBH":                            "bf16",
		"Cijk_Ailk_Bjlk":                               "",
		"Cijk_Ailk_Bjlk_S":                             "fp32",
		"Cijk_Alik_Bljk_HHS_BH_Bias_Aux_HAH_SAV_GG_HS": "fp16",
	} {
		n, err := tensile.ParseName(text)
		must.That(t, err == nil && n.String() == text, "%s is read as %s, %v", text, n, err)
		got, err := n.DTypes()
		switch {
		case err != nil:
			must.That(t, strings.HasPrefix(err.Error(), want) && want != "", "%s: %v, want %s", text, err, want)
		case got == (gemm.Types{}) && want != "" || got != (gemm.Types{}) && got.Text() != want:
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}

func TestMistakesInNames(t *testing.T) {
	for text, says := range map[string]string{
		"Cij_Aik_Bkj_QB":    `"Cij_Aik_Bkj_QB": column 13: "QB" does not begin with a data type`,
		"Cij_Aik_Bkj_":      `"Cij_Aik_Bkj_": column 13: the name has no data type`,
		"Cij_Aik_Bkj_SSSSS": `does not begin with a data type`,
		"Cij_Aik_Xkj_SB":    `"Cij_Aik_Xkj_SB": column 9: "Xkj" does not begin with B`,
		"Cij_Aik":           `is no name of a problem type`,
	} {
		_, err := tensile.ParseName(text)
		must.Refuse(t, err, says)
	}
}

func FuzzParseName(f *testing.F) {
	for _, text := range []string{"Cijk_Ailk_Bjlk_HHS_BH_Bias", "Cij_Aik_Bkj_SB", "Cijk_Ailk_Bjlk_4xi8BH"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := tensile.ParseName(text); err == nil && n.String() != text {
			t.Errorf("%q is written %q", text, n.String())
		}
	})
}
