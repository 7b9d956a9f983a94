package wire

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/selector"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// Architecture is an architecture that lives in a plugin. It ranks there too (selector.Ranker), in one round trip, or
// here if the plugin does not implement Rank.
type Architecture struct {
	client  *Client
	request *pb.OpenRequest
	opened  *pb.OpenResponse
	desc    *arch.Description
	levels  []arch.Level

	ranksHere atomic.Bool  // the plugin has no Rank
	largest   atomic.Int64 // the entries of the largest ranking so far

	mu    sync.Mutex
	lists []*configList // most recently used first
}

var (
	_ arch.Architecture    = (*Architecture)(nil)
	_ arch.MemoryHierarchy = (*Architecture)(nil)
	_ selector.Ranker      = (*Architecture)(nil)
)

// Sizes of one call. The answers are far below MaxAnswer, and the calls short enough that a cancelled context and a
// timeout per call mean something.
const (
	configsPerCall  = 1 << 15
	valuesPerCall   = 1 << 20
	problemsPerCall = 256
	// listsKept is how many configuration lists the client remembers.
	listsKept = 16
)

// Describe implements arch.Architecture.
func (a *Architecture) Describe() *arch.Description { return a.desc }

// Hierarchy implements arch.Architecture.
func (a *Architecture) Hierarchy() arch.MemoryHierarchy { return a }

// Levels implements arch.MemoryHierarchy.
func (a *Architecture) Levels() []arch.Level { return a.levels }

// Close lets the plugin forget the architecture. It may still be used: the plugin then opens it again.
func (a *Architecture) Close(ctx context.Context) error {
	_, err := a.client.arch.Close(ctx, &pb.CloseRequest{Handle: a.opened.Handle})
	if errors.Is(err, ErrDied) {
		return nil // and has forgotten everything
	}
	return a.client.fault(ctx, "Close", err)
}

// SpaceJSON returns a space as requests have it.
func SpaceJSON(s arch.Space) []byte { return marshal(&s) }

// Candidates implements arch.Architecture.
func (a *Architecture) Candidates(ctx context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	req := &pb.CandidatesRequest{Handle: a.opened.Handle, Problem: toProblem(p), SpaceJson: SpaceJSON(s)}
	return ask(ctx, a.client, "Candidates", a.reopen, a.client.arch.Candidates, req,
		func(q *pb.CandidatesResponse) (*arch.Candidates, error) { return fromCandidates(q, s.Kernel, a.desc) })
}

// Estimate implements arch.Architecture.
func (a *Architecture) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	if len(dst) != len(cfgs) {
		return &diag.Error{What: fmt.Sprintf("Estimate: room for %d results of %d configurations", len(dst), len(cfgs))}
	}
	req := &pb.EstimateRequest{Handle: a.opened.Handle, Problem: toProblem(p)}
	// At least one call, as the model may have something to say about the problem alone.
	for more := true; more; more = len(cfgs) > 0 {
		n := min(len(cfgs), configsPerCall)
		resp, err := withList(ctx, a, "Estimate", cfgs[:n], func(set *pb.ConfigSet) (*pb.EstimateResponse, error) {
			req.Configs = set
			return a.client.arch.Estimate(ctx, req)
		})
		if err != nil {
			return err
		}
		if err := fromEstimates(dst[:n], resp); err != nil {
			return a.nonsense("Estimate", p, err)
		}
		dst, cfgs = dst[n:], cfgs[n:]
	}
	return nil
}

// Terms implements arch.Architecture. The values are the model's as they are: for a configuration that does not fit
// they may be anything.
func (a *Architecture) Terms(ctx context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	terms := len(a.desc.Terms)
	if len(dst) != len(cfgs)*terms {
		return &diag.Error{What: fmt.Sprintf("Terms: room for %d values of %d configurations with %d terms", len(dst),
			len(cfgs), terms)}
	}
	req := &pb.TermsRequest{Handle: a.opened.Handle, Problem: toProblem(p)}
	most := min(configsPerCall, max(1, valuesPerCall/max(1, terms)))
	for more := true; more; more = len(cfgs) > 0 {
		n := min(len(cfgs), most)
		resp, err := withList(ctx, a, "Terms", cfgs[:n], func(set *pb.ConfigSet) (*pb.TermsResponse, error) {
			req.Configs = set
			return a.client.arch.Terms(ctx, req)
		})
		if err != nil {
			return err
		}
		if got := len(resp.GetValues()); got != n*terms {
			return a.client.nonsense("Terms", fmt.Errorf("%d values for %d configurations with %d terms", got, n, terms))
		}
		copy(dst, resp.Values)
		dst, cfgs = dst[n*terms:], cfgs[n:]
	}
	return nil
}

// Mapping implements arch.Architecture.
func (a *Architecture) Mapping(ctx context.Context, p gemm.Problem, c gemm.Config) (arch.Mapping, error) {
	return ask(ctx, a.client, "Mapping", a.reopen, a.client.arch.Mapping,
		&pb.MappingRequest{Handle: a.opened.Handle, Problem: toProblem(p), Config: ConfigMessage(c)}, fromMapping)
}

