package session

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// ProblemFlags are the flags that describe problems.
type ProblemFlags struct {
	M, N, K, Batch Size
	TransA, TransB bool
	// Out is the type of C. DType and Kernel come from Settings: they have a place in the settings file too.
	Out           string
	LDA, LDB, LDC Size
	Align         Align
	Scalars       ScalarFlags
	Groups        Groups
	Contract      ContractFlags
	Problems      string
	// Search says which configurations to consider.
	Search SearchFlags
}

// Register adds the flags. withFile says whether the command can answer for a list of problems.
func (f *ProblemFlags) Register(flags *pflag.FlagSet, withFile bool) {
	f.Batch.value = 1
	flags.SortFlags = false
	flags.VarP(&f.M, "m", "m", "rows of A and C")
	flags.VarP(&f.N, "n", "n", "columns of B and C")
	flags.VarP(&f.K, "k", "k", "columns of A, rows of B")
	flags.Var(&f.Batch, "batch", "number of products of this size")
	flags.Var(&f.Groups, "groups", "rows of A and C in groups, each with a B of its own, as in 120,33,0,512; replaces -m")
	f.registerLayout(flags)
	f.registerStorage(flags)
	f.registerFamily(flags)
	f.Search.Register(flags)
	if withFile {
		f.registerProblems(flags)
	}
}

// RegisterFile adds the flags of a command that answers for a list of problems only.
func (f *ProblemFlags) RegisterFile(flags *pflag.FlagSet) {
	f.Batch.value = 1
	flags.SortFlags = false
	f.registerFamily(flags)
	f.Search.Register(flags)
	f.registerProblems(flags)
}

// RegisterRecords adds the flags of a command that answers for the problems of a data set: which of them to answer,
// which configurations to consider, and the type and layout that a file of times leaves out.
func (f *ProblemFlags) RegisterRecords(flags *pflag.FlagSet) {
	f.RegisterLayout(flags)
	f.Search.Register(flags)
	f.registerProblems(flags)
}

// RegisterLayout adds the flags that say which of measured times to use: type, layout and kernel family.
func (f *ProblemFlags) RegisterLayout(flags *pflag.FlagSet) {
	f.Batch.value = 1
	flags.SortFlags = false
	f.registerLayout(flags)
	f.registerFamily(flags)
}

// Grid are the flags of a command that answers for a grid of sizes.
type Grid struct{ M, N, K Sizes }

// Sizes returns the sizes of the grid in the order m, n, k. Those that are not given are empty.
func (g *Grid) Sizes() [3][]int { return [3][]int{g.M.values, g.N.values, g.K.values} }

// RegisterGrid adds the flags of sizes, type, layout, kernel family and configurations.
func (f *ProblemFlags) RegisterGrid(flags *pflag.FlagSet, g *Grid) {
	flags.VarP(&g.M, "m", "m", "rows of A and C: a list of sizes and of ranges start:stop, start:step:stop or\n"+
		"start:step:increment:stop, where the step grows by the increment")
	flags.VarP(&g.N, "n", "n", "columns of B and C")
	flags.VarP(&g.K, "k", "k", "columns of A, rows of B")
	f.RegisterLayout(flags)
	f.Search.Register(flags)
}

func (f *ProblemFlags) registerLayout(flags *pflag.FlagSet) {
	flags.BoolVar(&f.TransA, "trans-a", false, "A is M-contiguous (K-contiguous otherwise)")
	flags.BoolVar(&f.TransB, "trans-b", false, "B is K-contiguous (N-contiguous otherwise)")
}

func (f *ProblemFlags) registerStorage(flags *pflag.FlagSet) {
	flags.Var(&f.LDA, "lda", "leading dimension of A: elements from row to row; dense otherwise")
	flags.Var(&f.LDB, "ldb", "leading dimension of B")
	flags.Var(&f.LDC, "ldc", "leading dimension of C")
	f.Scalars.Register(flags)
	flags.Var(&f.Align, "align", "bytes that divide the addresses of A, B and C (default 16), or of each: A,B,C")
}

