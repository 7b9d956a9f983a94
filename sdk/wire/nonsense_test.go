package wire

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/hw"
	"github.com/origami-gemm/origami/core/selector"
	"github.com/origami-gemm/origami/internal/testing/must"
	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// A prediction that is none is the user's doing if the user has changed the model's numbers.
func TestExtremeOverridesAreTheUsers(t *testing.T) {
	p := connect(t)
	p.forge = func(m proto.Message) {
		if m, ok := m.(*pb.RankResponse); ok {
			m.Rankings[0].Cycles[0] = math.Inf(1)
		}
	}
	a, err := p.client.Open(t.Context(), arch.OpenRequest{Arch: "fake",
		Overrides: map[string]hw.OverrideValue{"noise": {Value: 0.25}}})
	must.Do(t, err)
	_, err = a.Rank(t.Context(), selector.Request{Problems: []gemm.Problem{problem}, Top: 3})
	must.That(t, diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), "with other values of noise"),
		"got %v", err)
}

// A description of something else than what was asked for is refused.
func TestDescriptionsOfSomethingElse(t *testing.T) {
	p := connect(t)
	request := arch.OpenRequest{Arch: "fake", Device: "large", Model: "hashed", Rung: arch.RungCompiled,
		Options:   map[string]string{"salt": "2"},
		Overrides: map[string]hw.OverrideValue{"noise": {Value: 0.25}}}
	must.Get(p.client.Open(t.Context(), request))(t)
	for says, forge := range map[string]func(*arch.Description){
		`the architecture "sm90"`:                      func(d *arch.Description) { d.Arch = "sm90" },
		`the device "small", where "large"`:            func(d *arch.Description) { d.Device = "small" },
		`the model "other"`:                            func(d *arch.Description) { d.Model = "other" },
		"no more than compiled":                        func(d *arch.Description) { d.Rung = arch.RungCharacterized },
		`the option salt "1", where "2" was asked for`: func(d *arch.Description) { d.Options[0].Value = "1" },
		"noise was overridden, and is described as not": func(d *arch.Description) {
			d.Params[0].Tier, d.Params[0].Value = hw.Derived, 2*d.Params[0].Value
		},
		"bandwidth was not overridden": func(d *arch.Description) { d.Params[1].Tier = hw.Override },
	} {
		p.forge = func(m proto.Message) {
			if m, ok := m.(*pb.OpenResponse); ok {
				rewrite(m, func(o *opening) { forge(&o.Description) })
			}
		}
		if _, err := p.client.Open(t.Context(), request); diag.KindOf(err) != diag.Plugin ||
			!strings.HasPrefix(err.Error(), "plugin forger: Open answered nonsense: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	// Kernels of a family that was not asked for.
	p.forge = nil
	a := p.open(t)
	p.forge = func(m proto.Message) {
		switch m := m.(type) {
		case *pb.RankResponse:
			m.Rankings[0].Configs.Kernels[0] = "two"
		case *pb.CandidatesResponse:
			m.Configs.Kernels[0] = "three"
		}
	}
	_, err := a.Rank(t.Context(), selector.Request{Problems: []gemm.Problem{problem}, Top: 1,
		Space: arch.Space{Kernel: "one", BlockM: []int{16, 32, 64}}})
	must.That(t, err != nil && strings.Contains(err.Error(), `the kernel family "two", where "one" was asked for`),
		"Rank: got %v", err)
	if _, err = a.Candidates(t.Context(), problem, arch.Space{}); err == nil ||
		!strings.Contains(err.Error(), `the kernel family "three", which the description does not have`) {
		t.Errorf("Candidates: got %v", err)
	}
}

// The texts of a plugin about a failure are cut where they arrive, in every form of the error, and an error without a
// text names the plugin.
func TestDiagnosticsAreBounded(t *testing.T) {
	long := strings.Repeat("long ", 1<<20)
	for _, q := range []*pb.Diagnostic{
		{Kind: pb.Diagnostic_KIND_INPUT, What: long, Where: long, Fix: long, Code: long, Subject: long},
		{Kind: pb.Diagnostic_KIND_INPUT}, {Kind: pb.Diagnostic_KIND_PLUGIN, What: " \n"},
	} {
		failed := must.Get(status.New(codes.Internal, "").WithDetails(protoadapt.MessageV1Of(q)))(t)
		p := connect(t)
		a := p.open(t)
		p.forge = func(m proto.Message) {
			if m, ok := m.(*pb.RankResponse); ok {
				m.Rankings[0] = &pb.Ranking{Error: q}
			}
		}
		results := must.Get(a.Rank(t.Context(), selector.Request{Problems: []gemm.Problem{problem}}))(t)
		for call, err := range map[string]error{
			"a call": p.client.fault(t.Context(), "Rank", failed.Err()), "one problem": results[0].Err,
		} {
			text, jsonErr := json.Marshal(err)
			if jsonErr != nil || len(text) > 6*mostText || len(err.Error()) > 6*mostText {
				t.Errorf("%s: %d bytes, %d as JSON, %v", call, len(err.Error()), len(text), jsonErr)
			}
			must.That(t, strings.TrimSpace(q.What) != "" ||
				err.Error() == "plugin forger: it reports a failure and gives no reason; report it to the plugin's author",
				"%s: got %q", call, err)
		}
	}
	if twice := cut(cut(long)); twice != cut(long) || !strings.Contains(twice, "bytes more)") {
		t.Errorf("cut twice: …%s", twice[len(twice)-60:])
	}
	q := toDiagnostic(&diag.Error{Kind: diag.Input, What: long, Fix: long})
	if proto.Size(q) > 3*mostText {
		t.Errorf("a plugin sends %d bytes", proto.Size(q))
	}
}
