package wire

import (
	"context"
	"fmt"
	"math"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/internal/testing/must"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// pair connects a client to a server with a fake provider, over gRPC in memory. forge may change each answer.
type pair struct {
	client *Client
	conn   *grpc.ClientConn
	forge  func(proto.Message)
	call   string // whose answer is forged

	mu       sync.Mutex
	requests []proto.Message
}

func connect(t *testing.T) *pair { return connectTo(t, ArchService(fake.Provider{})) }

func connectTo(t *testing.T, service *Service) *pair {
	p := &pair{}
	server := grpc.NewServer(append(ServerOptions(), grpc.UnaryInterceptor(func(
		ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
	) (any, error) {
		p.mu.Lock()
		p.requests = append(p.requests, proto.Clone(req.(proto.Message)))
		p.mu.Unlock()
		resp, err := handle(ctx, req)
		if err == nil && p.forge != nil {
			forged := proto.Clone(resp.(proto.Message))
			p.call = info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
			p.forge(forged)
			return forged, nil
		}
		return resp, err
	}))...)
	service.Register(server)
	listener := bufconn.Listen(1 << 20)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	conn := must.Get(grpc.NewClient("passthrough:memory", append(DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return listener.DialContext(ctx)
		}))...))(t)
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		served.Wait()
	})
	p.client, p.conn = NewClient("forger", conn), conn
	return p
}

func (p *pair) open(t *testing.T) *Architecture {
	t.Helper()
	a := must.Get(p.client.Open(t.Context(), arch.OpenRequest{Arch: "fake"}))(t)
	return a
}

var problem = gemm.New(1000, 2000, 3000)

// read reads an answer.
func read[T any](text []byte, checks ...func(*T) error) (T, error) {
	return unmarshal(text, MaxShortAnswerMemory, checks...)
}

// rewrite changes the JSON of an answer.
func rewrite[T any](m proto.Message, change func(*T)) {
	var text *[]byte
	switch m := m.(type) {
	case *pb.Json:
		text = &m.Json
	case *pb.OpenResponse:
		text = &m.Json
	}
	v, err := read[T](*text)
	if err != nil {
		panic(err)
	}
	change(&v)
	*text = marshal(&v)
}

func callAll(ctx context.Context, c *Client, a *Architecture) map[string]error {
	errs := map[string]error{}
	_, errs["Info"] = c.Info(ctx)
	_, errs["Manifest"] = c.Manifest(ctx)
	_, errs["Open"] = c.Open(ctx, arch.OpenRequest{Arch: "fake"})
	_, errs["Candidates"] = a.Candidates(ctx, problem, arch.Space{})
	cfgs := []gemm.Config{{BlockM: 1, Kernel: "one"}, {BlockM: 2, Kernel: "two"}, {BlockM: 3, Kernel: "two"},
		{BlockM: 4, Kernel: "one"}, {BlockM: 5, Kernel: "one"}}
	errs["Estimate"] = a.Estimate(ctx, make([]arch.Estimate, len(cfgs)), problem, cfgs)
	errs["Terms"] = a.Terms(ctx, make([]float64, len(cfgs)*len(a.Describe().Terms)), problem, cfgs)
	_, errs["Mapping"] = a.Mapping(ctx, problem, cfgs[0])
	_, errs["Rank"] = a.Rank(ctx, selector.Request{Problems: []gemm.Problem{problem}, Top: 5})
	return errs
}

