package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

func (s *subject) direct(ctx context.Context) (*direct, error) {
	c, err := s.firstAnswered(ctx)
	if err != nil {
		return nil, err
	}
	client := pb.NewArchServiceClient(s.conn)
	opened, err := client.Open(ctx, openMessage(c.request))
	return &direct{c, client, opened.GetHandle(), wireProblem(c.problem),
		wire.ConfigMessage(c.candidates.Configs[0])}, err
}

func openMessage(r arch.OpenRequest) *pb.OpenRequest {
	return &pb.OpenRequest{Arch: r.Arch, Device: r.Device, Model: r.Model, Kernel: r.Kernel}
}

// checkMissing makes the calls of a host to a plugin that has restarted or dropped its state.
func checkMissing(ctx context.Context, _ *subject, found *findings, c *direct) error {
	set := &pb.ConfigSet{Sha256: unheld}
	calls := map[string]func(handle []byte) error{
		"Candidates": func(h []byte) error {
			_, err := c.Candidates(ctx, &pb.CandidatesRequest{Handle: h, Problem: c.message})
			return err
		},
		"Estimate": func(h []byte) error {
			_, err := c.Estimate(ctx, &pb.EstimateRequest{Handle: h, Problem: c.message, Configs: set})
			return err
		},
		"Terms": func(h []byte) error {
			_, err := c.Terms(ctx, &pb.TermsRequest{Handle: h, Problem: c.message, Configs: set})
			return err
		},
		"Mapping": func(h []byte) error {
			_, err := c.Mapping(ctx, &pb.MappingRequest{Handle: h, Problem: c.message, Config: c.config})
			return err
		},
		"Rank": func(h []byte) error {
			_, err := c.Rank(ctx, &pb.RankRequest{Handle: h, Problems: []*pb.Problem{c.message}, Top: 1})
			return err
		},
	}
	for _, call := range []string{"Candidates", "Estimate", "Terms", "Mapping", "Rank"} {
		err := calls[call](unheld)
		if call == "Rank" && status.Code(err) == codes.Unimplemented {
			continue
		}
		found.missing(call+" of a handle that is not held", err, pb.Missing_RESOURCE_HANDLE)
	}
	for _, call := range []string{"Estimate", "Terms"} {
		found.missing(call+" of a configuration list that is not held", calls[call](c.handle),
			pb.Missing_RESOURCE_CONFIGS)
	}
	if _, err := c.Close(ctx, &pb.CloseRequest{Handle: unheld}); err != nil {
		found.add("closing a handle that is not held fails: %s", err)
	}
	return nil
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
	if s.Code() != codes.NotFound || got != want {
		f.add("%s: it answers %s with the detail %s, not %s with %s: %s", what, s.Code(), got, codes.NotFound, want,
			s.Message())
	}
}

func wireProblem(p gemm.Problem) *pb.Problem {
	q := &pb.Problem{M: int64(p.M), N: int64(p.N), K: int64(p.K), Batch: int64(p.Batch), AMajor: pb.Major_MAJOR_K,
		BMajor: pb.Major_MAJOR_N, ElementType: pb.ElementType(p.DType)}
	if p.TransA() {
		q.AMajor = pb.Major_MAJOR_M
	}
	if p.TransB() {
		q.BMajor = pb.Major_MAJOR_K
	}
	return q
}

// checkFields sends what a later version might send: unknown fields, and unknown enum values.
func checkFields(ctx context.Context, _ *subject, found *findings, c *direct) error {
	plain := &pb.CandidatesRequest{Handle: c.handle, Problem: c.message, Space: &pb.Space{Kernel: c.kernel}}
	later := proto.CloneOf(plain)
	later.ProtoReflect().SetUnknown(unknownField)
	later.Problem.ProtoReflect().SetUnknown(unknownField)
	want, err1 := c.Candidates(ctx, plain)
	got, err2 := c.Candidates(ctx, later)
	if err1 != nil || err2 != nil || !proto.Equal(got, want) {
		found.add("with a field that it does not know, Candidates gives another answer (%v, %v)", err1, err2)
	}
	for _, odd := range []struct {
		what   string
		change func(*pb.Problem)
	}{
		{"an element type that no version has", func(p *pb.Problem) { p.ElementType = 99 }},
		{"a storage order that no version has", func(p *pb.Problem) { p.AMajor = 99 }},
		{"a storage order below all of them", func(p *pb.Problem) { p.BMajor = -1 }},
		{"an element type below all of them", func(p *pb.Problem) { p.ElementType = -1 }},
		{"a storage order of the other matrix", func(p *pb.Problem) { p.AMajor = pb.Major_MAJOR_N }},
	} {
		problem := proto.CloneOf(c.message)
		odd.change(problem)
		_, err := c.Estimate(ctx, &pb.EstimateRequest{Handle: c.handle, Problem: problem,
			Configs: &pb.ConfigSet{Sha256: unheld, Configs: c.config}})
		if status.Code(err) == codes.OK || status.Code(err) == codes.Unavailable {
			found.add("Estimate with %s: %v", odd.what, err)
		}
	}
	return nil
}

