package question

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// Types say the types of the operands, the kernel family and the layout.
type Types struct {
	TransA bool   `json:"trans_a" help:"A is M-contiguous (K-contiguous otherwise)"`
	TransB bool   `json:"trans_b" help:"B is K-contiguous (N-contiguous otherwise)"`
	DType  string `json:"dtype" arg:"TYPE" help:"element type of A and B: {types} (default fp16)"`
	Out    string `json:"out_dtype" arg:"TYPE" help:"element type of C: {outputs}; what goes with --dtype otherwise" rare:"yes"`
	Kernel string `json:"kernel" arg:"FAMILY" help:"kernel family; the architecture's first otherwise"`
}

// Product is the product of matrices that is asked about:
// C = activation(alpha·scale_a·scale_b·A·B + beta·C + bias) + R.
type Product struct {
	M      Sizes  `json:"m" short:"m" arg:"SIZE" help:"rows of A and C; for select also a range, as in 1:16384, or a list, as in 1,16,64 or 16:16:256"`
	N      Size   `json:"n" short:"n" arg:"SIZE" help:"columns of B and C"`
	K      Size   `json:"k" short:"k" arg:"SIZE" help:"columns of A, rows of B"`
	Batch  Size   `json:"batch" arg:"SIZE" default:"1" help:"number of products of this size"`
	Groups Groups `json:"groups" arg:"ROWS" help:"rows of A and C in groups, each with a B of its own, as in 120,33,0,512; replaces -m"`
	Types
	LDA      Size   `json:"lda" arg:"SIZE" help:"leading dimension of A: elements from row to row; dense otherwise" rare:"yes"`
	LDB      Size   `json:"ldb" arg:"SIZE" help:"leading dimension of B" rare:"yes"`
	LDC      Size   `json:"ldc" arg:"SIZE" help:"leading dimension of C" rare:"yes"`
	Alpha    string `json:"alpha" arg:"FACTOR" help:"factor of the product (default 1)" rare:"yes"`
	Beta     string `json:"beta" arg:"FACTOR" help:"factor of what C holds before; C is not read if it is 0, the default" rare:"yes"`
	Epilogue string `json:"epilogue" arg:"ACTIVATION" help:"what is done to C before it is stored: scales, bias or bias_fp32, an activation ({activations}), residual, or several in this order, as bias+gelu (default none)"`
	Align    Align  `json:"align" arg:"BYTES" help:"bytes that divide the addresses of A, B and C (default 16), or of each: A,B,C" rare:"yes"`
}

// Base returns a problem without sizes, with what the question says about all problems. fallback is the type of the
// operands where the question names none.
func (q *Product) Base(fallback string) (gemm.Problem, error) {
	base := gemm.Problem{Batch: max(1, int(q.Batch)), LDA: int(q.LDA), LDB: int(q.LDB), LDC: int(q.LDC)}
	base.SetTrans(q.TransA, q.TransB)
	if err := q.scale(&base); err != nil {
		return base, err
	}
	for i, bytes := range q.Align {
		if bytes != 0 {
			if err := base.SetAlign(gemm.Operand(i), bytes); err != nil {
				return base, err
			}
		}
	}
	var err error
	if base.DType, err = gemm.ParseDType(cmp.Or(q.DType, fallback)); err == nil && q.Out != "" {
		base.Out, err = gemm.ParseOutput(q.Out)
	}
	return base, err
}

// scale sets the factors and what is done to C.
func (q *Product) scale(p *gemm.Problem) error {
	for _, x := range []struct {
		flag, text string
		to         *float32
	}{{"--alpha", q.Alpha, &p.Alpha}, {"--beta", q.Beta, &p.Beta}} {
		if x.text == "" {
			continue
		}
		v, err := strconv.ParseFloat(x.text, 32)
		if err != nil || v-v != 0 {
			return diag.Inputf("%q is no finite number", x.text).At("%s", x.flag).Do("give a number such as 0.5")
		}
		*x.to = float32(v)
	}
	if q.Alpha != "" && p.Alpha == 0 {
		return diag.Inputf("an alpha of 0 leaves nothing to multiply").At("--alpha").Do("give another number")
	}
	var err error
	p.Epilogue, err = gemm.ParseEpilogue(q.Epilogue)
	return diag.Within("--epilogue", err)
}

// Sized is the flag of a size that the question has, empty if it has none.
func (q *Product) Sized() string {
	f := given(q, "m", "n", "k", "groups")
	switch {
	case f == nil:
		return ""
	case f.Short != "":
		return "-" + f.Short
	}
	return "--" + f.Flag()
}

// Scaled reports whether the question has a factor, or something is done to C.
func (q *Product) Scaled() bool { return given(q, "alpha", "beta", "epilogue") != nil }

