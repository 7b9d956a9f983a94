package app

import (
	"context"
	"errors"

	"github.com/origami-gemm/origami/cmd/origami/internal/answer"
	"github.com/origami-gemm/origami/cmd/origami/internal/exitcode"
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
	failed := bad
	for _, err := range bad {
		a.Streams.Report(err)
	}
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
				err = InFile(part[i].Where, err)
				a.Streams.Report(err)
				failed = append(failed, err)
			}
		}
	}
	if len(failed) > 0 {
		return &exitcode.Reported{Err: failed[0]}
	}
	return nil
}

// InFile says which row of the problems file an error belongs to; an empty where is the command line.
func InFile(where string, err error) error {
	if where == "" {
		return err
	}
	var d *diag.Error
	if !errors.As(err, &d) {
		return &diag.Error{What: err.Error(), Where: where, Err: err}
	}
	if d.Where != "" {
		where += ": " + d.Where
	}
	return d.At("%s", where)
}
