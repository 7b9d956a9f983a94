package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/strictjson"
	"github.com/origami-gemm/origami/core/unit"
)

// A GPU that another process lends, over any stream of bytes, which has lines of JSON:
//
//	who brings the GPU   Offer
//	the borrower         Wanted
//	the lender           Lending
//	the borrower         an order: kernels to measure, one after the other or in turns, or a known kernel to time;
//	                     again and again
//	the lender           a record for each, as in a folder, and the end of the order
//
// The lender writes an empty line now and then, to show that it is there. It ends with the stream.

// Offer says how many more GPUs are to be had at once.
type Offer struct {
	More int `json:"more"`
}

// Wanted is what a GPU is borrowed for. Protocol is lendingProtocol.
type Wanted struct {
	Protocol int    `json:"protocol"`
	Executor string `json:"executor"`
	Arch     string `json:"arch"`
	WarmL2   bool   `json:"warm_l2"`
}

// Lending is what is lent: a GPU by its name in records, or an error.
type Lending struct {
	Protocol    int              `json:"protocol"`
	Name        string           `json:"name"`
	Device      exec.Device      `json:"device"`
	Version     string           `json:"executor_version"`
	Environment exec.Environment `json:"environment"`
	Error       *failure         `json:"error,omitempty"`
}

// lendingProtocol is the version of these lines. It changes with the version of records too.
const lendingProtocol = 2

// order asks for measurements, in turns if Turns, or, if Known, for the time of one known kernel.
type order struct {
	Conditions dataset.Conditions `json:"conditions"`
	Turns      bool               `json:"turns,omitempty"`
	Known      bool               `json:"known,omitempty"`
	New        bool               `json:"new,omitempty"` // the known kernel may not have run before
	Jobs       []ordered          `json:"jobs"`
}

// mostOrdered is how many jobs an order has at most. An order is a line, of which limit.Line bytes are read.
const mostOrdered = 1 << 12

// ordered is a configuration of a problem, with the best time of the problem so far.
type ordered struct {
	Problem gemm.Record  `json:"problem"`
	Config  gemm.Config  `json:"config"`
	Best    unit.Seconds `json:"best,omitempty"`
}

// ended is the end of an order. Its line begins with endMark, and no record does.
type ended struct {
	End   bool     `json:"end"`
	Error *failure `json:"error,omitempty"`
}

const endMark = `{"end":`

// failure is an error in a line.
type failure struct {
	Kind     diag.Kind `json:"kind"`
	What     string    `json:"what"`
	Where    string    `json:"where,omitempty"`
	Fix      string    `json:"fix,omitempty"`
	Died     bool      `json:"died,omitempty"`
	Nonsense bool      `json:"nonsense,omitempty"`
}

func failureOf(err error) *failure {
	d := (*diag.Error)(nil)
	if !errors.As(err, &d) {
		d = &diag.Error{What: err.Error()}
	}
	return &failure{Kind: diag.KindOf(err), What: d.What, Where: d.Where, Fix: d.Fix, Died: died(err),
		Nonsense: errors.Is(err, exec.ErrNonsense)}
}

func (f *failure) err() error {
	if f == nil {
		return nil
	}
	d := &diag.Error{Kind: f.Kind, What: f.What, Where: f.Where, Fix: f.Fix}
	switch {
	case f.Died:
		d.Err = exec.ErrDied
	case f.Nonsense:
		d.Err = exec.ErrNonsense
	}
	return d
}

// Lent is the executor of a GPU that is lent. It compiles nothing: a sweep on it sends what is to be measured, many
// kernels at once, and records come back. So the way there may be long.
type Lent struct {
	Lending
	Offer
	stream *stream
}

// ErrNotLent means that no GPU is lent any more.
var ErrNotLent = errors.New("no GPU is lent")

// silence is how long a lender may say nothing, and alive how often it shows that it is there. Records wait for others
// for the time together, since each message costs what brings the GPU, as Ray, far more than a record does.
const (
	silence  = time.Minute
	alive    = 5 * time.Second
	together = 100 * time.Millisecond
)