// unknownField is field 4095, a varint of 1.
var unknownField = []byte{0xf8, 0xff, 0x01, 0x01}

// The least configurations and problems, about, that exceed one call of the client.
const aboveConfigs, aboveProblems = 33_000, 260

// large returns numbers of configurations and problems that exceed several calls of the client.
func (s *subject) large() (configs, problems int) {
	if s.Short {
		return aboveConfigs, aboveProblems
	}
	return 100_000, 1000
}

func checkLarge(ctx context.Context, s *subject, found *findings, c *testcase) error {
	configs, problems := s.large()
	list := repeated(c.candidates.Configs, configs)
	est, order := make([]arch.Estimate, len(list)), make([]int, len(list))
	for i := range order {
		order[i] = i % len(c.candidates.Configs)
	}
	if err := c.Estimate(ctx, est, c.problem, list); err != nil {
		found.add("%s: %d configurations: %s", c, len(list), err)
	} else {
		compare(found, c, fmt.Sprintf("in a list of %d", len(list)), est, order)
	}
	r := selector.Request{Space: c.space(), Top: 1, Problems: make([]gemm.Problem, problems)}
	for i := range r.Problems {
		r.Problems[i] = c.problem
		r.Problems[i].M += i
	}
	results, err := c.Rank(ctx, r)
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	if err != nil {
		found.add("%s: %d problems: %s", c.target, problems, err)
		return nil
	}
	for _, i := range []int{0, problems / 2, problems - 1} {
		few := selector.Request{Space: r.Space, Top: r.Top, Problems: r.Problems[i : i+1]}
		want, err := selector.Rank(ctx, here{c.Architecture}, few)
		if err != nil {
			found.add("%s, %s: %s", c.target, few.Problems[0], err)
		} else if what := differ(&results[i], &want[0]); what != "" {
			found.add("%s, %s among %d problems: %s", c.target, few.Problems[0], problems, what)
		}
	}
	return nil
}

// checkConcurrent makes the same requests from several goroutines, which also open and close architectures.
func checkConcurrent(ctx context.Context, s *subject, found *findings, cases []*testcase) error {
	const workers = 8
	cases = spread(cases, 24)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range cases {
				c := cases[(i+w*len(cases)/workers)%len(cases)]
				a, err := s.client.Open(ctx, c.request)
				est := make([]arch.Estimate, len(c.estimates))
				if err == nil {
					err = a.Estimate(ctx, est, c.problem, c.candidates.Configs)
				}
				if err == nil && w%4 == 0 {
					err = a.Close(ctx)
				}
				if err != nil {
					found.add("%s, asked %d times at once: %s", c, workers, err)
				} else {
					compare(found, c, fmt.Sprintf("asked %d times at once", workers), est, identity(len(est)))
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// promptly is the time limit of a cancelled call on a busy machine.
const promptly = 5 * time.Second

// checkCancel cancels before and during long calls, and then calls again.
func checkCancel(ctx context.Context, _ *subject, found *findings, c *testcase) error {
	configs, problems := aboveConfigs, aboveProblems
	list := repeated(c.candidates.Configs, configs)
	est := make([]arch.Estimate, len(list))
	many := selector.Request{Space: c.space(), Problems: make([]gemm.Problem, problems)}
	for i := range many.Problems {
		many.Problems[i] = c.problem
		many.Problems[i].K += i
	}
	calls := []struct {
		name string
		call func(context.Context) error
	}{
		{"Estimate", func(ctx context.Context) error { return c.Estimate(ctx, est, c.problem, list) }},
		{"Rank", func(ctx context.Context) error { _, err := c.Rank(ctx, many); return err }},
	}
	for _, call := range calls {
		var whole time.Duration
		var err error
		for range 2 { // the second time the plugin has the list
			begin := time.Now()
			if err = call.call(ctx); err != nil {
				break
			}
			whole = time.Since(begin)
		}
		if err != nil {
			continue // checkLarge reports it
		}
		for _, after := range []time.Duration{0, whole / 4, whole / 2} {
			cancelled, cancel := context.WithCancel(ctx)
			if after == 0 {
				cancel()
			}
			stop := time.AfterFunc(after, cancel)
			begin := time.Now()
			err := call.call(cancelled)
			late := time.Since(begin) - after
			stop.Stop()
			cancel()
			switch {
			case late > promptly:
				found.add("%s: %s returns %v after it was cancelled", c.target, call.name, late.Round(time.Millisecond))
			case err == nil && after == 0:
				found.add("%s: %s succeeds though it is cancelled", c.target, call.name)
			case err != nil && !errors.Is(err, context.Canceled):
				found.add("%s: %s, cancelled after %v, fails with another error: %s", c.target, call.name,
					after.Round(time.Microsecond), err)
			}
		}
	}
	again, cancel := context.WithTimeout(ctx, promptly+callTimeout/3)
	got := make([]arch.Estimate, len(c.estimates))
	if err := c.Estimate(again, got, c.problem, c.candidates.Configs); err != nil {
		found.add("%s: after cancelled calls: %s", c, err)
	} else {
		compare(found, c, "after cancelled calls", got, identity(len(got)))
	}
	cancel()
	return nil
}