func (f *ProblemFlags) registerFamily(flags *pflag.FlagSet) {
	flags.String("dtype", "", "element `TYPE` of A and B: "+gemm.TypeNames(gemm.DTypes())+" (default fp16)")
	flags.StringVar(&f.Out, "out-dtype", "",
		"element `TYPE` of C: "+gemm.TypeNames(gemm.OutputTypes())+"; what goes with --dtype otherwise")
	flags.String("kernel", "", "kernel `FAMILY`; the architecture's first otherwise")
}

func (f *ProblemFlags) registerProblems(flags *pflag.FlagSet) {
	flags.StringVar(&f.Problems, "problems", "",
		"answer for each problem of a `FILE` (CSV, TSV, JSON or JSON Lines with m,n,k[,batch,trans_a,trans_b,dtype,…]; "+
			"others are passed through; - is stdin), or of ranges, as in m=16:16:16:5632,n=4096,k=64,4096")
}

// Base returns a problem without sizes, with what the flags say about all problems.
func (f *ProblemFlags) Base(dtype string) (gemm.Problem, error) {
	var err error
	base := gemm.Problem{Batch: f.Batch.value, LDA: f.LDA.value, LDB: f.LDB.value, LDC: f.LDC.value}
	base.SetTrans(f.TransA, f.TransB)
	if err = f.Scalars.set(&base); err != nil {
		return base, err
	}
	for i, bytes := range f.Align.bytes {
		if bytes != 0 {
			if err := base.SetAlign(gemm.Operand(i), bytes); err != nil {
				return base, err
			}
		}
	}
	if base.DType, err = gemm.ParseDType(dtype); err == nil && f.Out != "" {
		base.Out, err = gemm.ParseOutput(f.Out)
	}
	return base, err
}

// Contraction returns the contraction that the flags describe. A name of Tensile gives the types as well.
func (f *ProblemFlags) Contraction(dtype string) (*ask.Plans, error) {
	base, err := f.Base(dtype)
	if err != nil {
		return nil, err
	}
	return f.Contract.plans(base)
}

// Asks reports whether the flags ask about a problem, or about a file of them.
func (f *ProblemFlags) Asks() bool {
	return f.Problems != "" || f.Contract.Text != "" ||
		slices.ContainsFunc(f.sizes(), func(n sizeFlag) bool { return n.set })
}

// One returns the problem that the flags of a command without --problems describe.
func (f *ProblemFlags) One(dtype string) (gemm.Problem, error) {
	base, err := f.Base(dtype)
	if err != nil {
		return base, err
	}
	return f.one(base)
}

// Problems are the problems that a command line asks about: the problem of its flags, or the rows of a file, which are
// read as they are asked for.
type Problems struct {
	*problems.File
	// Failures has the rows that cannot be read.
	Failures *Failures

	reached float64 // Share
	closer  io.Closer
}

// Single returns one problem.
func Single(p gemm.Problem) *Problems { return &Problems{File: problems.One(p)} }

// Open is Read, and the one architecture that answers.
func (f *ProblemFlags) Open(ctx context.Context, from *Factory) (*Problems, ask.Contender, error) {
	list, err := f.Read(ctx, from)
	if err != nil {
		return nil, ask.Contender{}, err
	}
	side, err := from.Side(ctx, &f.Search)
	if err != nil {
		list.Close()
	}
	return list, side, err
}

