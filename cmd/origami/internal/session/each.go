package session

import (
	"context"

	"github.com/origami-gemm/origami/cmd/origami/internal/exitcode"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// chunk is how many problems are asked at once: enough to make a plugin's round trip cheap, few enough to hold a full
// ranking of each in memory.
const chunk = 64

// AskEach answers a list of problems in order and hands each answer to write. An error in one problem does not stop the
// others: bad, the rows that could not be read, are reported first, other errors when they occur. The error that
// AskEach returns then only carries the exit code. The only problem of a command line fails with its own error.
func (f *Factory) AskEach(
	ctx context.Context, a arch.Architecture, problems []Problem, bad []error, q Question, write func(*Answer) error,
) error {
	failures := f.Failures(bad)
	for start := 0; start < len(problems); start += chunk {
		part := problems[start:min(start+chunk, len(problems))]
		answers, err := Ask(ctx, a, shapes(part), q)
		if err != nil {
			return err
		}
		for i := range answers {
			err := answers[i].Err
			switch {
			case err == nil:
				if err := write(&answers[i]); err != nil {
					return err
				}
			case part[i].Where == "":
				return err
			default:
				failures.Add(part[i].Where, err)
			}
		}
	}
	return failures.Err()
}

func shapes(problems []Problem) []gemm.Problem {
	out := make([]gemm.Problem, len(problems))
	for i := range problems {
		out[i] = problems[i].Problem
	}
	return out
}

// Failures are the problems of a list that could not be answered. Each is reported when it occurs and does not stop the
// others. In the end they decide the exit code.
type Failures struct {
	streams *iostreams.Streams
	first   error
}

// Failures returns a list that begins with the rows of a problems file that could not be read.
func (f *Factory) Failures(bad []error) *Failures {
	list := &Failures{streams: f.Streams}
	for _, err := range bad {
		list.Add("", err)
	}
	return list
}

// Add reports an error in one problem. where is its row in the problems file.
func (f *Failures) Add(where string, err error) {
	err = diag.Within(where, err)
	f.streams.Report(err)
	if f.first == nil {
		f.first = err
	}
}

// Err returns nil if nothing failed, and otherwise an error that has been reported and carries the exit code.
func (f *Failures) Err() error {
	if f.first == nil {
		return nil
	}
	return &exitcode.Reported{Err: f.first}
}
