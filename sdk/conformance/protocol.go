package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
	"github.com/origami-gemm/origami/sdk/wire"
)

// unheld is a handle, or the hash of a list, that the plugin does not know.
var unheld = bytes.Repeat([]byte{0x5a}, 32)

// direct is a case for calls without the client, which repairs and checks too much. It is open under the handle.
type direct struct {
	*testcase
	pb.ArchServiceClient
	handle  []byte
	message *pb.Problem
	config  *pb.Configs
}

func (r *run) direct() (*direct, error) {
	c, err := r.firstAnswered()
	if err != nil {
		return nil, err
	}
	client := pb.NewArchServiceClient(r.conn)
	opened, err := client.Open(r, wire.OpenMessage(c.request))
	return &direct{c, client, opened.GetHandle(), wire.ProblemMessage(c.problem),
		wire.ConfigMessage(c.candidates.Configs[0])}, err
}

// fault is the error of a call whose answer does not matter.
func fault(_ any, err error) error { return err }

// checkMissing makes the calls of a host to a plugin that has restarted or dropped its state.
func checkMissing(r *run, c *direct) {
	set, p := &pb.ConfigSet{Sha256: unheld}, c.message
	estimate := func(h []byte) error {
		return fault(c.Estimate(r, &pb.EstimateRequest{Handle: h, Problem: p, Configs: set}))
	}
	terms := func(h []byte) error {
		return fault(c.Terms(r, &pb.TermsRequest{Handle: h, Problem: p, Configs: set}))
	}
	for _, call := range []named[error]{
		{"Candidates", fault(c.Candidates(r, &pb.CandidatesRequest{Handle: unheld, Problem: p}))},
		{"Estimate", estimate(unheld)},
		{"Terms", terms(unheld)},
		{"Mapping", fault(c.Mapping(r, &pb.MappingRequest{Handle: unheld, Problem: p, Config: c.config}))},
		{"Rank", fault(c.Rank(r, &pb.RankRequest{Handle: unheld, Problems: []*pb.Problem{p}, Top: 1}))},
	} {
		if call.what != "Rank" || status.Code(call.value) != codes.Unimplemented {
			r.missing(call.what+" of a handle that is not held", call.value, pb.Missing_RESOURCE_HANDLE)
		}
	}
	const list = " of a configuration list that is not held"
	r.missing("Estimate"+list, estimate(c.handle), pb.Missing_RESOURCE_CONFIGS)
	r.missing("Terms"+list, terms(c.handle), pb.Missing_RESOURCE_CONFIGS)
	r.fails(fault(c.Close(r, &pb.CloseRequest{Handle: unheld})), "closing a handle that is not held fails")
}

// missing adds a finding unless an error is status NOT_FOUND with the detail Missing.
func (f *findings) missing(what string, err error, want pb.Missing_Resource) {
	s := status.Convert(err)
	got := pb.Missing_RESOURCE_UNSPECIFIED
	for _, detail := range s.Details() {
		if m, ok := detail.(*pb.Missing); ok {
			got = m.GetResource()
		}
	}
	f.when(s.Code() != codes.NotFound || got != want, "%s: it answers %s with the detail %s, not %s with %s: %s", what,
		s.Code(), got, codes.NotFound, want, s.Message())
}

// checkFields sends what a later version might send: unknown fields, and unknown enum values.
func checkFields(r *run, c *direct) {
	plain := &pb.CandidatesRequest{Handle: c.handle, Problem: c.message, SpaceJson: wire.SpaceJSON(c.space())}
	later := proto.CloneOf(plain)
	later.ProtoReflect().SetUnknown(unknownField)
	later.Problem.ProtoReflect().SetUnknown(unknownField)
	want, err1 := c.Candidates(r, plain)
	got, err2 := c.Candidates(r, later)
	r.when(err1 != nil || err2 != nil || !proto.Equal(got, want),
		"with a field that it does not know, Candidates gives another answer (%v, %v)", err1, err2)
	for _, odd := range []named[func(*pb.Problem)]{
		{"an element type that no version has", func(p *pb.Problem) { p.ElementType = 99 }},
		{"a storage order that no version has", func(p *pb.Problem) { p.AMajor = 99 }},
		{"a storage order below all of them", func(p *pb.Problem) { p.BMajor = -1 }},
		{"an element type below all of them", func(p *pb.Problem) { p.ElementType = -1 }},
		{"a storage order of the other matrix", func(p *pb.Problem) { p.AMajor = pb.Major_MAJOR_N }},
	} {
		problem := proto.CloneOf(c.message)
		odd.value(problem)
		err := fault(c.Estimate(r, &pb.EstimateRequest{Handle: c.handle, Problem: problem,
			Configs: &pb.ConfigSet{Sha256: unheld, Configs: c.config}}))
		r.when(status.Code(err) == codes.OK || status.Code(err) == codes.Unavailable, "Estimate with %s: %v", odd.what, err)
	}
}

// unknownField is field 4095, a varint of 1.
var unknownField = []byte{0xf8, 0xff, 0x01, 0x01}

// The least configurations and problems, about, that exceed one call of the client.
const aboveConfigs, aboveProblems = 33_000, 260

// many is a request for n problems, each larger than the one before it by grow.
func (c *testcase) many(n, top int, grow func(p *gemm.Problem, i int)) selector.Request {
	q := selector.Request{Space: c.space(), Top: top, Problems: make([]gemm.Problem, n)}
	for i := range q.Problems {
		q.Problems[i] = c.problem
		grow(&q.Problems[i], i)
	}
	return q
}

