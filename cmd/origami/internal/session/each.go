package session

import (
	"context"
	"errors"
	"io"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/problems"
	"github.com/origami-gemm/origami/core/gemm"
)

// Problems are asked chunk at once, which makes a plugin's round trip cheap. Whole rankings have thousands of entries
// each: they are asked few at once, so that the first is written soon and memory does not hold many.
const (
	chunk      = 64
	chunkWhole = 4
)

// Asked returns the problem that flags describe, and the model to ask about it with the other kernel families.
func (f *Factory) Asked(ctx context.Context, q *ProblemFlags) (gemm.Problem, ask.Contender, error) {
	p, err := q.One(f.Settings.DType)
	if err != nil {
		return p, ask.Contender{}, err
	}
	side, err := f.Side(ctx, &q.Search, q.Invariant)
	return p, side, err
}

// Rankings answers the problems of a question: ask.Contender has it for a model.
type Rankings func(ctx context.Context, q ask.Question) ([]ask.Ranking, error)

// AskEach answers problems in order and hands each answer to write. What that writes goes out while other problems wait
// for their answers. An error in one problem does not stop the others: it is reported when it occurs. The error that
// AskEach returns then only carries the exit code. The only problem of a command line fails with its own error.
func (f *Factory) AskEach(
	ctx context.Context, rankings Rankings, list *Problems, q ask.Question, write func(*ask.Ranking) error,
) error {
	done := make(chan struct{})
	defer close(done)
	rows := list.ahead(done)
	most := chunk
	if q.Top == 0 {
		most = chunkWhole
	}
	for {
		part, last := list.chunk(rows, most)
		if err := f.askAll(ctx, rankings, list, part, q, write); err != nil {
			return err
		}
		if err := f.Streams.Flush(); err != nil {
			return err
		}
		switch {
		case last.Bad != nil:
			list.Failures.addUnread(last.Bad)
		case errors.Is(last.End, io.EOF):
			return list.Failures.Err()
		case last.End != nil:
			return last.End
		}
	}
}

// ahead reads problems while others are answered. It stops behind the last row, or when it is told that all is done.
func (p *Problems) ahead(done <-chan struct{}) <-chan problems.Row {
	rows := make(chan problems.Row, chunk)
	go func() {
		unread := 0
		for {
			r := p.Next(unread >= mostUnread)
			if r.Bad != nil {
				unread++
			}
			select {
			case rows <- r:
			case <-done:
				return
			}
			if r.End != nil {
				return
			}
		}
	}()
	return rows
}

// chunk waits for a row and takes those that have been read behind it, up to most: rows that come slowly are answered
// one by one. It ends with a row that is no problem, which it returns too.
func (p *Problems) chunk(rows <-chan problems.Row, most int) (part []problems.Problem, last problems.Row) {
	for r := range rows {
		p.reached = r.Share
		if r.Bad != nil || r.End != nil {
			return part, r
		}
		if part = append(part, r.Problem); len(part) == most || len(rows) == 0 {
			break
		}
	}
	return part, problems.Row{}
}

// askAll answers a few problems.
func (f *Factory) askAll(
	ctx context.Context, rankings Rankings, list *Problems, part []problems.Problem, q ask.Question,
	write func(*ask.Ranking) error,
) error {
	if len(part) == 0 {
		return nil
	}
	q.Problems = problems.Shapes(part)
	answers, err := rankings(ctx, q)
	if err != nil {
		return err
	}
	for i := range answers {
		answers[i].Labels = ask.Labels(list.Labels(), part[i].Labels)
		switch err := answers[i].Err; {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			if err := write(&answers[i]); err != nil {
				return err
			}
		case part[i].Where == "":
			return err
		default:
			list.Failures.Add(part[i].Where, err)
		}
	}
	return nil
}
