package session

import (
	"context"
	"errors"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/core/diag"
)

// Failures are the problems of a list that could not be answered. Each is reported when it occurs and does not stop the
// others. In the end they decide the exit code.
type Failures struct {
	ctx     context.Context
	streams *iostreams.Streams
	first   error
	// unread counts the rows of the problems file that could not be read.
	unread int
	file   string
}

// mostUnread is how many rows that cannot be read are reported. Further ones are counted: a file that is not what it
// should be can have millions, and the first ones say why.
const mostUnread = 20

// Failures returns an empty list.
func (f *Factory) Failures(ctx context.Context) *Failures {
	return &Failures{ctx: ctx, streams: f.Streams}
}

// Add reports an error in one problem. where is its row in the problems file. An error after an interrupt is not about
// the problem, and is not reported.
func (f *Failures) Add(where string, err error) {
	if f.ctx.Err() != nil {
		return
	}
	err = diag.Within(where, err)
	f.streams.Report(err)
	if f.first == nil {
		f.first = err
	}
}

// addUnread reports a row that cannot be read, or only counts it.
func (f *Failures) addUnread(err error) {
	if f.unread++; f.unread > mostUnread {
		return
	}
	f.Add("", err)
	if f.unread == 1 && f.ctx.Err() == nil {
		f.first = err // a file that is wrong decides the exit code
	}
}

// First returns why the first problem has no answer, nil if nothing failed.
func (f *Failures) First() error { return errors.Join(f.ctx.Err(), f.first) }

// Err returns nil if nothing failed, and otherwise an error that has been reported and carries the exit code. Call it
// once, at the end.
func (f *Failures) Err() error {
	if err := f.ctx.Err(); err != nil {
		return err
	}
	if more := f.unread - mostUnread; more > 0 {
		f.streams.Report(&ask.Counted{Count: more, Err: diag.Inputf("%d more rows cannot be read", more).
			At("%s", f.file).Do("correct the rows above first")})
	}
	if f.first == nil {
		return nil
	}
	return &iostreams.Reported{Err: f.first}
}