// Borrow waits until a GPU is lent. ErrNotLent says that none will be. The stream is closed with an error.
func Borrow(ctx context.Context, conn io.ReadWriteCloser, w Wanted) (*Lent, error) {
	l := &Lent{stream: newStream(conn)}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	err := l.greet(w)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

func (l *Lent) greet(w Wanted) error {
	if err := l.stream.read(&l.Offer); err != nil {
		return &diag.Error{Kind: diag.Device, What: ErrNotLent.Error(), Fix: "see to the GPUs and to who lends them",
			Err: ErrNotLent}
	}
	l.stream.name = "a GPU"
	w.Protocol = lendingProtocol
	if err := l.stream.write(&w); err != nil {
		return err
	}
	defer l.stream.watch()()
	switch err := l.stream.read(&l.Lending); {
	case err != nil:
		return err
	case l.Error != nil:
		return l.Error.err()
	case l.Protocol != lendingProtocol:
		return &diag.Error{Kind: diag.Plugin, What: "GPU " + l.Name + " is lent by another version of origami",
			Fix: "install one version on all machines"}
	}
	l.Name, l.Version = dataset.Text(l.Name, dataset.MaxName), dataset.Text(l.Version, dataset.MaxName)
	l.stream.name = "GPU " + l.Name
	return nil
}

// Devices implements exec.Executor.
func (l *Lent) Devices(context.Context) ([]exec.Device, error) { return []exec.Device{l.Device}, nil }

// Environment implements exec.Executor. It returns what was true when the GPU was lent.
func (l *Lent) Environment(context.Context, int) (exec.Environment, error) {
	return l.Lending.Environment, nil
}

// Compile implements exec.Executor.
func (l *Lent) Compile(context.Context, int, gemm.Problem, gemm.Config) (exec.Kernel, error) {
	return nil, notHere()
}

// Library implements exec.Executor.
func (l *Lent) Library(context.Context, int, gemm.Problem, string) (exec.Kernel, error) {
	return nil, notHere()
}

func notHere() error { return diag.Inputf("GPUs of other machines tune, and do nothing else") }

// Close gives the GPU back.
func (l *Lent) Close() error { return l.stream.conn.Close() }

// order sends an order, and passes each record on until the order ends.
func (l *Lent) order(ctx context.Context, o *order, got func(dataset.Measurement) error) error {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	err := l.fill(o, got)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (l *Lent) fill(o *order, got func(dataset.Measurement) error) error {
	missing := make(map[Job]int, len(o.Jobs))
	for i := range o.Jobs {
		p, err := o.Jobs[i].Problem.Problem()
		if err != nil {
			return err
		}
		c := o.Jobs[i].Config
		c.Kernel = o.Conditions.Kernel
		missing[Job{Problem: p, Config: c}]++
		if i == 0 && o.Turns {
			missing[Job{Problem: p, Config: c}]++ // the null arm
		}
	}
	if err := l.stream.write(o); err != nil {
		return err
	}
	defer l.stream.watch()()
	for {
		text, err := l.stream.next()
		switch {
		case err != nil:
			return err
		case bytes.HasPrefix(text, []byte(endMark)):
			var e ended
			if err := strictjson.Unmarshal(text, &e); err != nil {
				return l.stream.wrong(err)
			}
			if e.Error == nil && len(missing) > 0 {
				return l.stream.wrong(fmt.Errorf("%d measurements are missing", len(missing)))
			}
			return e.Error.err()
		}
		c, m, err := dataset.ParseLine(text)
		job := Job{Problem: m.Problem, Config: m.Config}
		switch {
		case err != nil:
			return l.stream.wrong(err)
		case c != o.Conditions || missing[job] == 0, (m.Phase == dataset.Final) != o.Turns:
			return l.stream.wrong(errors.New("it was not asked for"))
		}
		if missing[job]--; missing[job] == 0 {
			delete(missing, job)
		}
		if err := got(m); err != nil {
			return err
		}
	}
}

// measureAll is Sweep.measureAll on a GPU that is lent.
func (l *Lent) measureAll(
	ctx context.Context, s *Sweep, todo []dataset.Measurement, best map[gemm.Problem]unit.Seconds,
) error {
	o := &order{Conditions: s.Data.Conditions}
	size := 0
	send := func() error {
		err := l.order(ctx, o, func(m dataset.Measurement) error {
			if err := s.keep(m); err != nil {
				return err
			}
			if s.Done != nil {
				s.Done(m)
			}
			return nil
		})
		o.Jobs, size = nil, 0
		return err
	}
	for i, m := range todo {
		o.Jobs = append(o.Jobs, ordered{m.Problem.Record(), m.Config, best[m.Problem]})
		text, err := json.Marshal(&o.Jobs[len(o.Jobs)-1])
		if err != nil {
			return err
		}
		if size += len(text); size > limit.Line/2 || len(o.Jobs) == mostOrdered || i == len(todo)-1 {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeTurns is Sweep.takeTurns on a GPU that is lent.
func (l *Lent) takeTurns(ctx context.Context, s *Sweep, arms []arm) (block []dataset.Measurement, err error) {
	o := &order{Conditions: s.Data.Conditions, Turns: true}
	for _, a := range arms[:len(arms)-1] {
		o.Jobs = append(o.Jobs, ordered{a.m.Problem.Record(), a.m.Config, 0})
	}
	err = l.order(ctx, o, func(m dataset.Measurement) error {
		m.Block = arms[0].m.Block
		block = append(block, m)
		return nil
	})
	return block, err
}

// measureKnown is Sweep.measureKnown on a GPU that is lent.
func (l *Lent) measureKnown(ctx context.Context, s *Sweep, like dataset.Measurement, isNew bool) (
	known dataset.Measurement, err error,
) {
	o := &order{Conditions: s.Data.Conditions, Known: true, New: isNew,
		Jobs: []ordered{{like.Problem.Record(), like.Config, 0}}}
	err = l.order(ctx, o, func(m dataset.Measurement) error {
		known, known.GPU = m, like.GPU
		return nil
	})
	return known, err
}

// Lend serves a borrower until the stream ends, and then returns nil. open returns a sweep without Data and Keep, and
// what the borrower is told of the GPU.
func Lend(
	ctx context.Context, conn io.ReadWriteCloser, name string,
	open func(context.Context, Wanted) (*Sweep, Lending, error),
) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := newStream(conn)
	s.name = "the borrower"
	lines := make(chan []byte)
	go func() {
		defer stop()
		for {
			text, err := s.next()
			if err != nil {
				return
			}
			select {
			case lines <- bytes.Clone(text):
			case <-ctx.Done():
				return
			}
		}
	}()
	go func() { // while something is opened or measured, and between
		tick, still := time.NewTicker(together), 0
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				var text []byte
				if still++; still == int(alive/together) {
					text, still = []byte("\n"), 0
				}
				_ = s.send(text) // if it fails, so does the next line
			case <-ctx.Done():
				return
			}
		}
	}()
	var sweep *Sweep
	for {
		var text []byte
		select {
		case text = <-lines:
		case <-ctx.Done():
			return nil
		}
		if sweep == nil {
			var err error
			if sweep, err = s.lend(ctx, name, text, open); err != nil {
				return err
			}
		} else if err := s.serve(ctx, sweep, text); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// lend opens what is wanted.
func (s *stream) lend(
	ctx context.Context, name string, text []byte, open func(context.Context, Wanted) (*Sweep, Lending, error),
) (*Sweep, error) {
	var w Wanted
	if err := strictjson.Unmarshal(text, &w); err != nil || w.Protocol != lendingProtocol {
		return nil, errors.Join(s.write(&Lending{Name: name}), s.wrong(errors.New("its version of origami is another one")))
	}
	sweep, lending, err := open(ctx, w)
	lending.Protocol, lending.Name = lendingProtocol, name
	if err != nil {
		lending.Error = failureOf(err)
	}
	return sweep, errors.Join(err, s.write(&lending))
}

// serve does an order. The sweep knows nothing of what was measured before: the borrower does.
func (s *stream) serve(ctx context.Context, sweep *Sweep, text []byte) error {
	var o order
	if bytes.Count(text, []byte("{")) > 3*mostOrdered+2 { // a job is an object of two objects
		return s.wrong(fmt.Errorf("it has more than %d jobs", mostOrdered))
	}
	if err := strictjson.Unmarshal(text, &o); err != nil {
		return s.wrong(err)
	}
	sweep.Space.Kernel = o.Conditions.Kernel
	sweep.Data = dataset.New("", o.Conditions)
	sweep.Keep = func(ms ...dataset.Measurement) (err error) {
		var text []byte
		for i := range ms {
			if text, err = dataset.AppendLine(text, o.Conditions, &ms[i]); err != nil {
				return err
			}
		}
		s.later(text)
		return nil
	}
	todo, best := make([]dataset.Measurement, len(o.Jobs)), map[gemm.Problem]unit.Seconds{}
	for i := range o.Jobs {
		p, err := o.Jobs[i].Problem.Problem()
		if err = errors.Join(err, o.Jobs[i].Config.ValidateNumbers()); err != nil {
			return s.wrong(err)
		}
		todo[i] = dataset.Measurement{Problem: p, Config: o.Jobs[i].Config}
		todo[i].Config.Kernel = o.Conditions.Kernel
		best[p] = o.Jobs[i].Best
	}
	var err error
	switch {
	case o.Known && len(todo) == 1:
		var m dataset.Measurement
		if m, err = sweep.measureKnown(ctx, todo[0], o.New); err == nil {
			err = sweep.Keep(m)
		}
	case o.Turns && len(todo) > 0:
		var block []dataset.Measurement
		if block, err = sweep.takeTurns(ctx, sweep.arms(todo)); err == nil {
			for i := range block {
				block[i].Bound()
			}
			err = sweep.Keep(block...)
		}
	default:
		err = sweep.measureAll(ctx, todo, best)
	}
	end := ended{End: true}
	if err != nil {
		end.Error = failureOf(err)
	}
	return s.write(&end)
}

// stream has lines of JSON.
type stream struct {
	conn  io.ReadWriteCloser
	lines *limit.Lines
	name  string // whose the other end is
	mu    sync.Mutex
	// waiting are lines that are sent with the next ones, or after the time together.
	waiting []byte
	// quiet, if set, ends the stream when nothing was read for long. silent means that it did.
	quiet  *time.Timer
	silent atomic.Bool
}

func newStream(conn io.ReadWriteCloser) *stream {
	return &stream{conn: conn, lines: limit.NewLines(conn)}
}

// watch ends the stream if nothing is read for long, until the function that it returns is called.
func (s *stream) watch() (stop func()) {
	s.quiet = time.AfterFunc(silence, func() {
		s.silent.Store(true)
		_ = s.conn.Close()
	})
	return func() { s.quiet.Stop() }
}

// next returns the next line that is not empty, without its line feed.
func (s *stream) next() ([]byte, error) {
	for {
		text, err := s.lines.Next()
		switch {
		case errors.Is(err, limit.ErrLongLine):
			return nil, s.wrong(err)
		case err != nil:
			return nil, s.lost()
		}
		if s.quiet != nil {
			s.quiet.Reset(silence)
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			return text, nil
		}
	}
}

func (s *stream) read(v any) error {
	text, err := s.next()
	if err != nil {
		return err
	}
	if err := strictjson.Unmarshal(text, v); err != nil {
		return s.wrong(err)
	}
	return nil
}

func (s *stream) write(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.send(append(text, '\n'))
}

// later has whole lines written before the next others. The process ends soon if they cannot be.
func (s *stream) later(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, text...)
}

// send writes whole lines, after those that wait.
func (s *stream) send(text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, text...)
	if len(s.waiting) == 0 {
		return nil
	}
	_, err := s.conn.Write(s.waiting)
	if s.waiting = s.waiting[:0]; err != nil {
		return s.lost()
	}
	return nil
}

// lost is the error of a stream that ended. It hides EPIPE: the command takes EPIPE for the end of its own output.
func (s *stream) lost() error {
	what := s.name + " is gone"
	if s.silent.Load() {
		what = fmt.Sprintf("nothing was heard of %s for %v", s.name, silence)
	}
	return &diag.Error{Kind: diag.Plugin, What: what, Fix: "see to its machine"}
}

// wrong is the error of a line that cannot be right.
func (s *stream) wrong(err error) error {
	return &diag.Error{Kind: diag.Plugin, What: fmt.Sprintf("a line of %s cannot be right: %v", s.name, err),
		Fix: "install one version of origami on all machines", Err: exec.ErrNonsense}
}