// Read returns the problems that the flags or the file ask for. The caller closes them.
func (f *ProblemFlags) Read(ctx context.Context, from *Factory) (*Problems, error) {
	base, err := f.Base(from.Settings.DType)
	if err != nil {
		return nil, err
	}
	list := &Problems{Failures: from.Failures(ctx)}
	if f.Problems == "" {
		p, err := f.one(base)
		list.File = problems.One(p)
		return list, err
	}
	if err := f.checkNoFile(); err != nil {
		return nil, err
	}
	if rows, ok, err := problems.Inline("--problems", f.Problems, base); ok {
		list.File, list.Failures.file = rows, "--problems"
		return list, err
	}
	name, in, size := "stdin", Reader(ctx, from.Streams.In), int64(0)
	if f.Problems != "-" {
		name = f.Problems
		file, err := OpenFile(ctx, name)
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			return nil, diag.Inputf("the file cannot be read: %v", diag.WithoutPath(err)).At("--problems %s", name).
				Do("give a file with m, n and k of each problem, in CSV, TSV or JSON")
		}
		in, list.closer = file, file
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	list.Failures.file = name
	if list.File, err = problems.Open(name, in, size, base); err != nil {
		list.Close()
		return nil, err
	}
	return list, nil
}

// Share is how much of the problems AskEach has come to, from 0 to 1. It is 0 if that is unknown, as it is of a pipe.
func (p *Problems) Share() float64 { return p.reached }

// mostListed bounds the problems of a command that holds what it finds out about each, as it must to summarise them.
const mostListed = 1 << 14

// ProblemList is a list of problems.
type ProblemList struct {
	Problems []problems.Problem
	// Labels are the names of the problems' labels.
	Labels []string
	// Failures has the rows that cannot be read.
	Failures *Failures
}

// List reads all problems.
func (f *ProblemFlags) List(ctx context.Context, from *Factory) (*ProblemList, error) {
	p, err := f.Read(ctx, from)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	list, err := p.List()
	return &ProblemList{Problems: list, Labels: p.Labels(), Failures: p.Failures}, err
}

// List reads the rest.
func (p *Problems) List() ([]problems.Problem, error) {
	var list []problems.Problem
	for {
		r := p.Next(p.Failures.unread >= mostUnread)
		switch {
		case r.Bad != nil:
			p.Failures.addUnread(r.Bad)
			continue
		case errors.Is(r.End, io.EOF):
			return list, nil
		case r.End != nil:
			return nil, r.End
		case len(list) == mostListed:
			return nil, diag.Inputf("there are more than %d problems, the most that this command takes", mostListed).
				At("%s", r.Problem.Where).Do("split it into several files")
		}
		list = append(list, r.Problem)
	}
}

// Close closes the file. It was only read, so there is no error.
func (p *Problems) Close() {
	if p.closer != nil {
		_ = p.closer.Close()
	}
}

type sizeFlag struct {
	flag string
	set  bool
}

// sizes lists the flags that one problem needs.
func (f *ProblemFlags) sizes() []sizeFlag {
	m := sizeFlag{"-m", f.M.set}
	if f.Groups.groups != (gemm.Groups{}) {
		m = sizeFlag{"--groups", true}
	}
	return []sizeFlag{m, {"-n", f.N.set}, {"-k", f.K.set}}
}

// checkNoFile refuses flags that describe one problem beside a file of problems.
func (f *ProblemFlags) checkNoFile() error {
	for _, d := range append(f.sizes(), sizeFlag{"--contract", f.Contract.Text != ""}) {
		if d.set {
			return diag.Inputf("%s and --problems contradict each other", d.flag).Do("leave one of them out")
		}
	}
	return nil
}

// one returns the problem that the flags describe.
func (f *ProblemFlags) one(p gemm.Problem) (gemm.Problem, error) {
	if f.Contract.Text != "" {
		// One launch: a GEMM, or otherwise a kernel with nested indices.
		plans, err := f.Contract.plans(p)
		if err != nil {
			return p, err
		}
		return plans.List[len(plans.List)-1].Problem, nil
	}
	var missing []string
	for _, d := range f.sizes() {
		if !d.set {
			missing = append(missing, d.flag)
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
	p.M, p.N, p.K = f.M.value, f.N.value, f.K.value
	if g := f.Groups.groups; g != (gemm.Groups{}) {
		if f.M.set {
			return p, diag.Inputf("-m and --groups contradict each other").Do("leave -m out: it is the rows of all groups")
		}
		p.SetGroups(g)
	}
	return p.Canonical(), p.Validate()
}
