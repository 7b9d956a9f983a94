package app

import (
	"context"

	"github.com/origami-gemm/origami/cmd/origami/internal/answer"
	"github.com/origami-gemm/origami/cmd/origami/internal/exitcode"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/query"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
)

// chunk is how many problems are asked at once: enough to make a plugin's round trip cheap, few enough to hold a full
// ranking of each in memory.
const chunk = 64

// Each answers a list of problems in order and hands each answer to write. Errors in single problems do not stop the
// others: bad ones are reported first, one that turns up on the way is reported where it does, and the error that comes
// back then only carries the exit code. A question of one problem from the command line fails with its error.
func (a *App) Each(ctx context.Context, ar arch.Architecture, problems []query.Problem, bad []error, o answer.Options, write func(*answer.Answer) error) error {
	failures := a.Failures(bad)
	for start := 0; start < len(problems); start += chunk {
		part := problems[start:min(start+chunk, len(problems))]
		shapes := make([]gemm.Problem, len(part))
		for i := range part {
			shapes[i] = part[i].Problem
		}
		answers, err := answer.Ask(ctx, ar, shapes, o)
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

// Failures are the problems of a list that could not be answered. Each is reported when it turns up and does not stop
// the others; in the end they decide the exit code.
type Failures struct {
	streams *iostreams.Streams
	first   error
}

// Failures returns a list that begins with the rows of a problems file that could not be read.
func (a *App) Failures(bad []error) *Failures {
	f := &Failures{streams: a.Streams}
	for _, err := range bad {
		f.Add("", err)
	}
	return f
}

// Add reports what went wrong with one problem; where is its row in the problems file.
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