// Problem returns the product of the question's sizes, of which M is the largest.
func (q *Product) Problem(fallback string) (gemm.Problem, error) {
	p, err := q.Base(fallback)
	if err != nil {
		return p, err
	}
	grouped := q.Groups.Groups != (gemm.Groups{})
	var missing []string
	for _, size := range []struct {
		flag string
		ok   bool
	}{{"-m", grouped || q.M.Values != nil}, {"-n", q.N > 0}, {"-k", q.K > 0}} {
		if !size.ok {
			missing = append(missing, size.flag)
		}
	}
	if len(missing) > 0 {
		be := "is"
		if len(missing) > 1 {
			be = "are"
		}
		return p, diag.Inputf("%s %s missing", strings.Join(missing, " and "), be).
			Do("give all three sizes, as in -m 4096 -n 4096 -k 4096")
	}
	p.N, p.K = int(q.N), int(q.K)
	if grouped {
		p.SetGroups(q.Groups.Groups)
		if q.M.Values != nil && (!q.M.plain || q.M.Values[0] != p.M) { // an answer's problem has both
			return p, diag.Inputf("-m and --groups contradict each other").Do("leave -m out: it is the rows of all groups")
		}
	} else {
		p.M = slices.Max(q.M.Values)
	}
	return p.Canonical(), p.Validate()
}

// One is Problem for a question that has one M.
func (q *Product) One(fallback string) (gemm.Problem, error) {
	if _, several := q.M.Several(); several {
		return gemm.Problem{}, diag.Inputf("-m %s is more than one size", &q.M).
			Do("give one; select answers for a range or a list")
	}
	return q.Problem(fallback)
}

// Size is a whole number of at least 1, 0 if it is not given.
type Size int

// String returns what Set reads.
func (s *Size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.Itoa(int(*s))
}

// Set reads a size.
func (s *Size) Set(text string) error {
	v, err := problems.ParseSize(text)
	*s = Size(v)
	return err
}

// Sizes are one size, a range of all sizes between two, as in 1:4096, or a list of sizes and of ranges with steps, as
// in 1,16,64 or 16:16:64.
type Sizes struct {
	// Values are the sizes, the ends of a range.
	Values []int

	text  string
	span  bool // the values are the ends of a range
	plain bool // the values are one size
}

// String returns what Set reads.
func (s *Sizes) String() string { return s.text }

// Set reads sizes.
func (s *Sizes) Set(text string) (err error) {
	next := Sizes{text: text}
	first, last, ranged := strings.Cut(text, ":")
	switch {
	case strings.Contains(text, ",") || strings.Count(text, ":") > 1:
		next.Values, err = problems.ParseSizes(text)
	case ranged:
		var low, high int
		if low, err = problems.ParseSize(first); err == nil {
			high, err = problems.ParseSize(last)
		}
		if err == nil && low > high {
			err = errors.New("is a range that ends before it begins")
		}
		next.Values, next.span = []int{low, high}, true
	default:
		var one int
		one, err = problems.ParseSize(text)
		next.Values, next.plain, next.text = []int{one}, true, strconv.Itoa(one)
	}
	if err == nil {
		*s = next
	}
	return err
}

// Several returns the sizes of a range or a list, and false for one size.
func (s *Sizes) Several() (ask.Range, bool) {
	switch {
	case s.Values == nil || s.plain:
		return ask.Range{}, false
	case s.span:
		return ask.Range{Low: s.Values[0]}, true
	default:
		return ask.Range{List: s.Values}, true
	}
}

// Align is the alignment of all three matrices in bytes, or of each; 0 if it is not given.
type Align [3]int

// String returns what Set reads.
func (a *Align) String() string {
	if *a == (Align{}) {
		return ""
	}
	return fmt.Sprintf("%d,%d,%d", a[0], a[1], a[2])
}

// Set reads one number or three.
func (a *Align) Set(text string) error {
	cells := strings.Split(text, ",")
	if len(cells) == 1 {
		cells = []string{text, text, text}
	}
	if len(cells) != len(a) {
		return errors.New("is neither one number nor three, as in 2,16,16 for A, B and C")
	}
	for i, cell := range cells {
		var err error
		if a[i], err = problems.ParseAlign(cell); err != nil {
			return err
		}
	}
	return nil
}

// Groups are the rows of each group.
type Groups struct{ gemm.Groups }

// Set reads the rows of each group.
func (g *Groups) Set(text string) (err error) {
	g.Groups, err = problems.ParseGroups(text)
	return err
}

// String returns what Set reads.
func (g *Groups) String() string { return g.Groups.String() }

// Grid are the sizes of a grid of products.
type Grid struct {
	M List `json:"m" short:"m" arg:"SIZES" help:"rows of A and C: a list of sizes and of ranges start:stop, start:step:stop or start:step:increment:stop, where the step grows by the increment"`
	N List `json:"n" short:"n" arg:"SIZES" help:"columns of B and C"`
	K List `json:"k" short:"k" arg:"SIZES" help:"columns of A, rows of B"`
}

// Sizes returns the sizes of the grid in the order m, n, k. Those that are not given are empty.
func (g *Grid) Sizes() [3][]int { return [3][]int{g.M.values, g.N.values, g.K.values} }

// List is a list of sizes and of ranges as in gemm.Steps, with colons.
type List struct {
	values []int
	text   string
}

// String returns what Set reads.
func (s *List) String() string { return s.text }

// Set reads the list.
func (s *List) Set(text string) error {
	values, err := problems.ParseSizes(text)
	if err == nil {
		s.values, s.text = values, text
	}
	return err
}

// Axes are names of axes, of which a word may have several, with commas.
func Axes(words []string) (names []string) {
	for _, word := range words {
		names = append(names, strings.Split(word, ",")...)
	}
	return names
}
