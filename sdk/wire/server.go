package wire

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// Service is what a plugin serves beside BaseService: architectures, or an executor.
type Service struct {
	provider any
	// describe fills in what the plugin provides, and who it is.
	describe func(*Description)
	register func(grpc.ServiceRegistrar)
	close    func() error
}

// ArchService serves the architectures of a provider.
func ArchService(p arch.Provider) *Service {
	return &Service{
		provider: p,
		describe: func(d *Description) {
			m := p.Manifest()
			d.Manifest, d.Info = &m, Info{Name: m.Name, Version: m.Version}
		},
		register: func(r grpc.ServiceRegistrar) { pb.RegisterArchServiceServer(r, &archServer{provider: p}) },
		close:    func() error { return nil },
	}
}

// Register registers the service on a gRPC server, with BaseService.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	pb.RegisterBaseServiceServer(r, &baseServer{service: s})
	s.register(r)
}

// HealthChecker may be implemented by a provider that can be unable to work, for want of a device for example. The
// error says why.
type HealthChecker interface {
	Health(ctx context.Context) error
}

// Describe returns what the plugin answers to "describe".
func (s *Service) Describe(ctx context.Context) *Description {
	d := &Description{Protocols: []int{ProtocolVersion}}
	s.describe(d)
	if h, ok := s.provider.(HealthChecker); ok {
		if err := h.Health(ctx); err != nil {
			d.Info.Failing = cmp.Or(cut(err.Error()), "it gives no reason")
		}
	}
	return d
}

// Close waits for the calls in progress and frees what the service holds. The gRPC server has stopped.
func (s *Service) Close() error { return s.close() }

type baseServer struct {
	pb.UnimplementedBaseServiceServer
	service *Service
}

func (s *baseServer) Info(ctx context.Context, _ *pb.Json) (*pb.Json, error) {
	return toJSON(&s.service.Describe(ctx).Info), nil
}

// How much a plugin holds before it forgets what was used least recently.
const (
	openKept      = 16
	requestsKept  = 256
	configsKept   = 64
	selectorsKept = 16
)

type archServer struct {
	pb.UnimplementedArchServiceServer
	provider arch.Provider

	open cache[*opened] // by handle
	// requests opens an architecture again that was forgotten, by handle: a model takes megabytes.
	requests cache[*pb.OpenRequest]
	configs  cache[[]gemm.Config] // by SHA-256
}

// opened is an architecture behind a handle.
type opened struct {
	mu       sync.Mutex // held while opening
	arch     arch.Architecture
	response *pb.OpenResponse // nil until opened

	// selectors keep candidate lists and scratch space between calls, a pool per space, as a selector serves one call
	// at a time.
	selectors cache[*sync.Pool]
}

func (s *archServer) Manifest(context.Context, *pb.Json) (*pb.Json, error) {
	m := s.provider.Manifest()
	return toJSON(&m), nil
}

func (s *archServer) Open(ctx context.Context, req *pb.OpenRequest) (*pb.OpenResponse, error) {
	request, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return nil, toStatus(err)
	}
	sum := sha256.Sum256(request)
	o, err := s.opened(ctx, sum[:], req)
	if err != nil {
		return nil, err
	}
	s.requests.getOrAdd(string(sum[:]), requestsKept, func() *pb.OpenRequest { return req })
	return o.response, nil
}

// opened returns the architecture of a request, whose hash is the handle.
func (s *archServer) opened(ctx context.Context, sum []byte, req *pb.OpenRequest) (*opened, error) {
	handle := string(sum)
	o := s.open.getOrAdd(handle, openKept, func() *opened { return &opened{} })
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.response == nil {
		r, err := fromOpenRequest(req)
		if err != nil {
			s.open.remove(handle)
			return nil, malformed(err)
		}
		a, err := s.provider.Open(ctx, r)
		if err != nil {
			s.open.remove(handle)
			return nil, toStatus(err)
		}
		o.arch = a
		o.response = &pb.OpenResponse{Handle: sum,
			Json: marshal(&opening{Description: *a.Describe(), Levels: a.Hierarchy().Levels()})}
	}
	return o, nil
}

func (s *archServer) Close(_ context.Context, req *pb.CloseRequest) (*pb.Json, error) {
	s.requests.remove(string(req.GetHandle()))
	s.open.remove(string(req.GetHandle()))
	return &pb.Json{}, nil
}

// find returns what was opened under a handle.
func (s *archServer) find(ctx context.Context, handle []byte) (*opened, error) {
	req, ok := s.requests.get(string(handle))
	if !ok {
		return nil, missingStatus(pb.Missing_RESOURCE_HANDLE)
	}
	return s.opened(ctx, handle, req)
}

// list returns the configurations that a set names.
func (s *archServer) list(set *pb.ConfigSet) ([]gemm.Config, error) {
	if set.GetConfigs() == nil {
		if cfgs, ok := s.configs.get(string(set.GetSha256())); ok {
			return cfgs, nil
		}
		return nil, missingStatus(pb.Missing_RESOURCE_CONFIGS)
	}
	cfgs, err := fromConfigs(set.Configs)
	if err != nil {
		return nil, malformed(err)
	}
	if sum := hashConfigs(cfgs); !bytes.Equal(sum[:], set.Sha256) {
		return nil, malformed(fmt.Errorf("the list of %d configurations has SHA-256 %x, not %x", len(cfgs), sum, set.Sha256))
	}
	return s.configs.getOrAdd(string(set.Sha256), configsKept, func() []gemm.Config { return cfgs }), nil
}