// Rank implements selector.Ranker: the plugin runs the same selector next to its model.
func (a *Architecture) Rank(ctx context.Context, r selector.Request) ([]selector.Result, error) {
	if a.ranksHere.Load() {
		return selector.Rank(ctx, withoutRank{a}, r)
	}
	results := make([]selector.Result, 0, len(r.Problems))
	space := SpaceJSON(r.Space)
	most := problemsPerCall
	for problems := r.Problems; len(problems) > 0; {
		n := min(len(problems), most, a.problemsAtOnce(r.Top))
		some, err := a.rank(ctx, problems[:n], space, r)
		if status.Code(err) == codes.Unimplemented {
			a.ranksHere.Store(true)
			return a.Rank(ctx, r)
		}
		if isTooLarge(err) && n > 1 {
			most = n / 2
			continue
		}
		if err != nil {
			return nil, err
		}
		results, problems = append(results, some...), problems[n:]
	}
	return results, nil
}

// problemsAtOnce returns how many rankings of the best `top` entries fit into an answer, by those seen so far.
func (a *Architecture) problemsAtOnce(top int) int {
	entries := max(1, int(a.largest.Load()))
	if top > 0 {
		entries = min(entries, top)
	}
	return max(1, entriesPerCall/entries)
}

// rank is one call of Rank.
func (a *Architecture) rank(ctx context.Context, problems []gemm.Problem, space []byte, r selector.Request) (
	[]selector.Result, error) {
	req := &pb.RankRequest{Handle: a.opened.Handle, Problems: all(problems, toProblem), SpaceJson: space,
		Top: int64(max(r.Top, 0)), Map: int64(max(r.Map, 0))}
	resp, err := ask(ctx, a.client, "Rank", a.reopen, a.client.arch.Rank, req,
		func(q *pb.RankResponse) (*pb.RankResponse, error) {
			if got := len(q.GetRankings()); got != len(problems) {
				return nil, fmt.Errorf("%d rankings for %d problems", got, len(problems))
			}
			entries := 0
			for _, ranking := range q.Rankings {
				n := len(ranking.GetIndex())
				entries += n
				a.largest.Store(max(a.largest.Load(), int64(min(n, entriesPerCall))))
			}
			if entries > entriesPerCall {
				return nil, &OversizeError{fmt.Sprintf("%d entries, where %d are the most", entries, entriesPerCall)}
			}
			return q, nil
		})
	if err != nil {
		return nil, err
	}
	results := make([]selector.Result, len(problems))
	for i, ranking := range resp.Rankings {
		if results[i], err = fromRanking(ranking, r.Top, r.Space.Kernel, a.desc); err != nil {
			return nil, a.nonsense("Rank", problems[i], err)
		}
		var d *diag.Error
		if errors.As(results[i].Err, &d) {
			results[i].Err = a.client.reported(d)
		}
		resp.Rankings[i] = nil // not needed any more
	}
	return results, nil
}

// nonsense is the client's, about the predictions for a problem. A total that is none is the user's doing if the user
// has changed the model's numbers.
func (a *Architecture) nonsense(op string, p gemm.Problem, err error) error {
	var total *totalError
	if errors.As(err, &total) && len(a.desc.Overridden()) > 0 {
		return a.desc.Implausible(total.total, p.String())
	}
	return a.client.nonsense(op, fmt.Errorf("%s: %w", p, err))
}

// RanksHere reports whether the plugin has turned out not to implement Rank.
func (a *Architecture) RanksHere() bool { return a.ranksHere.Load() }

// withoutRank hides the Rank of an architecture, so that the selector asks for its parts.
type withoutRank struct{ arch.Architecture }

// reopen opens the architecture again, if the plugin no longer holds it.
func (a *Architecture) reopen(ctx context.Context) error {
	resp, err := a.client.arch.Open(ctx, a.request)
	if err != nil {
		return err
	}
	// Results from before and after belong together only if this is what the caller has seen.
	if !proto.Equal(resp, a.opened) {
		return a.client.refused("Open", &diag.Error{Kind: diag.Plugin, Where: "plugin " + a.client.name,
			What: fmt.Sprintf("it describes %s differently after a restart", a.desc.ID()),
			Fix:  "its program was replaced meanwhile: run the command again"})
	}
	return nil
}

// withList makes a call about a list of configurations. The list itself travels only when the plugin may not have it.
func withList[R any](ctx context.Context, a *Architecture, op string, cfgs []gemm.Config,
	do func(*pb.ConfigSet) (R, error)) (resp R, err error) {
	l := a.list(cfgs)
	set := &pb.ConfigSet{Sha256: l.hash[:]}
	if !l.sent.Load() {
		set.Configs = toConfigs(l.configs)
	}
	err = a.client.repeat(ctx, op, a.reopen, func() (err error) {
		resp, err = do(set)
		if _, missing := details(err); missing == pb.Missing_RESOURCE_CONFIGS {
			set.Configs = toConfigs(l.configs)
			resp, err = do(set)
		}
		if err == nil {
			l.sent.Store(true)
		}
		return err
	})
	return resp, err
}

// configList is a list that the client has met before.
type configList struct {
	configs []gemm.Config
	hash    [sha256.Size]byte
	sent    atomic.Bool
}

// list finds the list among those known, by content, or makes it known.
func (a *Architecture) list(cfgs []gemm.Config) *configList {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.lists, func(l *configList) bool { return slices.Equal(l.configs, cfgs) })
	if i < 0 {
		l := &configList{configs: slices.Clone(cfgs), hash: hashConfigs(cfgs)}
		a.lists = slices.Insert(a.lists[:min(len(a.lists), listsKept-1)], 0, l)
		return l
	}
	l := a.lists[i]
	copy(a.lists[1:i+1], a.lists[:i])
	a.lists[0] = l
	return l
}