// What a plugin may get wrong, it gets wrong here; the client must see each.
func TestForgedAnswersAreRefused(t *testing.T) {
	forgeries := map[string]func(proto.Message){}
	forge := func(call, what string, f func(m proto.Message)) { forgeries[call+"/"+what] = f }
	for what, text := range map[string]string{
		"unknown key": `{"name":"n","health":1}`, "key twice": `{"name":"n","name":"m"}`, "null": `null`,
		"null inside": `{"name":"n","version":null}`, "another case": `{"Name":"n"}`,
		"two values": `{"name":"n"}{"name":"n"}`, "another type": `{"name":["n"]}`, "no end": `{"name":"n"`,
		"a comma more": `{"name":"n",}`, "no UTF-8": "{\"name\":\"\xff\"}",
		"two lines": "{\"name\":\"n\n\"}", "a wrong escape": `{"name":"\x"}`,
	} {
		forge("Info", what, func(m proto.Message) { m.(*pb.Json).Json = []byte(text) })
	}
	forge("Info", "empty", func(m proto.Message) { proto.Reset(m) })

	manifest := func(what string, f func(*arch.Manifest)) {
		forge("Manifest", what, func(m proto.Message) { rewrite(m, f) })
	}
	manifest("arch without models", func(m *arch.Manifest) { m.Archs[0].Models = nil })
	manifest("arch without kernels", func(m *arch.Manifest) { m.Archs[0].Kernels = nil })
	manifest("arch without devices", func(m *arch.Manifest) { m.Archs[0].Devices = nil })
	forge("Manifest", "empty", func(m proto.Message) { proto.Reset(m) })

	open := func(what string, f func(*opening)) {
		forge("Open", what, func(m proto.Message) { rewrite(m, f) })
	}
	forge("Open", "no handle", func(m proto.Message) { m.(*pb.OpenResponse).Handle = nil })
	forge("Open", "no description", func(m proto.Message) { m.(*pb.OpenResponse).Json = nil })
	open("no levels", func(m *opening) { m.Levels = nil })
	open("no kernels", func(m *opening) { m.Description.Kernels = nil })
	open("error range from 2 to 1", func(m *opening) {
		m.Description.Uncertainty[0].Ranges[0].Low, m.Description.Uncertainty[0].Ranges[0].High = 2, 1
	})
	open("a widening of 0.5", func(m *opening) { m.Description.Uncertainty[0].Widening = 0.5 })
	open("a range of k", func(m *opening) { m.Description.Uncertainty[0].Checked.K.High = 1 })
	open("major", func(m *opening) { m.Description.Uncertainty[0].Checked.Layouts[0].AMajor = 77 })

	candidates := func(what string, f func(*pb.CandidatesResponse)) {
		forge("Candidates", what, func(m proto.Message) { f(m.(*pb.CandidatesResponse)) })
	}
	candidates("short column", func(m *pb.CandidatesResponse) { m.Configs.NumStages = m.Configs.NumStages[1:] })
	candidates("long column", func(m *pb.CandidatesResponse) { m.Rejected.GroupM = append(m.Rejected.GroupM, 1) })
	candidates("no kernels", func(m *pb.CandidatesResponse) { m.Configs.Kernels = nil })
	candidates("kernel index", func(m *pb.CandidatesResponse) { m.Configs.Kernel[0] = 2 })
	candidates("kernel count", func(m *pb.CandidatesResponse) { m.Configs.Kernel = m.Configs.Kernel[1:] })
	candidates("reason index", func(m *pb.CandidatesResponse) { m.Reasons[0] = 1 << 31 })
	candidates("reason empty", func(m *pb.CandidatesResponse) { m.ReasonNames[0] = "" })
	candidates("details", func(m *pb.CandidatesResponse) { m.Details = nil })
	candidates("positions", func(m *pb.CandidatesResponse) { m.Positions = m.Positions[2:] })
	candidates("position order", func(m *pb.CandidatesResponse) { m.Positions[1] = m.Positions[0] })
	candidates("position beyond", func(m *pb.CandidatesResponse) { m.Positions[len(m.Positions)-1] = 1 << 40 })
	candidates("position negative", func(m *pb.CandidatesResponse) { m.Positions[0] = -1 })

	estimate := func(what string, f func(*pb.EstimateResponse)) {
		forge("Estimate", what, func(m proto.Message) {
			// Start from an answer without rejections.
			e := m.(*pb.EstimateResponse)
			for i := range e.Cycles {
				e.Cycles[i], e.Bounds[i] = float64(i+1), 1
			}
			e.Rejected, e.Reasons, e.ReasonNames = nil, nil, nil
			f(e)
		})
	}
	estimate("too few", func(m *pb.EstimateResponse) { m.Cycles, m.Bounds = m.Cycles[1:], m.Bounds[1:] })
	estimate("too many", func(m *pb.EstimateResponse) { m.Cycles, m.Bounds = append(m.Cycles, 1), append(m.Bounds, 1) })
	estimate("bounds", func(m *pb.EstimateResponse) { m.Bounds = nil })
	estimate("empty", func(m *pb.EstimateResponse) { proto.Reset(m) })
	estimate("NaN", func(m *pb.EstimateResponse) { m.Cycles[1] = math.NaN() })
	estimate("infinite", func(m *pb.EstimateResponse) { m.Cycles[1] = math.Inf(1) })
	for _, v := range []float64{0, -1, 5e-324, 1e-200, 1e200, math.MaxFloat64} {
		estimate(fmt.Sprint(v), func(m *pb.EstimateResponse) { m.Cycles[1] = v })
		forge("Rank", fmt.Sprint(v), func(m proto.Message) { m.(*pb.RankResponse).Rankings[0].Cycles[4] = v })
	}
	estimate("bound", func(m *pb.EstimateResponse) { m.Bounds[1] = 77 })
	estimate("reject index", func(m *pb.EstimateResponse) {
		m.Rejected, m.Reasons, m.ReasonNames = []uint32{5}, []uint32{0}, []string{"x"}
	})
	estimate("reject reason", func(m *pb.EstimateResponse) { m.Rejected, m.Reasons = []uint32{1}, []uint32{0} })
	estimate("reject count", func(m *pb.EstimateResponse) { m.Rejected, m.ReasonNames = []uint32{1}, []string{"x"} })
	estimate("rejected with total", func(m *pb.EstimateResponse) {
		m.Rejected, m.Reasons, m.ReasonNames = []uint32{1}, []uint32{0}, []string{"x"}
	})

	forge("Terms", "too few", func(m proto.Message) { r := m.(*pb.TermsResponse); r.Values = r.Values[1:] })
	forge("Terms", "too many", func(m proto.Message) { r := m.(*pb.TermsResponse); r.Values = append(r.Values, 0) })
	forge("Terms", "empty", func(m proto.Message) { proto.Reset(m) })

	forge("Mapping", "negative", func(m proto.Message) { m.(*pb.MappingResponse).Chunk = -1 })

	rank := func(what string, f func(*pb.Ranking)) {
		forge("Rank", what, func(m proto.Message) { f(m.(*pb.RankResponse).Rankings[0]) })
	}
	rank("NaN", func(r *pb.Ranking) { r.Cycles[0] = math.NaN() })
	rank("bound", func(r *pb.Ranking) { r.Bounds[0] = 200 })
	rank("index", func(r *pb.Ranking) { r.Index[0] = -1 })
	rank("indices", func(r *pb.Ranking) { r.Index = nil })
	rank("dies", func(r *pb.Ranking) { r.Chunk = r.Chunk[1:] })
	rank("negative die", func(r *pb.Ranking) { r.Xcds[1] = -1 })
	rank("negative size", func(r *pb.Ranking) { r.Configs.NumWarps[1] = -4 })
	rank("configs", func(r *pb.Ranking) { r.Configs.BlockN = nil })
	rank("feasible", func(r *pb.Ranking) { r.Feasible = 4 })
	rank("feasible negative", func(r *pb.Ranking) { r.Feasible = -1 })
	rank("reason", func(r *pb.Ranking) { r.Rejected[0].Reason = "" })
	rank("reason count", func(r *pb.Ranking) { r.Rejected[0].Count = 0 })
	rank("no answer", func(r *pb.Ranking) { proto.Reset(r) })
	forge("Rank", "too few", func(m proto.Message) { m.(*pb.RankResponse).Rankings = nil })
	forge("Rank", "too many", func(m proto.Message) {
		r := m.(*pb.RankResponse)
		r.Rankings = append(r.Rankings, r.Rankings[0])
	})

	p := connect(t)
	a := p.open(t)
	p.refuses(t, forgeries, func() map[string]error { return callAll(t.Context(), p.client, a) })
}

// refuses makes each forgery in the call that its name begins with, and checks that the client sees it.
func (p *pair) refuses(t *testing.T, forgeries map[string]func(proto.Message), call func() map[string]error) {
	t.Helper()
	for name, err := range call() {
		must.Need(t, err == nil, "%s without forgery: %v", name, err)
	}
	for name, f := range forgeries {
		op, _, _ := strings.Cut(name, "/")
		hit := false
		p.forge = func(m proto.Message) {
			if p.call == op {
				hit = true
				f(m)
			}
		}
		err := call()[op]
		must.That(t, hit, "%s: nothing was forged", name)
		must.That(t, diag.KindOf(err) == diag.Plugin && err != nil &&
			strings.HasPrefix(err.Error(), "plugin forger: "+op+" answered nonsense: "), "%s: got %v", name, err)
	}
}