// malformed is the answer to a request that no correct host sends.
func malformed(err error) error {
	return toStatus(diag.Inputf("malformed request: %v", err).Do("report it to the authors of the calling program"))
}

func (s *archServer) Candidates(ctx context.Context, req *pb.CandidatesRequest) (*pb.CandidatesResponse, error) {
	o, p, err := s.about(ctx, req)
	if err != nil {
		return nil, err
	}
	space, err := unmarshal[arch.Space](req.GetSpaceJson(), maxRequestMemory)
	if err != nil {
		return nil, malformed(err)
	}
	c, err := o.arch.Candidates(ctx, p, space)
	if err != nil {
		return nil, toStatus(err)
	}
	return toCandidates(c), nil
}

func (s *archServer) Estimate(ctx context.Context, req *pb.EstimateRequest) (*pb.EstimateResponse, error) {
	o, p, cfgs, err := s.aboutList(ctx, req)
	if err != nil {
		return nil, err
	}
	est := make([]arch.Estimate, len(cfgs))
	if err := o.arch.Estimate(ctx, est, p, cfgs); err != nil {
		return nil, toStatus(err)
	}
	return toEstimates(est), nil
}

func (s *archServer) Terms(ctx context.Context, req *pb.TermsRequest) (*pb.TermsResponse, error) {
	o, p, cfgs, err := s.aboutList(ctx, req)
	if err != nil {
		return nil, err
	}
	values := make([]float64, len(cfgs)*len(o.arch.Describe().Terms))
	if err := o.arch.Terms(ctx, values, p, cfgs); err != nil {
		return nil, toStatus(err)
	}
	return &pb.TermsResponse{Values: values}, nil
}

// problemRequest is a request about a problem of an open architecture.
type problemRequest interface {
	GetHandle() []byte
	GetProblem() *pb.Problem
}

func (s *archServer) about(ctx context.Context, req problemRequest) (*opened, gemm.Problem, error) {
	o, err := s.find(ctx, req.GetHandle())
	if err != nil {
		return nil, gemm.Problem{}, err
	}
	p, err := fromProblem(req.GetProblem())
	if err != nil {
		return nil, p, malformed(err)
	}
	return o, p, nil
}

func (s *archServer) aboutList(ctx context.Context, req interface {
	problemRequest
	GetConfigs() *pb.ConfigSet
}) (*opened, gemm.Problem, []gemm.Config, error) {
	o, p, err := s.about(ctx, req)
	if err != nil {
		return nil, p, nil, err
	}
	cfgs, err := s.list(req.GetConfigs())
	return o, p, cfgs, err
}

func (s *archServer) Mapping(ctx context.Context, req *pb.MappingRequest) (*pb.MappingResponse, error) {
	o, p, err := s.about(ctx, req)
	if err != nil {
		return nil, err
	}
	c, err := fromConfig(req.GetConfig())
	if err != nil {
		return nil, malformed(err)
	}
	m, err := o.arch.Mapping(ctx, p, c)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.MappingResponse{GroupM: int64(m.GroupM), Xcds: int64(m.XCDs), Chunk: int64(m.Chunk)}, nil
}

// ranker is a selector with the result that it fills again and again.
type ranker struct {
	*selector.Selector
	result selector.Result
}

func (s *archServer) Rank(ctx context.Context, req *pb.RankRequest) (*pb.RankResponse, error) {
	o, err := s.find(ctx, req.GetHandle())
	if err != nil {
		return nil, err
	}
	pool, ok := o.selectors.get(string(req.GetSpaceJson()))
	if !ok {
		space, err := unmarshal[arch.Space](req.GetSpaceJson(), maxRequestMemory)
		if err != nil {
			return nil, malformed(err)
		}
		pool = o.selectors.getOrAdd(string(req.GetSpaceJson()), selectorsKept, func() *sync.Pool {
			return &sync.Pool{New: func() any { return &ranker{Selector: selector.New(o.arch, space)} }}
		})
	}
	r := pool.Get().(*ranker)
	defer pool.Put(r)

	resp := &pb.RankResponse{Rankings: make([]*pb.Ranking, len(req.GetProblems()))}
	for i, problem := range req.GetProblems() {
		if err := ctx.Err(); err != nil {
			return nil, toStatus(err)
		}
		p, err := fromProblem(problem)
		if err != nil {
			return nil, malformed(err)
		}
		r.Map = int(req.GetMap())
		err = r.Rank(ctx, p, int(req.GetTop()), &r.result)
		r.result.Err = err
		resp.Rankings[i] = toRanking(&r.result)
	}
	return resp, nil
}

// cache keeps the values used most recently, by key. The zero value is ready.
type cache[V any] struct {
	mu      sync.Mutex
	clock   uint64
	entries map[string]*cacheEntry[V]
}

type cacheEntry[V any] struct {
	value V
	used  uint64
}

func (c *cache[V]) get(key string) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		return v, false
	}
	c.clock++
	e.used = c.clock
	return e.value, true
}

// getOrAdd returns the value of a key, made by add if it is new; beyond limit entries the least recently used goes.
func (c *cache[V]) getOrAdd(key string, limit int, add func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock++
	if e, ok := c.entries[key]; ok {
		e.used = c.clock
		return e.value
	}
	if c.entries == nil {
		c.entries = map[string]*cacheEntry[V]{}
	}
	for len(c.entries) >= limit {
		oldest := ""
		for k, e := range c.entries {
			if oldest == "" || e.used < c.entries[oldest].used {
				oldest = k
			}
		}
		delete(c.entries, oldest)
	}
	e := &cacheEntry[V]{value: add(), used: c.clock}
	c.entries[key] = e
	return e.value
}

func (c *cache[V]) remove(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}