// checkLarge asks for numbers of configurations and problems that exceed several calls of the client.
func checkLarge(r *run, c *testcase) {
	configs, problems := 100_000, 1000
	if r.Short {
		configs, problems = aboveConfigs, aboveProblems
	}
	c.compare(r, &r.findings, c.Architecture, fmt.Sprintf("in a list of %d", configs), c.positions(configs))
	q := c.many(problems, 1, func(p *gemm.Problem, i int) { p.M += i })
	results, err := c.Rank(r, q)
	if status.Code(err) == codes.Unimplemented || r.fails(err, "%s: %d problems", c.target, problems) {
		return
	}
	for _, i := range []int{0, problems / 2, problems - 1} {
		few := selector.Request{Space: q.Space, Top: q.Top, Problems: q.Problems[i : i+1]}
		want, err := selector.Rank(r, here{c.Architecture}, few)
		if !r.fails(err, "%s, %s", c.target, few.Problems[0]) {
			what := differ(&results[i], &want[0])
			r.when(what != "", "%s, %s among %d problems: %s", c.target, few.Problems[0], problems, what)
		}
	}
}

// checkConcurrent makes the same requests from several goroutines, which also open and close architectures.
func checkConcurrent(r *run, cases []*testcase) {
	const workers = 8
	how := fmt.Sprintf("asked %d times at once", workers)
	cases = spread(cases, 24)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range cases {
				c := cases[(i+w*len(cases)/workers)%len(cases)]
				a, err := r.client.Open(r, c.request)
				if r.fails(err, "%s, %s", c, how) {
					continue
				}
				c.compare(r, &r.findings, a, how, c.all())
				if w%4 == 0 {
					r.fails(a.Close(r), "%s, %s", c, how)
				}
			}
		})
	}
	wg.Wait()
}

// promptly is the time limit of a cancelled call on a busy machine.
const promptly = 5 * time.Second

// cancels cancels a call after a time, and adds a finding unless the call then returns promptly with the context's
// error. A call that ends by itself may succeed before.
func (r *run) cancels(what string, after time.Duration, endless bool, call func(context.Context) error) {
	cancelled, cancel := context.WithCancel(r)
	defer cancel()
	if after == 0 {
		cancel()
	}
	stop := time.AfterFunc(after, cancel)
	defer stop.Stop()
	begin := time.Now()
	err := call(cancelled)
	late := time.Since(begin) - after
	_ = r.when(late > promptly, "%s returns %v after it was cancelled", what, late.Round(time.Millisecond)) ||
		r.when(err == nil && (endless || after == 0), "%s succeeds though it is cancelled", what) ||
		r.when(err != nil && !errors.Is(err, context.Canceled), "%s, cancelled after %v, fails with another error: %v", what,
			after.Round(time.Microsecond), err)
}

// checkCancel cancels before and during long calls, and then calls again.
func checkCancel(r *run, c *testcase) {
	list := c.configs(c.positions(aboveConfigs))
	est := make([]arch.Estimate, len(list))
	many := c.many(aboveProblems, 0, func(p *gemm.Problem, i int) { p.K += i })
	for _, call := range []named[func(context.Context) error]{
		{"Estimate", func(ctx context.Context) error { return c.Estimate(ctx, est, c.problem, list) }},
		{"Rank", func(ctx context.Context) error { return fault(c.Rank(ctx, many)) }},
	} {
		err := call.value(r)
		begin := time.Now()
		if err == nil { // the second time the plugin has the list
			err = call.value(r)
		}
		whole := time.Since(begin)
		if err != nil {
			continue // checkLarge reports it
		}
		for _, after := range []time.Duration{0, whole / 4, whole / 2} {
			r.cancels(fmt.Sprintf("%s: %s", c.target, call.what), after, false, call.value)
		}
	}
	again, cancel := context.WithTimeout(r, promptly+callTimeout/3)
	defer cancel()
	c.compare(again, &r.findings, c.Architecture, "after cancelled calls", c.all())
}

const (
	timedConfigs = 1000
	timedLimit   = 5 * time.Millisecond
	timedTries   = 20
	// timedPatience is how long a slow answer is tried again: other processes may keep the machine busy.
	timedPatience = time.Second
)

// checkSpeed takes the fastest of several tries: other load can only make a try slower.
func checkSpeed(r *run) {
	if r.skip(r.Untimed, "times are not measured: by request or under the race detector") {
		return
	}
	each((*run).byTarget, func(r *run, group []*testcase) {
		c := group[0]
		configs := c.configs(c.positions(timedConfigs))
		est := make([]arch.Estimate, len(configs))
		fastest := time.Duration(math.MaxInt64)
		start := time.Now()
		for try := 0; try < 5 ||
			fastest >= timedLimit && (try < timedTries || time.Since(start) < timedPatience); try++ {
			begin := time.Now()
			if r.stop(c.Estimate(r, est, c.problem, configs)) {
				return
			}
			fastest = min(fastest, time.Since(begin))
		}
		r.when(fastest >= timedLimit, "%s: %d configurations take %v at best, the limit is %v", c, len(configs),
			fastest.Round(10*time.Microsecond), timedLimit)
	})(r)
}
