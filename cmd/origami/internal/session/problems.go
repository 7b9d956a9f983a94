package session

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/core/diag"
)

// ProblemFlags are the flags that describe problems, and which configurations to consider. The type of the operands and
// the kernel family have a place in the settings too.
type ProblemFlags struct {
	question.Asked
	question.Orders
	Problems string
}

// Register adds the flags. withFile says whether the command can answer for a list of problems.
func (f *ProblemFlags) Register(flags *pflag.FlagSet, withFile bool) {
	Register(flags, &f.Product)
	Register(flags, &f.Search)
	if withFile {
		f.RegisterProblems(flags)
	}
}

// RegisterFile adds the flags of a command that answers for a list of problems only.
func (f *ProblemFlags) RegisterFile(flags *pflag.FlagSet) {
	Register(flags, &f.Product, "dtype", "out_dtype", "kernel")
	Register(flags, &f.Search)
	f.RegisterProblems(flags)
}

// RegisterRecords adds the flags of a command that answers for the problems of a data set: which of them to answer,
// which configurations to consider, and the type and layout that a file of times leaves out.
func (f *ProblemFlags) RegisterRecords(flags *pflag.FlagSet) {
	Register(flags, &f.Types)
	Register(flags, &f.Search)
	f.RegisterProblems(flags)
}

// RegisterProblems adds the flag for a list of problems.
func (f *ProblemFlags) RegisterProblems(flags *pflag.FlagSet) {
	flags.StringVar(&f.Problems, "problems", "",
		"answer for each problem of a `FILE` (CSV, TSV, JSON or JSON Lines with m,n,k[,batch,trans_a,trans_b,dtype,…]; "+
			"others are passed through; - is stdin), of a log or trace of another program (docs/start.md), or of ranges, as in "+
			"m=16:16:16:5632,n=4096,k=64,4096")
	mark(flags, "problems", fileKey)
}

// Asks reports whether the flags ask about a problem, or about a file of them.
func (f *ProblemFlags) Asks() bool { return f.Problems != "" || f.Contract != "" || f.Sized() != "" }

// Problems are the problems that a command line asks about: the problem of its flags, or the rows of a file, which are
// read as they are asked for.
type Problems struct {
	*problems.File
	// Failures has the rows that cannot be read.
	Failures *Failures

	reached float64 // Share
	closer  io.Closer
}

// Open is Read, and the one architecture that answers.
func (f *ProblemFlags) Open(ctx context.Context, from *Factory) (*Problems, ask.Contender, error) {
	list, err := f.Read(ctx, from)
	if err != nil {
		return nil, ask.Contender{}, err
	}
	side, err := from.Side(ctx, &f.Search, f.Invariant)
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
		p, err := f.One(from.Settings.DType)
		list.File = problems.One(p)
		return list, err
	}
	one := f.Sized()
	if f.Contract != "" {
		one = "--contract"
	}
	if one != "" {
		return nil, diag.Inputf("%s and --problems contradict each other", one).Do("leave one of them out")
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
